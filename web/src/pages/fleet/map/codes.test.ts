import { describe, expect, test } from "vitest";
import { type Frame, type Layout, arrange } from "../../../lib/live/frame";
import { GPU_STATES, NOT_COUNTED } from "../../../lib/state";
import { BLANK, BUSY_CODE, DOWN_FIGURE, STATE_CODES, STEPS, UNKNOWN_FIGURE, codes, powerLimits } from "./codes";

interface Gpu {
  state: number;
  utilization?: number;
  temperature?: number;
  power?: number;
  limit?: number | null;
  person?: number;
}

function frameOf(gpus: Gpu[], people = ["", "alice", "bob"]): Frame {
  const layout: Layout = {
    models: [],
    nodes: [{
      name: "n", display_name: "n", group: null, rack: null,
      gpus: gpus.map(({ limit }, at) => [`GPU-${at}`, at, null, null, limit ?? null, null]),
    }],
  };
  const planes = new Uint8Array(gpus.length * 8 + 1);
  const summary = {} as Frame["summary"];
  const frame = arrange({ generation: 1, time: 0, summary }, people, layout, planes);
  gpus.forEach(({ state, utilization = 255, temperature = 255, power = 65535, person = 0 }, slot) => {
    frame.state[slot] = state;
    frame.utilization[slot] = utilization;
    frame.temperature[slot] = temperature;
    frame.power[slot] = power;
    frame.person[slot] = person;
  });
  return frame;
}

const [down, stale, , unknown, busy, , , free] = GPU_STATES.map((_, at) => at);
const read = (frame: Frame, by: Parameters<typeof codes>[1]) => codes(frame, by, () => powerLimits(frame));

describe("cells show", () => {
  test("the state, and the load of busy ones", () => {
    const { code } = read(frameOf([{ state: free }, { state: busy, utilization: 0 }, { state: busy, utilization: 200 }, { state: busy }, { state: NOT_COUNTED }, { state: down }, { state: unknown, utilization: 200 }]), "state");
    expect([...code]).toEqual([free, BUSY_CODE, STATE_CODES - 1, STATE_CODES - 1, BLANK, down, unknown]);
  });

  test("figures along the ramp, unknown and down apart", () => {
    const frame = frameOf([
      { state: busy, temperature: 20, power: 0, limit: 400 },
      { state: busy, temperature: 95, power: 500, limit: 400 },
      { state: stale, temperature: 60, power: 200, limit: 400 },
      { state: busy, power: 100 },
      { state: down, temperature: 60 },
    ]);
    const middle = Math.round((STEPS - 1) / 2);
    expect([...read(frame, "temperature").code]).toEqual([0, STEPS - 1, middle, UNKNOWN_FIGURE, DOWN_FIGURE]);
    expect([...read(frame, "power").code]).toEqual([0, STEPS - 1, middle, UNKNOWN_FIGURE, DOWN_FIGURE]);
    expect([...read(frame, "power").old!]).toEqual([0, 0, 1, 0, 0]);
  });

  test("people by their numbers, nobody first and down last", () => {
    const shown = read(frameOf([{ state: busy, person: 2 }, { state: free }, { state: down, person: 1 }]), "person");
    expect([...shown.code]).toEqual([2, 0, 3]);
  });
});

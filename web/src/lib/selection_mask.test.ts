import { expect, test } from "vitest";
import { testFleet } from "../pages/fleet/fleet_for_tests";
import { parse } from "./filter";
import type { Frame } from "./live/frame";
import { arrange } from "./live/frame";
import { type Found, Mask } from "./selection_mask";
import { GPU_STATES } from "./state";

const PEOPLE = ["", "alice", "bob"];
const FLEET = {
  gpu1: [{ state: "free" as const }, { state: "busy" as const, person: 1, temperature: 60 }],
  gpu2: [{ state: "idle" as const, person: 2 }, { state: "split" as const }, { state: "busy" as const, parent: "GPU-gpu2-1" }],
};
const { frame, nodes } = testFleet(FLEET, undefined, PEOPLE);

/** The next frame: the same fleet with other figures. */
function after(before: Frame, change: (frame: Frame) => void): Frame {
  const { generation, time, summary } = before;
  const next = arrange({ generation: generation + 1, time: time + 1, summary }, before.people, before.layout, before.planes.slice());
  change(next);
  return next;
}

const stateOf = (state: (typeof GPU_STATES)[number]) => GPU_STATES.indexOf(state);

test.each(["free", "-free", "user:alice", "alice", "temp>50", "util<50", "power>100", "free_mem>10G", "busy temp>50", "gpu2", "state:busy -bob"])(
  "%s finds the same from change to change as from the beginning",
  (text) => {
    const filter = parse(text);
    const kept = new Mask();
    kept.of(filter, frame, nodes, null);
    const changes: ((next: Frame) => void)[] = [
      (next) => (next.state[1] = stateOf("free")),
      (next) => (next.person[2] = 1),
      (next) => next.temperature.fill(55),
      (next) => (next.utilization[4] = 120),
      (next) => (next.power[0] = 300),
      (next) => (next.memory[0] = 199),
      // A card that was split is one again.
      (next) => (next.state[3] = stateOf("busy")),
    ];
    let now = frame;
    for (const change of changes) {
      now = after(now, change);
      expect([...kept.of(filter, now, nodes, null)]).toEqual([...new Mask().of(filter, now, nodes, null)]);
    }
  },
);

test("what does not touch the filter is not looked at, and the mask stays the same object", () => {
  let looked = 0;
  const filter = parse("free");
  const [term] = filter.terms;
  const counted = { ...filter, terms: [{ ...term, test: (...given: Parameters<typeof term.test>) => (looked++, term.test(...given)) }] };
  const kept = new Mask();
  const first = kept.of(counted, frame, nodes, null);
  expect([...first]).toEqual([1, 0, 0, 0, 0]);
  looked = 0;
  const warmer = after(frame, (next) => next.temperature.fill(70));
  expect(kept.of(counted, warmer, nodes, null)).toBe(first);
  expect(looked).toBe(0);
  const second = kept.of(counted, after(warmer, (next) => (next.state[1] = stateOf("free"))), nodes, null);
  expect(looked).toBe(1);
  expect([...second]).toEqual([1, 1, 0, 0, 0]);
  // Nobody's mask changes behind their back.
  expect([...first]).toEqual([1, 0, 0, 0, 0]);
});

test("another filter, and what the hub has found, take effect at once", () => {
  const kept = new Mask();
  const job = parse("job:7");
  expect([...kept.of(job, frame, nodes, null)]).toEqual([0, 0, 0, 0, 0]);
  const found: Found = { text: "job:7", ids: new Set(["GPU-gpu1-1"]), all: true };
  expect([...kept.of(job, frame, nodes, found)]).toEqual([0, 1, 0, 0, 0]);
  expect([...kept.of(job, frame, nodes, { ...found, ids: new Set(["GPU-gpu2-0"]), all: false })]).toEqual([0, 0, 1, 0, 0]);
  expect([...kept.of(parse("gpu1"), frame, nodes, null)]).toEqual([1, 1, 0, 0, 0]);
});

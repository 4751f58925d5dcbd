/** What a cell shows, as a number into a table of colours; one for each way to colour the map. */
import { type Frame, UNKNOWN_BYTE, UNKNOWN_WORD } from "../../../lib/live/frame";
import { GPU_STATES, NOT_COUNTED } from "../../../lib/state";
import { BUSY_LEVELS } from "./colours";

export const COLOURINGS = ["state", "utilisation", "memory", "temperature", "power", "person"] as const;
export type Colouring = (typeof COLOURINGS)[number];

export const COLOURING_LABELS: Record<Colouring, string> = {
  state: "State",
  utilisation: "Utilisation",
  memory: "Memory",
  temperature: "Temperature",
  power: "Power",
  person: "Person",
};

/** Steps of a ramp. */
export const STEPS = 64;
/** °C at the ends of the ramp. */
export const COLDEST = 30;
export const HOTTEST = 90;

const DOWN = GPU_STATES.indexOf("down");
const STALE = GPU_STATES.indexOf("stale");
const BUSY = GPU_STATES.indexOf("busy");

/**
 * By state: the number of the state; a busy one BUSY_CODE and more, by its load; nothing for what is not counted.
 * By figure: 0 to STEPS - 1, then unknown, then down. By person: the number of the person, 0 is nobody, then down.
 */
export const BLANK = NOT_COUNTED;
export const BUSY_CODE = BLANK + 1;
export const STATE_CODES = BUSY_CODE + BUSY_LEVELS;
export const UNKNOWN_FIGURE = STEPS;
export const DOWN_FIGURE = STEPS + 1;

export interface Codes {
  /** By slot. */
  code: Uint16Array;
  /** By slot, 1: what it shows is old. */
  old: Uint8Array | null;
}

export function codes(frame: Frame, by: Colouring, limits: () => Float32Array): Codes {
  if (by === "state") return { code: stateCodes(frame), old: null };
  const old = frame.state.map((state) => (state === STALE ? 1 : 0));
  if (by === "person") {
    const down = frame.people.length;
    const code = frame.person.map((person, slot) => (frame.state[slot] === DOWN ? down : person));
    return { code, old };
  }
  return { code: figureCodes(frame, by, limits), old };
}

// A busy GPU that does not tell how much it does counts as one that does all it can.
const LOADS = byByte((half) => BUSY_CODE + Math.round((Math.min(200, half) / 200) * (BUSY_LEVELS - 1)));
const SHARES = byByte((half) => (half === UNKNOWN_BYTE ? UNKNOWN_FIGURE : step(half / 200)));
const DEGREES = byByte((celsius) => (celsius === UNKNOWN_BYTE ? UNKNOWN_FIGURE : step((celsius - COLDEST) / (HOTTEST - COLDEST))));

/** A code for each value of a byte: reckoned once, looked up for every GPU and second. */
function byByte(code: (value: number) => number): Uint16Array {
  return Uint16Array.from({ length: 256 }, (_, value) => code(value));
}

function step(share: number): number {
  return Math.round(Math.min(1, Math.max(0, share)) * (STEPS - 1));
}

function stateCodes(frame: Frame): Uint16Array {
  const { state, utilization, gpuCount } = frame;
  const code = new Uint16Array(gpuCount);
  for (let slot = 0; slot < gpuCount; slot++) {
    code[slot] = state[slot] === BUSY ? LOADS[utilization[slot]] : state[slot];
  }
  return code;
}

function figureCodes(frame: Frame, by: Exclude<Colouring, "state" | "person">, limits: () => Float32Array): Uint16Array {
  const { state, power, gpuCount } = frame;
  const code = new Uint16Array(gpuCount);
  if (by === "power") {
    const limit = limits();
    for (let slot = 0; slot < gpuCount; slot++) {
      const share = power[slot] / limit[slot];
      code[slot] = power[slot] === UNKNOWN_WORD || Number.isNaN(share) ? UNKNOWN_FIGURE : step(share);
    }
  } else {
    const plane = by === "utilisation" ? frame.utilization : frame[by];
    const table = by === "temperature" ? DEGREES : SHARES;
    for (let slot = 0; slot < gpuCount; slot++) code[slot] = table[plane[slot]];
  }
  for (let slot = 0; slot < gpuCount; slot++) if (state[slot] === DOWN) code[slot] = DOWN_FIGURE;
  return code;
}

/** The power limit of each slot in watts; NaN: unknown. */
export function powerLimits(frame: Frame): Float32Array {
  const limits = new Float32Array(frame.gpuCount);
  let slot = 0;
  for (const node of frame.layout.nodes) for (const gpu of node.gpus) limits[slot++] = gpu[4] ?? NaN;
  return limits;
}

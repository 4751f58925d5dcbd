/** Sums over the fleet in words: a sum without some of the GPUs says of how many it is. */
import { count } from "../../lib/format";
import { type Frame, UNKNOWN_BYTE, UNKNOWN_WORD } from "../../lib/live/frame";
import { GPU_STATES, NOT_COUNTED } from "../../lib/state";

/** How many GPUs a sum leaves out because their figure is unknown. */
export interface Missing {
  memory: number;
  power: number;
}

const [DOWN, STALE, UNHEALTHY, UNKNOWN] = (["down", "stale", "unhealthy", "unknown"] as const).map((state) => GPU_STATES.indexOf(state));

/** `isCard` is 1 for each slot that is no MIG instance: an instance has no power of its own. */
export function missing(frame: Frame, isCard: Uint8Array): Missing {
  const { state, memory, power } = frame;
  const found = { memory: 0, power: 0 };
  for (let slot = 0; slot < state.length; slot++) {
    const is = state[slot];
    if (is === DOWN || is === NOT_COUNTED) continue;
    if (power[slot] === UNKNOWN_WORD && isCard[slot] === 1) found.power++;
    // Nobody is offered the memory of what is stale or broken: it is not in the sum, known or not.
    if (is === UNKNOWN || (memory[slot] === UNKNOWN_BYTE && is !== STALE && is !== UNHEALTHY)) found.memory++;
  }
  return found;
}

/** Of how many GPUs a sum is, in few words and in a sentence; empty: of all. */
export interface Coverage {
  brief: string;
  full: string;
}

export function coverage(known: number, all: number, missing: number): Coverage {
  if (missing === 0) return { brief: "", full: "" };
  return { brief: ` of ${count(known)}/${count(all)}`, full: `, of ${count(known)} of ${count(all)} GPUs; the others are unknown` };
}

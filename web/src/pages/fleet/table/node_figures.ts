/** The figures of whole nodes: sums and means over their GPUs. */
import { type Frame, UNKNOWN_BYTE, UNKNOWN_WORD } from "../../../lib/live/frame";
import { GPU_STATES, NOT_COUNTED } from "../../../lib/state";

/** By the number of the node; NaN is unknown. */
export interface NodeFigures {
  /** Those that are counted. */
  gpus: Uint32Array;
  free: Uint32Array;
  /** Mean, 0 to 1. */
  utilization: Float64Array;
  /** Bytes */
  memoryUsed: Float64Array;
  memoryTotal: Float64Array;
  /** Of the hottest. */
  temperature: Float64Array;
  power: Float64Array;
  /** How many of its cards are not in these sums, as their figure is unknown. */
  memoryMissing: Uint32Array;
  powerMissing: Uint32Array;
  /** Number of the model of the first GPU; -1: unknown. */
  model: Int32Array;
  /** Number of the first person on it; -1: nobody. */
  person: Int32Array;
}

const FREE = GPU_STATES.indexOf("free");

export function nodeFigures(frame: Frame): NodeFigures {
  const nodes = frame.layout.nodes;
  const unknown = () => new Float64Array(nodes.length).fill(NaN);
  const figures: NodeFigures = {
    gpus: new Uint32Array(nodes.length),
    free: new Uint32Array(nodes.length),
    utilization: unknown(),
    memoryUsed: unknown(),
    memoryTotal: unknown(),
    temperature: unknown(),
    power: unknown(),
    memoryMissing: new Uint32Array(nodes.length),
    powerMissing: new Uint32Array(nodes.length),
    model: new Int32Array(nodes.length).fill(-1),
    person: new Int32Array(nodes.length).fill(-1),
  };
  const add = (plane: Float64Array, place: number, value: number) => {
    plane[place] = Number.isNaN(plane[place]) ? value : plane[place] + value;
  };
  let slot = 0;
  nodes.forEach((node, place) => {
    let [load, loads] = [0, 0];
    for (const [, , model, memory, , parent] of node.gpus) {
      if (frame.state[slot] !== NOT_COUNTED) figures.gpus[place]++;
      if (frame.state[slot] === FREE) figures.free[place]++;
      if (figures.model[place] < 0 && model !== null) figures.model[place] = model;
      if (figures.person[place] < 0 && frame.person[slot] > 0) figures.person[place] = frame.person[slot];
      // An instance is a part of its card: power, memory and load are counted with the card.
      if (parent === null) {
        if (frame.utilization[slot] !== UNKNOWN_BYTE) [load, loads] = [load + frame.utilization[slot] / 200, loads + 1];
        if (memory !== null) add(figures.memoryTotal, place, memory);
        if (memory !== null && frame.memory[slot] !== UNKNOWN_BYTE) {
          add(figures.memoryUsed, place, (memory * frame.memory[slot]) / 200);
        } else {
          figures.memoryMissing[place]++;
        }
        if (frame.power[slot] !== UNKNOWN_WORD) add(figures.power, place, frame.power[slot]);
        else figures.powerMissing[place]++;
      }
      if (frame.temperature[slot] !== UNKNOWN_BYTE && !(figures.temperature[place] >= frame.temperature[slot])) {
        figures.temperature[place] = frame.temperature[slot];
      }
      slot++;
    }
    if (loads > 0) figures.utilization[place] = load / loads;
  });
  return figures;
}

/** What rows are sorted by: a number for each GPU or node, from the newest frame. */
import { natural } from "../../../lib/format";
import { type Frame, UNKNOWN_BYTE, UNKNOWN_WORD } from "../../../lib/live/frame";
import { GPU_STATES, NOT_COUNTED, SHOWN_STATES } from "../../../lib/state";
import type { ColumnKey } from "./columns";
import type { NodeFigures } from "./node_figures";
import { UNKNOWN_KEY, ranks } from "./order";

const MIB = 2 ** 20;

/** By slot. */
export function gpuKeys(frame: Frame, column: ColumnKey): (slot: number) => number {
  const byte = (plane: Uint8Array) => (slot: number) => (plane[slot] === UNKNOWN_BYTE ? UNKNOWN_KEY : plane[slot]);
  if (column === "node") return (slot) => slot;
  if (column === "utilization") return byte(frame.utilization);
  if (column === "temperature") return byte(frame.temperature);
  if (column === "power") return (slot) => (frame.power[slot] === UNKNOWN_WORD ? UNKNOWN_KEY : frame.power[slot]);
  if (column === "state") {
    const rank = GPU_STATES.map((state) => SHOWN_STATES.indexOf(state));
    return (slot) => (frame.state[slot] === NOT_COUNTED ? UNKNOWN_KEY : rank[frame.state[slot]]);
  }
  if (column === "person") {
    const rank = ranks(frame.people, natural);
    return (slot) => rank[frame.person[slot]];
  }
  const described = frame.layout.nodes.flatMap((node) => node.gpus);
  if (column === "gpu") return (slot) => described[slot][1] ?? UNKNOWN_KEY;
  if (column === "memory") {
    return (slot) => {
      const total = described[slot][3];
      return total === null || frame.memory[slot] === UNKNOWN_BYTE
        ? UNKNOWN_KEY
        : Math.round((total / MIB) * (frame.memory[slot] / 200));
    };
  }
  const rank = ranks(frame.layout.models, natural);
  return (slot) => (described[slot][2] === null ? UNKNOWN_KEY : rank[described[slot][2]!]);
}

/** By the number of the node. */
export function nodeKeys(frame: Frame, figures: NodeFigures, column: ColumnKey): (place: number) => number {
  const whole = (plane: Float64Array, times: number) => (place: number) =>
    Number.isNaN(plane[place]) ? UNKNOWN_KEY : Math.round(plane[place] * times);
  if (column === "node") return (place) => place;
  if (column === "gpu") return (place) => figures.gpus[place];
  if (column === "state") return (place) => figures.free[place];
  if (column === "utilization") return whole(figures.utilization, 10_000);
  if (column === "memory") return whole(figures.memoryUsed, 1 / MIB);
  if (column === "temperature") return whole(figures.temperature, 1);
  if (column === "power") return whole(figures.power, 1);
  const names = column === "person" ? frame.people : frame.layout.models;
  const rank = ranks(names, natural);
  const first = column === "person" ? figures.person : figures.model;
  return (place) => (first[place] < 0 ? UNKNOWN_KEY : rank[first[place]]);
}

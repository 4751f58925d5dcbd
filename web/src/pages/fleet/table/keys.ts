/** What rows are sorted by: a number for each GPU or node, from the newest frame. */
import { natural } from "../../../lib/format";
import { type Frame, UNKNOWN_BYTE, UNKNOWN_WORD } from "../../../lib/live/frame";
import { GPU_STATES, NOT_COUNTED, SHOWN_STATES } from "../../../lib/state";
import type { ColumnKey } from "./columns";
import type { NodeFigures } from "./node_figures";
import { UNKNOWN_KEY, ranks } from "./order";

const MIB = 2 ** 20;

/** By slot. */
export function gpuKeys(frame: Frame, column: ColumnKey): Uint32Array {
  if (column === "utilization") return known(frame.utilization, UNKNOWN_BYTE);
  if (column === "temperature") return known(frame.temperature, UNKNOWN_BYTE);
  if (column === "power") return known(frame.power, UNKNOWN_WORD);
  if (column === "state") {
    const rank = new Uint32Array(NOT_COUNTED + 1).fill(UNKNOWN_KEY);
    GPU_STATES.forEach((state, number) => (rank[number] = SHOWN_STATES.indexOf(state)));
    return ranked(frame.state, rank);
  }
  if (column === "person") return ranked(frame.person, ranks(frame.people, natural));
  const keys = new Uint32Array(frame.gpuCount);
  if (column === "node") return keys.map((_, slot) => slot);
  const models = column === "model" ? ranks(frame.layout.models, natural) : null;
  let slot = 0;
  for (const node of frame.layout.nodes) {
    for (const [, index, model, total] of node.gpus) {
      const used = frame.memory[slot];
      let key: number | null;
      if (column === "gpu") key = index;
      else if (models !== null) key = model === null ? null : models[model];
      else key = total === null || used === UNKNOWN_BYTE ? null : Math.round((total / MIB) * (used / 200));
      keys[slot++] = key ?? UNKNOWN_KEY;
    }
  }
  return keys;
}

function known(plane: Uint8Array | Uint16Array, unknown: number): Uint32Array {
  const keys = new Uint32Array(plane.length);
  for (let slot = 0; slot < keys.length; slot++) keys[slot] = plane[slot] === unknown ? UNKNOWN_KEY : plane[slot];
  return keys;
}

function ranked(plane: Uint8Array | Uint16Array, rank: Uint32Array): Uint32Array {
  const keys = new Uint32Array(plane.length);
  for (let slot = 0; slot < keys.length; slot++) keys[slot] = rank[plane[slot]];
  return keys;
}

/** By the number of the node. */
export function nodeKeys(frame: Frame, figures: NodeFigures, column: ColumnKey): Uint32Array {
  const whole = (plane: Float64Array, times: number) =>
    Uint32Array.from(plane, (value) => (Number.isNaN(value) ? UNKNOWN_KEY : Math.round(value * times)));
  if (column === "node") return figures.gpus.map((_, place) => place);
  if (column === "gpu") return figures.gpus;
  if (column === "state") return figures.free;
  if (column === "utilization") return whole(figures.utilization, 10_000);
  if (column === "memory") return whole(figures.memoryUsed, 1 / MIB);
  if (column === "temperature") return whole(figures.temperature, 1);
  if (column === "power") return whole(figures.power, 1);
  const names = column === "person" ? frame.people : frame.layout.models;
  const rank = ranks(names, natural);
  const first = column === "person" ? figures.person : figures.model;
  return Uint32Array.from(first, (number) => (number < 0 ? UNKNOWN_KEY : rank[number]));
}

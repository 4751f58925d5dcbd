/** Which rows the table has and in which order. */
import { fleet } from "../../../lib/fleet.svelte";
import type { Frame } from "../../../lib/live/frame";
import { live } from "../../../lib/live/live.svelte";
import { selection } from "../../../lib/selection.svelte";
import { NOT_COUNTED } from "../../../lib/state";
import type { Sort } from "./columns";
import { gpuKeys, nodeKeys } from "./keys";
import { nodeFigures } from "./node_figures";
import { sorted } from "./order";

export type Kind = "gpus" | "nodes";

/** Slots of GPUs, or numbers of nodes: those that match the filter, sorted. */
function rowsOf(frame: Frame, kind: Kind, sort: Sort): Uint32Array {
  const mask = kind === "gpus" ? selection.mask : selection.nodeMask;
  const all = kind === "gpus" ? frame.gpuCount : frame.nodeCount;
  const found = new Uint32Array(all);
  let count = 0;
  for (let row = 0; row < all; row++) {
    if (mask !== null && mask[row] === 0) continue;
    // A split card has its instances in its place, as everywhere.
    if (kind === "gpus" && frame.state[row] === NOT_COUNTED) continue;
    found[count++] = row;
  }
  const rows = found.subarray(0, count);
  if (sort.key === "node" && !sort.descending) return rows;
  const keys = kind === "gpus" ? gpuKeys(frame, sort.key) : nodeKeys(frame, nodeFigures(frame), sort.key);
  return sorted(rows, keys, sort.descending);
}

function same(one: Uint32Array, other: Uint32Array): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

/**
 * The rows, kept as they are while `held` is true: nothing moves under a mouse or away from the keyboard. Another sort,
 * filter or layout takes effect at once.
 */
export class Rows {
  #kept: { rows: Uint32Array; of: string; layout: unknown } | null = null;
  readonly current: Uint32Array;

  constructor(kind: () => Kind, sort: () => Sort, held: () => boolean) {
    this.current = $derived.by(() => {
      const frame = live.frame;
      if (frame === null || frame.layout !== fleet.layout) return this.#kept?.rows ?? new Uint32Array();
      const of = JSON.stringify([kind(), sort(), selection.text]);
      if (held() && this.#kept?.of === of && this.#kept.layout === frame.layout) return this.#kept.rows;
      const next = rowsOf(frame, kind(), sort());
      // The same object while they are the same, or every row would be looked at each second.
      const rows = this.#kept !== null && same(next, this.#kept.rows) ? this.#kept.rows : next;
      this.#kept = { rows, of, layout: frame.layout };
      return rows;
    });
  }
}

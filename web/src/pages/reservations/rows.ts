/** The rows of the timeline: below each node its GPUs. All rows are equally high, so that a place is a division. */
import type { FleetGpu, FleetNode } from "../../lib/fleet.svelte";
import { STATE_LABELS } from "../../lib/state";

/** By row the slot of a GPU, or for the head of a node -1 minus its number. */
export type Rows = Int32Array;

export const nodeRow = (place: number) => -1 - place;
export const isNode = (row: number) => row < 0;
export const nodeOf = (row: number) => -1 - row;

type NodeShape = Pick<FleetNode, "name" | "place" | "first" | "count">;

/** Those that match the filter; null: all. A collapsed node has its head only. */
export function rowsOf(nodes: readonly NodeShape[], mask: Uint8Array | null, isCollapsed: (node: string) => boolean): Rows {
  const rows: number[] = [];
  for (const node of nodes) {
    const slots: number[] = [];
    for (let slot = node.first; slot < node.first + node.count; slot++) if (mask === null || mask[slot] === 1) slots.push(slot);
    if (slots.length === 0) continue;
    rows.push(nodeRow(node.place));
    if (!isCollapsed(node.name)) rows.push(...slots);
  }
  return Int32Array.from(rows);
}

/** By slot the row its reservations are drawn in: its own, or the head of its node; -1: none. */
export function rowBySlot(rows: Rows, nodes: readonly NodeShape[], gpuCount: number): Int32Array {
  const found = new Int32Array(gpuCount).fill(-1);
  rows.forEach((row, at) => {
    if (!isNode(row)) {
      found[row] = at;
      return;
    }
    // Of a node that is open: what is filtered out has no row.
    const node = nodes[nodeOf(row)];
    const collapsed = at + 1 >= rows.length || isNode(rows[at + 1]);
    if (collapsed) found.fill(at, node.first, node.first + node.count);
  });
  return found;
}

/** What is meant by marking rows: their GPUs; a collapsed node, or the head of one alone, stands for all that match. */
export function slotsIn(marked: Rows, rows: Rows, nodes: readonly NodeShape[], mask: Uint8Array | null): number[] {
  const open = new Set<number>();
  rows.forEach((row, at) => isNode(row) && at + 1 < rows.length && !isNode(rows[at + 1]) && open.add(row));
  const headsOnly = marked.every(isNode);
  return Array.from(marked).flatMap((row) => {
    if (!isNode(row)) return [row];
    if (open.has(row) && !headsOnly) return [];
    const { first, count } = nodes[nodeOf(row)];
    return Array.from({ length: count }, (_, at) => first + at).filter((slot) => mask === null || mask[slot] === 1);
  });
}

/** What stands beside a GPU: who is on it, else its state. Nobody is on what is down, whoever was last. */
export function besideGpu({ state, person }: Pick<FleetGpu, "state" | "person">): string {
  if (state === null) return "split (MIG)";
  return (state === "down" ? null : person) ?? STATE_LABELS[state];
}

export function sameRows(one: Rows, other: Rows): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

/** Which cards are there, and in which order, so that nothing jumps while the figures change. */
import type { FleetNode } from "../../../lib/fleet.svelte";

export const SORTS = ["name", "free", "load"] as const;
export type Sort = (typeof SORTS)[number];
export const SORT_LABELS: Record<Sort, string> = { name: "Sort: name", free: "Sort: most free", load: "Sort: load" };

/** By the figures of now. */
export function inOrder(nodes: readonly FleetNode[], sort: Sort): readonly FleetNode[] {
  if (sort === "name") return nodes;
  const figure = sort === "free" ? free : load;
  const figures = new Map(nodes.map((node) => [node, figure(node)]));
  return [...nodes].sort((a, b) => figures.get(b)! - figures.get(a)!);
}

function free(node: FleetNode): number {
  return node.gpus.filter((gpu) => gpu.counted && gpu.state === "free").length;
}

function load(node: FleetNode): number {
  const known = node.gpus.map((gpu) => gpu.utilization).filter((value) => value !== null);
  return known.length === 0 ? -1 : known.reduce((sum, value) => sum + value, 0) / known.length;
}

/**
 * The nodes a filter finds. One that was found keeps its card until the filter changes, so that a card does not vanish
 * below the mouse because a GPU has become busy.
 */
export class Found {
  #text = "";
  #names = new Set<string>();
  #shown: readonly FleetNode[] = [];

  of(nodes: readonly FleetNode[], text: string, matches: ((node: FleetNode) => boolean) | null): readonly FleetNode[] {
    if (text !== this.#text) this.#names.clear();
    this.#text = text;
    if (matches === null) return nodes;
    for (const node of nodes) if (matches(node)) this.#names.add(node.name);
    const shown = nodes.filter((node) => this.#names.has(node.name));
    // The same list while it is the same, or every card would be looked at each second.
    const same = shown.length === this.#shown.length && shown.every((node, at) => node === this.#shown[at]);
    if (!same) this.#shown = shown;
    return this.#shown;
  }
}

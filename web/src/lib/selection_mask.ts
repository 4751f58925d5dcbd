/** Which GPUs of a frame match a filter; from frame to frame only those are looked at that have changed. */
import { type Filter, type Plane, matches, reads } from "./filter";
import { FleetGpu, type FleetNode } from "./fleet.svelte";
import type { Frame, Layout } from "./live/frame";

/** What the hub has found for a filter. */
export interface Found {
  text: string;
  ids: Set<string>;
  /** False: there were more than the hub tells at once. */
  all: boolean;
}

interface Before {
  filter: Filter;
  layout: Layout;
  found: Found | null;
  frame: Frame;
  mask: Uint8Array<ArrayBuffer>;
}

export class Mask {
  #planes: Plane[] = [];
  #before: Before | null = null;

  /** By slot, 1 where a GPU matches. The same object as before where nothing has changed. */
  of(filter: Filter, frame: Frame, nodes: readonly FleetNode[], found: Found | null): Uint8Array {
    let before = this.#before;
    const { layout } = frame;
    if (before === null || before.filter !== filter || before.layout !== layout || before.found !== found) {
      this.#planes = [...reads(filter), "state"];
      before = null;
    }
    const changed = before === null ? null : changes(this.#planes, before.frame, frame);
    const mask = before === null ? new Uint8Array(frame.gpuCount) : before.mask.slice();
    const differs = tested(mask, changed, filter, frame, nodes, found);
    const kept = before !== null && !differs ? before.mask : mask;
    this.#before = { filter, layout, found, frame, mask: kept };
    return kept;
  }
}

/** By slot, 1 where one of these figures is another than before. Cards are split and joined: so the state is always one. */
function changes(planes: readonly Plane[], before: Frame, now: Frame): Uint8Array {
  const changed = new Uint8Array(now.gpuCount);
  for (const plane of new Set(planes)) {
    const [old, figures] = [before[plane], now[plane]];
    for (let slot = 0; slot < changed.length; slot++) if (old[slot] !== figures[slot]) changed[slot] = 1;
  }
  return changed;
}

/** Tests what has changed (null: all) and writes it into the mask; whether that has made a difference. */
function tested(
  mask: Uint8Array,
  changed: Uint8Array | null,
  filter: Filter,
  frame: Frame,
  nodes: readonly FleetNode[],
  found: Found | null,
): boolean {
  if (nodes.length === 0) return false;
  const [all, some] = found === null ? [undefined, null] : found.all ? [found.ids, null] : [undefined, found.ids];
  let differs = false;
  // One object for all: 100,000 new ones a second would be felt.
  const gpu = new FleetGpu(frame, nodes[0], 0);
  for (const node of nodes) {
    gpu.node = node;
    for (let slot = node.first; slot < node.first + node.count; slot++) {
      if (changed !== null && changed[slot] === 0) continue;
      gpu.slot = slot;
      const yes = matches(filter, gpu, node, all) || (some !== null && some.has(gpu.id)) ? 1 : 0;
      if (mask[slot] === yes) continue;
      mask[slot] = yes;
      differs = true;
    }
  }
  return differs;
}

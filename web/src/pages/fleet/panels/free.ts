/** Is there a GPU for me, now, and where: free GPUs by model and node. */
import type { FleetNode } from "../../../lib/fleet.svelte";
import { type Frame, type LayoutGpu } from "../../../lib/live/frame";
import { natural } from "../../../lib/format";
import { GPU_STATES } from "../../../lib/state";

const FREE = GPU_STATES.indexOf("free");

/** A node with free GPUs of one model. */
export interface Place {
  node: FleetNode;
  gpus: LayoutGpu[];
}

export interface FreeModel {
  /** Short; null: the card has told none. */
  model: string | null;
  memoryBytes: number | null;
  count: number;
  /** Part of a card. */
  mig: boolean;
  /** Those with most first. */
  places: Place[];
}

/** The largest cards first, parts of cards last; `mask` is 1 for the GPUs that count, null: all do. */
export function freeModels(frame: Frame, nodes: readonly FleetNode[], mask: Uint8Array | null): FreeModel[] {
  const models = new Map<number | null, FreeModel>();
  for (const node of nodes) {
    for (let slot = node.first; slot < node.first + node.count; slot++) {
      if (frame.state[slot] !== FREE || (mask !== null && mask[slot] === 0)) continue;
      const gpu = node.described.gpus[slot - node.first];
      let of = models.get(gpu[2]);
      if (of === undefined) {
        const model = gpu[2] === null ? null : frame.layout.models[gpu[2]];
        models.set(gpu[2], (of = { model, memoryBytes: gpu[3], count: 0, mig: gpu[5] !== null, places: [] }));
      }
      of.count++;
      const last = of.places.at(-1);
      if (last?.node === node) last.gpus.push(gpu);
      else of.places.push({ node, gpus: [gpu] });
    }
  }
  const found = [...models.values()];
  // The order of nodes is natural already, and sorting keeps it among equals.
  for (const of of found) of.places.sort((a, b) => b.gpus.length - a.gpus.length);
  return found.sort(
    (a, b) =>
      Number(a.mig) - Number(b.mig) ||
      (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0) ||
      natural(a.model ?? "", b.model ?? ""),
  );
}

/** `CUDA_VISIBLE_DEVICES=…` for GPUs of one node; null where CUDA has no name for one of them. */
export function visibleDevices(node: FleetNode, gpus: readonly LayoutGpu[]): string | null {
  const cards = node.described.gpus.filter((gpu) => gpu[5] === null);
  // CUDA knows a MIG instance by its UUID only. Where a node has several models it counts the fastest first, so that
  // an index may mean another card.
  const byUuid = new Set(cards.map((gpu) => gpu[2])).size > 1 || gpus.some((gpu) => gpu[5] !== null || gpu[1] === null);
  if (!byUuid) return `CUDA_VISIBLE_DEVICES=${gpus.map((gpu) => gpu[1]).join(",")}`;
  // A card without a UUID goes by its place.
  if (gpus.some((gpu) => gpu[0].startsWith(`${node.name}/`))) return null;
  return `CUDA_VISIBLE_DEVICES=${gpus.map((gpu) => gpu[0]).join(",")}`;
}

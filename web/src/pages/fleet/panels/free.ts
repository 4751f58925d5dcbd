/** Is there a GPU for me, now, and where: free GPUs by model and node. */
import { type FleetNode, NO_MODEL } from "../../../lib/fleet.svelte";
import { type Frame, type LayoutGpu } from "../../../lib/live/frame";
import { natural } from "../../../lib/format";
import { cudaDevices } from "../../../lib/shell";
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
  /** How many nodes have some. */
  nodes: number;
  /** The best of them, those with most first. */
  places: Place[];
}

/** A model while its GPUs are counted. */
interface Counted {
  count: number;
  /** Its first free GPU. */
  gpu: LayoutGpu;
  nodes: number;
  /** The node that is counted just now, and how many it has. */
  node: FleetNode;
  here: number;
  /** The best nodes, and how many they have. */
  best: [FleetNode, number][];
}

/**
 * The largest cards first, parts of cards last, each with its best `most` nodes.
 * `modelOf` has the number of each slot's model; `mask` is 1 for the GPUs that count, null: all do.
 */
export function freeModels(
  frame: Frame,
  nodes: readonly FleetNode[],
  modelOf: Uint16Array,
  mask: Uint8Array | null,
  most: number,
): FreeModel[] {
  const { state } = frame;
  // Only counted here: a large fleet has tens of thousands of free GPUs, of which few are shown.
  const models = new Map<number, Counted>();
  let number = -1;
  let of: Counted | undefined;
  for (const node of nodes) {
    for (let slot = node.first, end = slot + node.count; slot < end; slot++) {
      if (state[slot] !== FREE || (mask !== null && mask[slot] === 0)) continue;
      // Neighbours are mostly alike.
      if (modelOf[slot] !== number) of = models.get((number = modelOf[slot]));
      if (of === undefined) {
        of = { count: 0, gpu: node.described.gpus[slot - node.first], nodes: 1, node, here: 0, best: [] };
        models.set(number, of);
      } else if (of.node !== node) {
        rank(of, most);
        of.node = node;
        of.here = 0;
        of.nodes++;
      }
      of.count++;
      of.here++;
    }
  }
  const placeOf = (node: FleetNode, model: number): Place => ({
    node,
    gpus: node.described.gpus.filter((_, at) => {
      const slot = node.first + at;
      return state[slot] === FREE && modelOf[slot] === model && (mask === null || mask[slot] === 1);
    }),
  });
  const found = [...models].map(([model, of]): FreeModel => {
    rank(of, most);
    return {
      model: model === NO_MODEL ? null : frame.layout.models[model],
      memoryBytes: of.gpu[3],
      count: of.count,
      mig: of.gpu[5] !== null,
      nodes: of.nodes,
      places: of.best.map(([node]) => placeOf(node, model)),
    };
  });
  return found.sort(
    (a, b) =>
      Number(a.mig) - Number(b.mig) ||
      (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0) ||
      natural(a.model ?? "", b.model ?? ""),
  );
}

/** Puts the node that was counted among the best. Nodes come in natural order, which stays among equals. */
function rank({ best, node, here }: Counted, most: number): void {
  if (best.length >= most && best[most - 1][1] >= here) return;
  let at = best.length;
  while (at > 0 && best[at - 1][1] < here) at--;
  best.splice(at, 0, [node, here]);
  if (best.length > most) best.pop();
}

/** `CUDA_VISIBLE_DEVICES=…` for GPUs of one node; null where CUDA has no name for one of them. */
export function visibleDevices(node: FleetNode, gpus: readonly LayoutGpu[]): string | null {
  const cards = node.described.gpus.filter((gpu) => gpu[5] === null);
  // CUDA knows a MIG instance by its UUID only. Where a node has several models it counts the fastest first, so that
  // an index may mean another card.
  const byUuid = new Set(cards.map((gpu) => gpu[2])).size > 1 || gpus.some((gpu) => gpu[5] !== null || gpu[1] === null);
  if (!byUuid) return cudaDevices(gpus.map((gpu) => gpu[1]));
  // A card without a UUID goes by its place.
  if (gpus.some((gpu) => gpu[0].startsWith(`${node.name}/`))) return null;
  return cudaDevices(gpus.map((gpu) => gpu[0]));
}

/** GPUs of the live fleet as places that can be reserved. */
import { type FleetNode, fleet } from "../../lib/fleet.svelte";
import { live } from "../../lib/live/live.svelte";
import type { Place } from "../../lib/reservations";
import { indexOf } from "../fleet/processes";

/** A MIG instance is told from its siblings by what its node says in full; null: that is not there yet. */
export function placeOf(slot: number): Place | null {
  const gpu = fleet.gpu(slot);
  if (gpu.index === null) return null;
  if (gpu.parent === null) return { node: gpu.node.name, index: String(gpu.index) };
  const view = live.details.get(gpu.node.name)?.gpus.find((one) => one.id === gpu.id);
  return view?.mig_index == null ? null : { node: gpu.node.name, index: indexOf(view, gpu.index) };
}

/** Of slots; who has a card has its instances, too. */
export function placesOf(slots: readonly number[]): Place[] {
  const cards = new Set(slots.map((slot) => fleet.gpu(slot).id));
  return slots
    .filter((slot) => !cards.has(fleet.gpu(slot).parent ?? ""))
    .map(placeOf)
    .filter((place) => place !== null);
}

/** By the UUID of a card that is split the slots of its instances. */
export function instancesOf(nodes: readonly FleetNode[]): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const node of nodes.filter(isSplit)) {
    node.described.gpus.forEach(([, , , , , card], at) => {
      if (card !== null) found.set(card, [...(found.get(card) ?? []), node.first + at]);
    });
  }
  return found;
}

/** What can be reserved on a node, as it is written. */
export function indicesOf(name: string): string[] | undefined {
  const node = fleet.byName.get(name);
  if (node === undefined) return undefined;
  return slotsOf(node)
    .map(placeOf)
    .filter((place) => place !== null)
    .map((place) => place.index);
}

export function slotsOf(node: FleetNode): number[] {
  return Array.from({ length: node.count }, (_, at) => node.first + at);
}

/** Whether some of its GPUs are MIG instances: then it must be known in full. */
export function isSplit(node: FleetNode): boolean {
  return node.described.gpus.some((gpu) => gpu[5] !== null);
}

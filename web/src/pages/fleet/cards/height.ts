/** How high a card will nearly be, so that the page is as long before its cards are there. */
import type { FleetNode } from "../../../lib/fleet.svelte";

/** Head, machine with the heads of the columns, and a row for each GPU. */
const HEAD_PX = 40;
const MACHINE_PX = 119;
const ROW_PX = 28;

export function cardHeight(node: FleetNode, collapsed: boolean): number {
  return collapsed ? HEAD_PX : HEAD_PX + MACHINE_PX + node.count * ROW_PX;
}

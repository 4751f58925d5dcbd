/** Which nodes lie together on the map. */
import type { FleetNode } from "../../../lib/fleet.svelte";
import { natural } from "../../../lib/format";
import { NOT_COUNTED } from "../../../lib/state";
import { prefix } from "../quick/groups";

export const GROUPINGS = ["group", "rack", "name", "none"] as const;
export type Grouping = (typeof GROUPINGS)[number];

export const GROUPING_LABELS: Record<Grouping, string> = {
  group: "Group",
  rack: "Rack",
  name: "Name",
  none: "None",
};

/** More fields than this cannot all be labelled; another grouping is better to begin with. */
const MOST_AT_FIRST = 60;

export interface MapNode {
  name: string;
  /** Of the GPUs that are counted: a card that is split has its instances in its place. */
  slots: number[];
}

export interface MapGroup {
  name: string;
  nodes: MapNode[];
}

/** The slots of all nodes of each group, in one array: to be counted with each frame. */
export function slotsOf(groups: readonly MapGroup[]): Uint32Array[] {
  return groups.map((group) => Uint32Array.from(group.nodes.flatMap((node) => node.slots)));
}

/** The groupings that tell nodes apart here. */
export function usefulGroupings(nodes: readonly FleetNode[]): Grouping[] {
  return GROUPINGS.filter((by) => by === "none" || names(nodes, by).size > 1);
}

/** What to begin with: the first that gives fields one can read. */
export function firstGrouping(nodes: readonly FleetNode[]): Grouping {
  return usefulGroupings(nodes).find((by) => names(nodes, by).size <= MOST_AT_FIRST) ?? "none";
}

export function grouped(nodes: readonly FleetNode[], by: Grouping, state: Uint8Array): MapGroup[] {
  const groups = new Map<string, MapGroup>();
  for (const node of nodes) {
    const slots: number[] = [];
    for (let slot = node.first; slot < node.first + node.count; slot++) if (state[slot] !== NOT_COUNTED) slots.push(slot);
    // A node without GPUs has no cell.
    if (slots.length === 0) continue;
    const name = groupName(node, by);
    let group = groups.get(name);
    if (group === undefined) groups.set(name, (group = { name, nodes: [] }));
    group.nodes.push({ name: node.displayName, slots });
  }
  return [...groups.values()].sort((a, b) => natural(a.name, b.name));
}

function groupName(node: FleetNode, by: Grouping): string {
  if (by === "group") return node.group ?? "No group";
  if (by === "rack") return node.rack ?? "No rack";
  return by === "name" ? prefix(node.name) : "All nodes";
}

function names(nodes: readonly FleetNode[], by: Grouping): Set<string> {
  return new Set(nodes.map((node) => groupName(node, by)));
}

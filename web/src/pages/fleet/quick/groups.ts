/** Parts of a large fleet for the quick access bar: by group, rack, model or the beginning of the names. */
import type { FleetNode } from "../../../lib/fleet.svelte";
import { natural } from "../../../lib/format";
import type { Frame } from "../../../lib/live/frame";
import { GPU_STATES, type GpuState, NOT_COUNTED } from "../../../lib/state";
import { term } from "../words";

export const GROUPINGS = ["group", "rack", "model", "name"] as const;
export type Grouping = (typeof GROUPINGS)[number];

export const GROUPING_LABELS: Record<Grouping, string> = {
  group: "By group",
  rack: "By rack",
  model: "By model",
  name: "By name",
};

/** More than these are no help at a glance. */
const MOST = 120;

export interface Grouped {
  names: string[];
  /** What finds the group, in the filter; null: what has no group cannot be asked for. */
  filters: (string | null)[];
  /** The number of the group of each slot. */
  of: Uint32Array;
}

/** "gpu07" and "gpu12" begin with "gpu"; "r3-n04" with "r3-n". */
export function prefix(name: string): string {
  return name.replace(/[0-9]+$/, "") || name;
}

/** In natural order; `models` are the short names of the layout. */
export function grouped(nodes: readonly FleetNode[], models: readonly string[], by: Grouping): Grouped {
  const last = nodes.at(-1);
  const names: string[] = [];
  const numbers = new Map<string, number>();
  const numberOf = (name: string) => {
    let number = numbers.get(name);
    if (number === undefined) numbers.set(name, (number = names.push(name) - 1));
    return number;
  };
  const of = new Uint32Array(last ? last.first + last.count : 0);
  for (const node of nodes) {
    if (by === "model") {
      node.described.gpus.forEach((gpu, at) => {
        of[node.first + at] = numberOf(gpu[2] === null ? "" : models[gpu[2]]);
      });
    } else {
      of.fill(numberOf(nameOf(node, by)), node.first, node.first + node.count);
    }
  }
  return inOrder(names, of, by);
}

/** Empty: it is in none. */
function nameOf(node: FleetNode, by: Exclude<Grouping, "model">): string {
  return (by === "group" ? node.group : by === "rack" ? node.rack : prefix(node.name)) ?? "";
}

function inOrder(names: string[], of: Uint32Array, by: Grouping): Grouped {
  const order = names.map((_, at) => at).sort((a, b) => natural(names[a], names[b]));
  const places = new Uint32Array(names.length);
  order.forEach((old, place) => (places[old] = place));
  const sorted = order.map((old) => names[old]);
  return {
    names: sorted.map((name) => name || "none"),
    filters: sorted.map((name) => (name === "" ? null : by === "name" ? `node:${name}*` : term(by, name))),
    of: of.map((old) => places[old]),
  };
}

/** How many GPUs of each group are in each state. */
export function counts(frame: Frame, { names, of }: Grouped): Record<GpuState, number>[] {
  const table = new Uint32Array(names.length * (NOT_COUNTED + 1));
  const slots = Math.min(of.length, frame.gpuCount);
  for (let slot = 0; slot < slots; slot++) table[of[slot] * (NOT_COUNTED + 1) + frame.state[slot]]++;
  return names.map((_, at) => {
    const row = at * (NOT_COUNTED + 1);
    return Object.fromEntries(GPU_STATES.map((state, number) => [state, table[row + number]])) as Record<GpuState, number>;
  });
}

/** The first way that makes some groups, and not too many. */
export function bestGrouping(nodes: readonly FleetNode[], models: readonly string[]): Grouping {
  const good = GROUPINGS.find((by) => {
    const { size } = namesOf(nodes, models, by);
    return size > 1 && size <= MOST;
  });
  return good ?? "model";
}

function namesOf(nodes: readonly FleetNode[], models: readonly string[], by: Grouping): Set<string> {
  const found = new Set<string>();
  for (const node of nodes) {
    if (by !== "model") found.add(nameOf(node, by));
    else for (const gpu of node.described.gpus) found.add(gpu[2] === null ? "" : models[gpu[2]]);
  }
  return found;
}

/** What am I using, and is it working hard: a person's GPUs by node. */
import type { GpuView } from "../../../lib/api/api";
import { natural } from "../../../lib/format";
import { type Place, type ReservationView, isMine } from "../../../lib/reservations";

export interface MyNode {
  node: string;
  gpus: GpuView[];
  /** Mean of those that tell; null: none does. */
  utilization: number | null;
  /** How many of them are held and do nothing. */
  idle: number;
}

/** Those with most GPUs first. */
export function byNode(gpus: readonly GpuView[]): MyNode[] {
  const nodes = new Map<string, GpuView[]>();
  for (const gpu of gpus) {
    const on = nodes.get(gpu.node);
    if (on) on.push(gpu);
    else nodes.set(gpu.node, [gpu]);
  }
  return [...nodes]
    .map(([node, on]) => ({
      node,
      gpus: on,
      utilization: mean(on.map((gpu) => gpu.utilization_ratio ?? null)),
      idle: on.filter((gpu) => gpu.state === "idle").length,
    }))
    .sort((a, b) => b.gpus.length - a.gpus.length || natural(a.node, b.node));
}

export function mean(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** The mean of several lines at each step; what none of them knows is unknown. */
export function meanLine(lines: readonly (readonly number[])[], unknown: number): number[] {
  const steps = Math.max(0, ...lines.map((line) => line.length));
  return Array.from({ length: steps }, (_, at) => {
    const value = mean(lines.map((line) => (line[at] === undefined || line[at] === unknown ? null : line[at])));
    return value === null ? unknown : Math.round(value);
  });
}

/** What is reserved for somebody now, and they are not on. */
export interface Waiting {
  id: string;
  places: Place[];
  until: number;
}

/** `gpus` are those they are on; what ends first comes first. */
export function waiting(reservations: readonly ReservationView[], gpus: readonly GpuView[], person: string, now: number): Waiting[] {
  const used = new Set<string | null>(gpus.map((gpu) => gpu.id));
  return reservations
    .filter((one) => isMine(one, person) && one.start <= now && one.last > now)
    .map((one) => ({ id: one.id, places: one.gpus.filter((gpu) => !used.has(gpu.id)), until: one.last }))
    .filter((one) => one.places.length > 0)
    .sort((a, b) => a.until - b.until);
}

/** Lines for what waits, beside GPUs that are used. */
const MOST_WAITING = 2;

/** How many nodes and how many that wait are told one by one; for the others of a kind it has one line. */
export function shares(nodes: number, waits: number, most: number): { nodes: number; waits: number } {
  const fit = (count: number, lines: number) => (count <= lines ? count : Math.max(0, lines - 1));
  const half = Math.min(MOST_WAITING, Math.floor(most / 2));
  const forWaits = Math.min(waits, Math.max(half, most - nodes));
  return { nodes: fit(nodes, most - forWaits), waits: fit(waits, forWaits) };
}

/** Whether somebody is on it, by login or shown name. */
export function isOn(gpu: GpuView, person: string): boolean {
  const name = person.toLowerCase();
  return gpu.people?.some((use) => use.person.toLowerCase() === name) ?? false;
}

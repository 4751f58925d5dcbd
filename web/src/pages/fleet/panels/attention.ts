/** What is broken, hot, silent or wasted: the few lines somebody should look at. */
import type { GpuView, NodeView } from "../../../lib/api/api";
import { celsius, count } from "../../../lib/format";
import { type Frame, UNKNOWN_BYTE } from "../../../lib/live/frame";
import { href } from "../../../lib/route.svelte";
import { FLAG_LABELS, GPU_STATES, type GpuState } from "../../../lib/state";
import { indexOf } from "../processes";

export interface Line {
  /** Drawn before it. */
  state: GpuState;
  /** What: a GPU, a node, how many. */
  title: string;
  /** What is the matter. */
  words: string;
  /** "+3", "2 h". */
  side: string;
  link: string;
  /** The GPU it is about, for its details. */
  id?: string;
}

export interface Told {
  unhealthy: GpuView[];
  /** GPUs that may be hot; those that are say so with a flag. */
  warm: GpuView[];
  nodes: NodeView[];
  unhealthyCount: number;
  idle: Idle;
  /** How long the longest of the idle is held, in words; null: not known. */
  longest: string | null;
}

export interface Idle {
  count: number;
  /** Who holds them, those with most first. */
  holders: [string, number][];
}

const IDLE = GPU_STATES.indexOf("idle");
/** So hot that the hub may call it hot. */
export const WARM_CELSIUS = 75;

export function idleOf(frame: Frame): Idle {
  const counts = new Map<string, number>();
  let count = 0;
  for (let slot = 0; slot < frame.gpuCount; slot++) {
    if (frame.state[slot] !== IDLE) continue;
    count++;
    const person = frame.people[frame.person[slot]];
    if (person) counts.set(person, (counts.get(person) ?? 0) + 1);
  }
  return { count, holders: [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])) };
}

export function isWarm(frame: Frame): boolean {
  return frame.temperature.some((value) => value >= WARM_CELSIUS && value !== UNKNOWN_BYTE);
}

/** What is broken first, what is wasted last; at most `most`. */
export function lines(told: Told, most: number): Line[] {
  // An exported page answers with everything, whatever is asked: so each list is looked through again.
  const hot = told.warm.filter((gpu) => gpu.state !== "unhealthy" && gpu.flags?.some(isHot));
  const [down, stale] = ["down", "stale"].map((state) => told.nodes.filter((node) => node.state === state));
  const kinds = [hot, down, stale].filter((list) => list.length > 0).length + (told.idle.count > 0 ? 1 : 0);
  const sick = told.unhealthy.filter((gpu) => gpu.state === "unhealthy").slice(0, Math.max(1, most - kinds));
  const more = told.unhealthyCount - sick.length;
  const found = sick.map((gpu, at) =>
    gpuLine(gpu, "unhealthy", ailment(gpu), at === sick.length - 1 && more > 0 ? `+${count(more)}` : ""),
  );
  if (hot.length > 0) {
    const words = `${celsius(hot[0].temperature_celsius)}, ${hot[0].flags?.includes("throttled") ? "throttled" : "hot"}`;
    found.push(gpuLine(hot[0], hot[0].state as GpuState, words, rest(hot)));
  }
  if (down.length > 0) found.push(nodeLine(down, "down"));
  if (stale.length > 0) found.push(nodeLine(stale, "stale"));
  if (told.idle.count > 0) {
    found.push({
      state: "idle",
      title: `${count(told.idle.count)} ${told.idle.count === 1 ? "GPU" : "GPUs"}`,
      words: `held without work${holders(told.idle)}`,
      side: told.longest ?? "",
      link: href("fleet", null, { q: "idle" }),
    });
  }
  return found.slice(0, most);
}

function holders({ holders }: Idle): string {
  if (holders.length === 0) return "";
  const words = holders.slice(0, 2).map(([person, gpus]) => `${person} ${count(gpus)}`);
  return `: ${words.join(", ")}${holders.length > 2 ? ", …" : ""}`;
}

const isHot = (flag: string) => flag === "hot" || flag === "throttled";
const rest = (list: unknown[]) => (list.length > 1 ? `+${count(list.length - 1)}` : "");

function ailment(gpu: GpuView): string {
  if (gpu.fault) return gpu.fault;
  const flags = (gpu.flags ?? []).map((flag) => FLAG_LABELS[flag] ?? flag);
  return flags.slice(0, 2).join(", ") || "Unhealthy";
}

function gpuLine(gpu: GpuView, state: GpuState, words: string, side: string): Line {
  const title = `${gpu.node}:${indexOf(gpu, gpu.index ?? null)}`;
  return { state, title, words, side, link: href("gpu", gpu.id), id: gpu.id };
}

function nodeLine(nodes: NodeView[], state: "down" | "stale"): Line {
  const [first] = nodes;
  // The hub's words begin with the node; it stands before them here.
  const reason = first.reason.replace(`node ${first.name}: `, "");
  const words = reason || (state === "down" ? "cannot be reached" : "is silent");
  return { state, title: first.display_name, words, side: rest(nodes), link: href("node", first.name) };
}

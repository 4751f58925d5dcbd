/** What is broken, hot, silent, full or wasted: the few lines somebody should look at. */
import type { GpuView, NodeView } from "../../../lib/api/api";
import { celsius, count, natural, percent } from "../../../lib/format";
import type { Frame } from "../../../lib/live/frame";
import type { FleetNode } from "../../../lib/fleet.svelte";
import { type Trouble, together, troubleWords } from "../../../lib/findings";
import { type FindingView, findingWords } from "../../../lib/reservations";
import { whyUnknown } from "../../../lib/readings";
import { href } from "../../../lib/route.svelte";
import { FLAG_LABELS, GPU_STATES, type GpuState, NOT_COUNTED } from "../../../lib/state";
import { diskUse } from "../cards/host";
import { indexOf } from "../processes";

export interface Line {
  /** Drawn before it; null: it is not about GPUs. */
  state: GpuState | null;
  /** What: a GPU, a node, how many. */
  title: string;
  /** What is the matter. */
  words: string;
  /** All of it in a sentence, where the words are brief. */
  full?: string;
  /** "+3", "2 h". */
  side: string;
  link: string;
  /** The GPU it is about, for its details. */
  id?: string;
}

/** The first of those the hub has found. */
export interface Found<T> {
  items: T[];
  total: number;
}

export interface Told {
  unhealthy: GpuView[];
  unhealthyCount: number;
  /** Of which nobody can say whether they are in use. */
  unknown: Found<GpuView>;
  /** Other names of machines that are counted already. */
  twice: Found<NodeView>;
  /** The hottest first. */
  hot: Found<GpuView>;
  /** With other warnings. */
  warned: Found<GpuView>;
  down: Found<NodeView>;
  stale: Found<NodeView>;
  /** In full, with their disks. */
  full: Found<NodeView>;
  idle: Idle;
  /** Where reservations and use do not agree. */
  findings?: readonly FindingView[];
  /** Who looks, by their login. */
  me?: string | null;
  /** How long the longest of the idle has done nothing, in words; null: not known. */
  longest: string | null;
}

export const NONE: Found<never> = { items: [], total: 0 };

export interface Idle {
  count: number;
  /** Who holds them, those with most first. */
  holders: [string, number][];
}

const IDLE = GPU_STATES.indexOf("idle");
/** What slows a card down, and further warnings, as filters. Who is unhealthy is told of before. */
export const HOT = "-unhealthy flag:hot,throttled";
export const WARNED = "-unhealthy flag:vanished,rows_pending,pages_pending,nvlink_down,fabric";

/** Names of nodes none of whose GPUs is counted, at most `most`: they are other names of machines, or split and empty. */
export function uncounted(frame: Frame, nodes: readonly FleetNode[], most: number): string[] {
  const found: string[] = [];
  for (const { name, first, count } of nodes) {
    if (count === 0) continue;
    let slot = first;
    while (slot < first + count && frame.state[slot] === NOT_COUNTED) slot++;
    if (slot === first + count && found.push(name) === most) break;
  }
  return found;
}

export function idleOf(frame: Frame): Idle {
  const { state, person, people } = frame;
  const held = new Uint32Array(people.length);
  let count = 0;
  for (let slot = 0; slot < state.length; slot++) {
    if (state[slot] !== IDLE) continue;
    count++;
    held[person[slot]]++;
  }
  const holders: [string, number][] = [];
  people.forEach((name, number) => {
    if (name !== "" && held[number] > 0) holders.push([name, held[number]]);
  });
  return { count, holders: holders.sort((a, b) => b[1] - a[1] || natural(a[0], b[0])) };
}

/** What is broken first, what is wasted last; at most `most`. */
export function lines(told: Told, most: number): Line[] {
  const { unknown, hot, warned, down, stale, twice, full } = told;
  // What concerns who looks is told one by one, before all else.
  const troubles = together(told.findings ?? []);
  const mine = troubles.filter(({ first }) => told.me != null && (first.person === told.me || first.other === told.me));
  const others = troubles.filter((one) => !mine.includes(one));
  const kinds = [unknown, hot, warned, down, stale, twice, full].filter((found) => found.total > 0).length + (told.idle.count > 0 ? 1 : 0) + kindsOf(others).length + mine.length;
  const sick = told.unhealthy.slice(0, Math.max(1, most - kinds));
  const more = told.unhealthyCount - sick.length;
  const found = mine.map((one) => troubleLine([one]));
  found.push(...sick.map((gpu, at) => gpuLine(gpu, "unhealthy", ailment(gpu), at === sick.length - 1 && more > 0 ? `+${count(more)}` : "")));
  if (unknown.items.length > 0) found.push(unknownLine(unknown));
  found.push(...kindsOf(others).map((kind) => troubleLine(others.filter((one) => one.first.kind === kind))));
  if (hot.items.length > 0) {
    const [first] = hot.items;
    const words = `${celsius(first.temperature_celsius)}, ${first.flags?.includes("throttled") ? "throttled" : "hot"}`;
    found.push(gpuLine(first, first.state as GpuState, words, rest(hot)));
  }
  if (down.items.length > 0) found.push(nodeLine(down, "down"));
  if (stale.items.length > 0) found.push(nodeLine(stale, "stale"));
  if (warned.items.length > 0) {
    const [first] = warned.items;
    found.push(gpuLine(first, first.state as GpuState, ailment(first), rest(warned)));
  }
  if (twice.total > 0) found.push(twiceLine(twice));
  if (full.items.length > 0) found.push(diskLine(full));
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

const FINDING_STATES = { squatter: "unhealthy", blocked: "reserved", overrun: "idle", no_show: "idle" } as const;

/** Those there are, the worst first. */
function kindsOf(troubles: readonly Trouble[]): FindingView["kind"][] {
  return (Object.keys(FINDING_STATES) as FindingView["kind"][]).filter((kind) => troubles.some(({ first }) => first.kind === kind));
}

/** Of one kind: the first of them, and of how many GPUs there are more. */
function troubleLine(same: readonly Trouble[]): Line {
  const [{ first, place }, ...rest] = same;
  const more = rest.reduce((sum, one) => sum + one.count, 0);
  return {
    state: FINDING_STATES[first.kind],
    title: place || first.name,
    words: briefly(first),
    full: troubleWords(same[0]),
    side: more > 0 ? `+${count(more)}` : "",
    link: href("reservations", null, { id: first.reservation }),
    id: first.gpu ?? undefined,
  };
}

/** There is room for a few words: who troubles whom. */
function briefly(finding: FindingView): string {
  const other = finding.other_name ?? "somebody";
  switch (finding.kind) {
    case "squatter":
      return `${other} is on ${finding.name}'s booking`;
    case "blocked":
      return `${other} blocks ${finding.name}'s booking`;
    case "overrun":
      return findingWords(finding);
    case "no_show":
      return finding.node === null ? "reserved and does not use it" : findingWords(finding);
  }
}

function holders({ holders }: Idle): string {
  if (holders.length === 0) return "";
  const words = holders.slice(0, 2).map(([person, gpus]) => `${person} ${count(gpus)}`);
  return `: ${words.join(", ")}${holders.length > 2 ? ", …" : ""}`;
}

const rest = ({ total }: Found<unknown>) => (total > 1 ? `+${count(total - 1)}` : "");

function ailment(gpu: GpuView): string {
  if (gpu.fault) return gpu.fault;
  const told = gpu.flags ?? [];
  // A fabric that failed has a fault, too.
  const flags = told.filter((flag) => flag !== "fabric" || !told.includes("fabric_failed")).map((flag) => FLAG_LABELS[flag] ?? flag);
  return flags.slice(0, 2).join(", ") || "Unhealthy";
}

/** "2 GPUs unknown: Unknown Error from nvmlDeviceGetUtilizationRates". */
function unknownLine({ items, total }: Found<GpuView>): Line {
  const [first] = items;
  const words = `unknown: ${whyUnknown(first)}`;
  if (total === 1) return gpuLine(first, "unknown", words, "");
  const several = items.some((gpu) => whyUnknown(gpu) !== whyUnknown(first));
  return {
    state: "unknown",
    title: `${count(total)} GPUs`,
    words: several ? `${words} …` : words,
    full: items.map((gpu) => `${placeOf(gpu)}: ${whyUnknown(gpu)}`).join("\n"),
    side: "",
    link: href("fleet", null, { q: "unknown" }),
  };
}

const placeOf = (gpu: GpuView) => `${gpu.node}:${indexOf(gpu, gpu.index ?? null)}`;

function twiceLine(nodes: Found<NodeView>): Line {
  const first = nodes.items.at(0);
  if (first === undefined) {
    const title = nodes.total === 1 ? "1 node" : `${count(nodes.total)} nodes`;
    return { state: null, title, words: "listed under a second name, counted once", side: "", link: href("fleet") };
  }
  const words = `is the same machine as ${first.same_machine_as}, counted once`;
  return { state: null, title: first.display_name, words, side: rest(nodes), link: href("node", first.name) };
}

function gpuLine(gpu: GpuView, state: GpuState, words: string, side: string): Line {
  return { state, title: placeOf(gpu), words, side, link: href("gpu", gpu.id), id: gpu.id };
}

function diskLine(nodes: Found<NodeView>): Line {
  const [first] = nodes.items;
  const disks = (first.host?.disks ?? []).map(diskUse).sort((a, b) => (b.used ?? 0) - (a.used ?? 0));
  const words = disks.length > 0 ? `${disks[0].mount} is ${percent(disks[0].used)} full` : "a disk is full";
  return { state: null, title: first.display_name, words, side: rest(nodes), link: href("node", first.name) };
}

function nodeLine(nodes: Found<NodeView>, state: "down" | "stale"): Line {
  const [first] = nodes.items;
  // The hub's words begin with the node; it stands before them here.
  const reason = first.reason.replace(`node ${first.name}: `, "");
  const words = reason || (state === "down" ? "cannot be reached" : "is silent");
  return { state, title: first.display_name, words, side: rest(nodes), link: href("node", first.name) };
}

/** Processes as rows of a table, and their order. */
import type { GpuView, NodeView, ProcessView } from "../../lib/api/api";
import { natural } from "../../lib/format";
import { indexOf, isDead, isNiced, jobOf, runningFor } from "../fleet/processes";

export interface ProcessRow {
  /** Unique in the fleet. */
  id: string;
  process: ProcessView;
  node: string;
  gpus: GpuView[];
  /** "0–3" is not for MIG instances, so they are listed: "0, 1, 2.1". */
  places: string;
  person: string;
  command: string;
  memoryBytes: number | null;
  /** The mean over its GPUs, 0 to 1. */
  smRatio: number | null;
  /** 1 is one core. */
  cpuRatio: number | null;
  ramBytes: number | null;
  seconds: number | null;
  pid: number | null;
  nice: number | null;
  job: string | null;
  dead: boolean;
  niced: boolean;
}

export type ProcessColumn =
  | "node" | "gpu" | "person" | "command" | "memory" | "sm" | "cpu" | "ram" | "running" | "pid" | "nice" | "job";

/** The processes of a node; with `only`, those on one of these GPUs and what they hold there. */
export function processRows(node: NodeView, now: number, only?: ReadonlySet<string>): ProcessRow[] {
  const byUuid = new Map(node.gpus.map((gpu) => [gpu.uuid ?? gpu.id, gpu]));
  const rows: ProcessRow[] = [];
  const ids = new Set<string>();
  for (const [place, process] of (node.processes ?? []).entries()) {
    const uses = (process.gpus ?? []).filter((use) => only === undefined || only.has(byUuid.get(use.uuid ?? "")?.id ?? ""));
    if (only !== undefined && uses.length === 0) continue;
    const pid = `${node.name} ${process.pid ?? "?"}`;
    // A node may tell of a process twice.
    const id = ids.has(pid) ? `${pid} at ${place}` : pid;
    ids.add(id);
    const gpus = uses.flatMap((use) => byUuid.get(use.uuid ?? "") ?? []);
    rows.push({
      id,
      process,
      node: node.name,
      gpus,
      places: gpus.map((gpu) => indexOf(gpu, gpu.index ?? null)).sort(natural).join(", "),
      person: process.person ?? process.user ?? "",
      command: process.command ?? process.name ?? "",
      memoryBytes: total(uses.map((use) => use.memory_bytes)),
      smRatio: mean(uses.map((use) => use.sm_ratio)),
      cpuRatio: process.cpu_ratio ?? null,
      ramBytes: process.memory_bytes ?? null,
      seconds: runningFor(process, node, now),
      pid: process.pid ?? null,
      nice: process.nice ?? null,
      job: jobOf(process),
      dead: isDead(process),
      niced: isNiced(process),
    });
  }
  return rows;
}

const VALUES: Record<ProcessColumn, (row: ProcessRow) => string | number | null> = {
  node: (row) => row.node,
  gpu: (row) => row.places || null,
  person: (row) => row.person || null,
  command: (row) => row.command || null,
  memory: (row) => row.memoryBytes,
  sm: (row) => row.smRatio,
  cpu: (row) => row.cpuRatio,
  ram: (row) => row.ramBytes,
  running: (row) => row.seconds,
  pid: (row) => row.pid,
  nice: (row) => row.nice,
  job: (row) => row.job,
};

export function sortProcesses(rows: readonly ProcessRow[], column: ProcessColumn, down: boolean): ProcessRow[] {
  return sorted(rows, VALUES[column], down);
}

/** Unknown comes last, whichever way it is sorted; equal ones keep their order. */
export function sorted<T>(rows: readonly T[], value: (row: T) => string | number | null, down: boolean): T[] {
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    if (typeof left === "number" && typeof right === "number") return sign * (left - right);
    return sign * natural(String(left), String(right));
  });
}

function total(values: readonly (number | null | undefined)[]): number | null {
  const known = values.filter((value) => value != null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}

function mean(values: readonly (number | null | undefined)[]): number | null {
  const sum = total(values);
  return sum === null ? null : sum / values.filter((value) => value != null).length;
}

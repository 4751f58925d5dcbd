/** Who and what is on a GPU, as people ask for it. */
import type { GpuView, NodeView, ProcessView } from "../../lib/api/api";

/** A process on one GPU. */
export interface OnGpu {
  process: ProcessView;
  memoryBytes: number | null;
  /** Share of the GPU's processors, 0 to 1. */
  smRatio: number | null;
}

/** Those that hold most memory first. */
export function processesOn(node: NodeView, gpu: GpuView): OnGpu[] {
  const found: OnGpu[] = [];
  for (const process of node.processes ?? []) {
    const use = process.gpus?.find((one) => one.uuid === gpu.uuid);
    if (use) found.push({ process, memoryBytes: use.memory_bytes ?? null, smRatio: use.sm_ratio ?? null });
  }
  return found.sort((a, b) => (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0));
}

/** Slurm's own control groups, as the hub knows them (fleet/jobs.py), or `job_5`, all that the hub shows of others'. */
const SLURM_JOB = /^job_([0-9]+)$|\/(?:slurm[^/]*\/uid_[0-9]+|[^/]*slurmstepd\.scope|slurm[^/]*)\/job_([0-9]+)(?:\/|$)/;

/** Return the Slurm job a process belongs to, by its control group. */
export function jobOf(process: Pick<ProcessView, "cgroup">): string | null {
  const found = SLURM_JOB.exec(process.cgroup ?? "");
  return found?.[1] ?? found?.[2] ?? null;
}

/** It is gone, or only its entry is left, and the memory is still held. */
export function isDead(process: ProcessView): boolean {
  return process.vanished === true || process.state === "Z" || process.state === "X";
}

export function isNiced(process: ProcessView): boolean {
  return (process.nice ?? 0) > 0;
}

/** How long it runs, by its node's clock; `now` is the hub's, in seconds since 1970. */
export function runningFor(process: ProcessView, node: NodeView, now: number): number | null {
  if (process.start_time == null) return null;
  return Math.max(0, now + (node.clock_difference_seconds ?? 0) - process.start_time);
}

/** A GPU as people write it: "0", of a MIG instance "0.2". */
export function indexOf(gpu: GpuView | undefined, index: number | null): string {
  const card = index === null ? "?" : String(index);
  return gpu?.parent_uuid && gpu.mig_index != null ? `${card}.${gpu.mig_index}` : card;
}

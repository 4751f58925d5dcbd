import { describe, expect, it } from "vitest";
import type { GpuView, NodeView } from "../../lib/api/api";
import { processRows, sortProcesses, sorted } from "./process_rows";

const gpu = (index: number, told: Partial<GpuView> = {}): GpuView =>
  ({ node: "gpu07", id: `GPU-${index}`, uuid: `GPU-${index}`, index, state: "busy", ...told }) as GpuView;

const node = {
  name: "gpu07",
  gpus: [gpu(0), gpu(1), gpu(1, { id: "MIG-1", uuid: "MIG-1", parent_uuid: "GPU-1", mig_index: 2 })],
  clock_difference_seconds: 5,
  processes: [
    {
      node: "gpu07",
      pid: 10,
      person: "alice",
      command: "python train.py",
      start_time: 1000,
      cgroup: "/slurm/job_4711/step_0",
      gpus: [
        { uuid: "GPU-0", memory_bytes: 100, sm_ratio: 0.5 },
        { uuid: "GPU-1", memory_bytes: 50, sm_ratio: 0.7 },
      ],
    },
    { node: "gpu07", pid: 11, user: "bob", name: "sleep", nice: 10, vanished: true, gpus: [{ uuid: "MIG-1" }] },
  ],
} as unknown as NodeView;

describe("processes as rows", () => {
  it("adds up what a process holds on its GPUs", () => {
    const [first, second] = processRows(node, 1095);
    expect(first).toMatchObject({ places: "0, 1", memoryBytes: 150, smRatio: 0.6, seconds: 100, job: "4711", dead: false });
    expect(second).toMatchObject({ places: "1.2", person: "bob", command: "sleep", memoryBytes: null, dead: true, niced: true });
  });

  it("tells of one GPU only what is held there", () => {
    const rows = processRows(node, 1095, new Set(["GPU-1"]));
    expect(rows.map((row) => [row.pid, row.memoryBytes])).toEqual([[10, 50]]);
  });

  it("sorts, with unknown last both ways", () => {
    const rows = processRows(node, 1095);
    expect(sortProcesses(rows, "memory", true).map((row) => row.pid)).toEqual([10, 11]);
    expect(sortProcesses(rows, "memory", false).map((row) => row.pid)).toEqual([10, 11]);
    expect(sortProcesses(rows, "person", true).map((row) => row.pid)).toEqual([11, 10]);
    expect(sorted(["gpu10", "gpu2"], (name) => name, false)).toEqual(["gpu2", "gpu10"]);
  });

  it("gives each row a name of its own, whatever a node tells", () => {
    const twice = { ...node, processes: [...(node.processes ?? []), ...(node.processes ?? [])] } as NodeView;
    expect(new Set(processRows(twice, 0).map((row) => row.id)).size).toBe(4);
  });

  it("has no rows where processes are unknown", () => {
    expect(processRows({ ...node, processes: null } as unknown as NodeView, 0)).toEqual([]);
  });
});

import { expect, test } from "vitest";
import type { GpuView, NodeView, ProcessView } from "../../../lib/api/api";
import { testFleet } from "../fleet_for_tests";
import { indexOf, isDead, isNiced, jobOf, processesOn, runningFor } from "../processes";
import { addresses, cpuModel, cpuShape, diskUse, models } from "./host";
import { memoryParts } from "./memory";
import { Found } from "./shown";

test("the processors in short", () => {
  expect(cpuShape({ cpu_sockets: 2, cpu_cores: 64, cpu_threads: 128 })).toBe("2×32C/128T");
  expect(cpuShape({ cpu_sockets: 1, cpu_cores: 16, cpu_threads: 32 })).toBe("16C/32T");
  expect(cpuShape({ cpu_threads: 8 })).toBe("8T");
  expect(cpuShape({})).toBeNull();
  expect(cpuModel({ cpu_model: "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz" })).toBe("Xeon E5-2680 v4");
  expect(cpuModel({ cpu_model: "AMD EPYC 7742 64-Core Processor" })).toBe("EPYC 7742");
});

test("disks as df counts them; unknown stays unknown", () => {
  expect(diskUse({ mount: "/", kind: "nvme", total_bytes: 100, used_bytes: 45, available_bytes: 45 })).toMatchObject({ kind: "NVMe", used: 0.5 });
  expect(diskUse({ mount: "/x" })).toMatchObject({ kind: "", used: null });
});

test("addresses of what is up, IPv4 first", () => {
  const networks = [
    { interface: "eno1", addresses: ["fe80::1", "192.0.2.3"], up: true },
    { interface: "eno2", addresses: ["192.0.2.4"], up: false },
  ];
  expect(addresses({ networks }).map((one) => one.address)).toEqual(["192.0.2.3", "fe80::1"]);
  expect(models([{ model: "A", parent: null }, { model: "A", parent: null }, { model: "A 1g", parent: "x" }])).toBe("2× A");
});

test("memory by person fits what is used, and the rest is grey", () => {
  const view = { memory_total_bytes: 100, people: [{ person: "bob", memory_bytes: 10 }, { person: "alice", memory_bytes: 30 }] } as unknown as GpuView;
  const shares = (used: number | null) => memoryParts(used, view, "alice").map((part) => Number(part.share.toFixed(2)));
  expect(shares(0.5)).toEqual([0.3, 0.1, 0.1]);
  expect(shares(0.2)).toEqual([0.15, 0.05]);
  expect(shares(0)).toEqual([]);
  expect(memoryParts(0.4, undefined, null)).toEqual([{ share: 0.4, colour: "var(--stale)" }]);
});

test("processes of a GPU, those with most memory first", () => {
  const process = (pid: number, bytes: number, more: Partial<ProcessView> = {}) =>
    ({ pid, node: "n", start_time: 900, gpus: [{ uuid: "GPU-1", memory_bytes: bytes }], ...more }) as ProcessView;
  const node = { clock_difference_seconds: 5, processes: [process(1, 10), process(2, 20, { start_time: 800 }), process(3, 5, { gpus: [{ uuid: "GPU-2" }] })] } as unknown as NodeView;
  const gpu = { uuid: "GPU-1" } as GpuView;
  expect(processesOn(node, gpu).map((one) => one.process.pid)).toEqual([2, 1]);
  expect(runningFor(node.processes![0], node, 1000)).toBe(105);
  expect([jobOf(process(1, 1, { cgroup: "/slurm/uid_1/job_480126/step_0" })), jobOf(process(1, 1))]).toEqual(["480126", null]);
  expect([isDead(process(1, 1, { vanished: true })), isDead(process(1, 1, { state: "Z" })), isDead(process(1, 1))]).toEqual([true, true, false]);
  expect([isNiced(process(1, 1, { nice: 10 })), isNiced(process(1, 1, { nice: -5 }))]).toEqual([true, false]);
  expect([indexOf(undefined, 3), indexOf({ parent_uuid: "x", mig_index: 2 } as GpuView, 0), indexOf(undefined, null)]).toEqual(["3", "0.2", "?"]);
});

test("a card that was found stays until the filter changes", () => {
  const { nodes } = testFleet({ gpu1: [], gpu2: [], gpu3: [] });
  const found = new Found();
  const names = (text: string, matching: string[] | null) =>
    found.of(nodes, text, matching === null ? null : (node) => matching.includes(node.name)).map((node) => node.name);
  expect(names("", null)).toEqual(["gpu1", "gpu2", "gpu3"]);
  expect(names("free", ["gpu3"])).toEqual(["gpu3"]);
  expect(names("free", ["gpu1"])).toEqual(["gpu1", "gpu3"]);
  expect(names("busy", ["gpu2"])).toEqual(["gpu2"]);
  const again = found.of(nodes, "busy", (node) => node.name === "gpu2");
  expect(found.of(nodes, "busy", (node) => node.name === "gpu2")).toBe(again);
});

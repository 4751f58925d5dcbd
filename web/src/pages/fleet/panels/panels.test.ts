import { expect, test } from "vitest";
import type { GpuView, NodeView } from "../../../lib/api/api";
import { testFleet } from "../fleet_for_tests";
import { idleOf, isWarm, lines } from "./attention";
import { freeModels, visibleDevices } from "./free";
import { byNode, isOn, mean, meanLine } from "./mine";

const gpu = (more: Partial<GpuView>) => ({ node: "gpu01", id: "GPU-1", index: 0, state: "busy", ...more }) as GpuView;
const node = (more: Partial<NodeView>) => ({ name: "gpu01", display_name: "gpu01", reason: "", gpus: [], ...more }) as NodeView;

test("free GPUs by model: large cards first, parts of cards last, nodes with most first", () => {
  const { frame, nodes } = testFleet({
    gpu1: [{ state: "free", model: 1, memory: 40e9 }, { state: "free" }, { state: "busy" }],
    gpu2: [{ state: "free" }, { state: "free" }],
    gpu3: [{ state: "split", model: 1 }, { state: "free", model: 2, memory: 20e9, parent: "GPU-x" }],
  });
  const found = freeModels(frame, nodes, null);
  expect(found.map((one) => [one.model, one.count])).toEqual([["H100 80G", 3], ["A100 40G", 1], ["A100 40G 3g.20gb", 1]]);
  expect(found[0].places.map((place) => [place.node.name, place.gpus.length])).toEqual([["gpu2", 2], ["gpu1", 1]]);
  const mask = Uint8Array.from([1, 0, 1, 0, 0, 1, 1]);
  expect(freeModels(frame, nodes, mask).map((one) => one.count)).toEqual([1, 1]);
});

test("CUDA_VISIBLE_DEVICES as the hub's finder says it", () => {
  const one = testFleet({ gpu1: [{ state: "free" }, { state: "busy" }, { state: "free" }] }).nodes[0];
  expect(visibleDevices(one, [one.described.gpus[0], one.described.gpus[2]])).toBe("CUDA_VISIBLE_DEVICES=0,2");
  const mixed = testFleet({ gpu1: [{ state: "free", id: "GPU-a" }, { state: "free", model: 1, id: "GPU-b" }] }).nodes[0];
  expect(visibleDevices(mixed, mixed.described.gpus)).toBe("CUDA_VISIBLE_DEVICES=GPU-a,GPU-b");
  const nameless = testFleet({ gpu1: [{ state: "free", id: "gpu1/0" }, { state: "free", model: 1 }] }).nodes[0];
  expect(visibleDevices(nameless, nameless.described.gpus)).toBeNull();
  const mig = testFleet({ gpu1: [{ state: "split", model: 1 }, { state: "free", model: 2, id: "MIG-1", parent: "GPU-gpu1-0" }] }).nodes[0];
  expect(visibleDevices(mig, [mig.described.gpus[1]])).toBe("CUDA_VISIBLE_DEVICES=MIG-1");
});

test("what needs attention: broken, hot, down, stale, wasted, and no more than there is room for", () => {
  const { frame } = testFleet(
    { gpu1: [{ state: "idle", person: 1 }, { state: "idle", person: 2 }, { state: "idle", person: 2, temperature: 91 }] },
    undefined,
    ["", "alice", "bob"],
  );
  expect(isWarm(frame)).toBe(true);
  const told = {
    unhealthy: [gpu({ state: "unhealthy", flags: ["ecc_uncorrected", "xid"] }), gpu({ id: "GPU-2", index: 3, state: "unhealthy", fault: "fell off the bus" })],
    warm: [gpu({ id: "GPU-3", temperature_celsius: 91, flags: ["hot", "throttled"] }), gpu({ id: "GPU-4", temperature_celsius: 76 })],
    nodes: [node({ state: "down", reason: "node gpu01: timed out" }), node({ name: "gpu02", display_name: "gpu02", state: "stale" })],
    unhealthyCount: 7,
    idle: idleOf(frame),
    longest: "3h 12m",
  };
  const shown = lines(told, 5);
  expect(shown.map((line) => [line.state, line.title, line.words, line.side])).toEqual([
    ["unhealthy", "gpu01:0", "ECC errors, XID error", "+6"],
    ["busy", "gpu01:0", "91 °C, throttled", ""],
    ["down", "gpu01", "timed out", ""],
    ["stale", "gpu02", "is silent", ""],
    ["idle", "3 GPUs", "held without work: bob 2, alice 1", "3h 12m"],
  ]);
  expect(lines(told, 6)[1].words).toBe("fell off the bus");
  expect(lines({ ...told, unhealthy: [], unhealthyCount: 0, warm: [], nodes: [], idle: { count: 0, holders: [] } }, 5)).toEqual([]);
});

test("mine by node, with how hard they work", () => {
  const found = byNode([
    gpu({ node: "gpu10", utilization_ratio: 1 }),
    gpu({ node: "gpu2", utilization_ratio: 0.5 }),
    gpu({ node: "gpu2", state: "idle", utilization_ratio: 0 }),
    gpu({ node: "gpu3" }),
  ]);
  expect(found.map((one) => [one.node, one.gpus.length, one.utilization, one.idle])).toEqual([
    ["gpu2", 2, 0.25, 1],
    ["gpu3", 1, null, 0],
    ["gpu10", 1, 1, 0],
  ]);
  expect(mean([null, null])).toBeNull();
  expect(meanLine([[100, 255, 255], [200, 50, 255]], 255)).toEqual([150, 50, 255]);
  expect(isOn(gpu({ people: [{ person: "Alice", processes: 1 }] }), "alice")).toBe(true);
});

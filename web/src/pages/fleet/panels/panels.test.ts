import { expect, test } from "vitest";
import type { GpuView, NodeView } from "../../../lib/api/api";
import { modelNumbers } from "../../../lib/fleet.svelte";
import type { FindingView, ReservationView } from "../../../lib/reservations";
import { testFleet } from "../fleet_for_tests";
import { NONE, idleOf, lines, uncounted } from "./attention";
import { nextOnes } from "./booked";
import { freeModels, visibleDevices } from "./free";
import { byNode, isOn, mean, meanLine, shares, waiting } from "./mine";

const gpu = (more: Partial<GpuView>) => ({ node: "gpu01", id: "GPU-1", index: 0, state: "busy", ...more }) as GpuView;
const node = (more: Partial<NodeView>) => ({ name: "gpu01", display_name: "gpu01", reason: "", gpus: [], ...more }) as NodeView;

test("free GPUs by model: large cards first, parts of cards last, nodes with most first", () => {
  const { frame, nodes } = testFleet({
    gpu1: [{ state: "free", model: 1, memory: 40e9 }, { state: "free" }, { state: "busy" }],
    gpu2: [{ state: "free" }, { state: "free" }],
    gpu3: [{ state: "split", model: 1 }, { state: "free", model: 2, memory: 20e9, parent: "GPU-x" }],
  });
  const found = freeModels(frame, nodes, modelNumbers(frame.layout), null, 6);
  expect(found.map((one) => [one.model, one.count])).toEqual([["H100 80G", 3], ["A100 40G", 1], ["A100 40G 3g.20gb", 1]]);
  expect(found[0].places.map((place) => [place.node.name, place.gpus.length])).toEqual([["gpu2", 2], ["gpu1", 1]]);
  const mask = Uint8Array.from([1, 0, 1, 0, 0, 1, 1]);
  expect(freeModels(frame, nodes, modelNumbers(frame.layout), mask, 6).map((one) => one.count)).toEqual([1, 1]);
  const short = freeModels(frame, nodes, modelNumbers(frame.layout), null, 1)[0];
  expect([short.count, short.nodes, short.places.map((place) => place.node.name)]).toEqual([3, 2, ["gpu2"]]);
});

test("of many nodes with free GPUs the best are told, in natural order among equals", () => {
  const free = (count: number) => Array.from({ length: count }, () => ({ state: "free" as const }));
  const { frame, nodes } = testFleet({ gpu1: free(1), gpu2: free(3), gpu3: free(2), gpu4: free(3), gpu5: free(4), gpu6: free(3) });
  const [found] = freeModels(frame, nodes, modelNumbers(frame.layout), null, 3);
  expect(found.places.map((place) => [place.node.name, place.gpus.length])).toEqual([["gpu5", 4], ["gpu2", 3], ["gpu4", 3]]);
  expect([found.count, found.nodes]).toEqual([16, 6]);
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
  const told = {
    unhealthy: [gpu({ state: "unhealthy", flags: ["ecc_uncorrected", "xid"] }), gpu({ id: "GPU-2", index: 3, state: "unhealthy", fault: "fell off the bus" })],
    hot: { items: [gpu({ id: "GPU-3", temperature_celsius: 91, flags: ["hot", "throttled"] })], total: 1 },
    warned: { items: [gpu({ id: "GPU-5", index: 5, state: "idle", flags: ["vanished"] })], total: 4 },
    down: { items: [node({ state: "down", reason: "node gpu01: timed out" })], total: 300 },
    stale: { items: [node({ name: "gpu02", display_name: "gpu02", state: "stale" })], total: 1 },
    full: { items: [node({ host: { disks: [{ mount: "/", used_bytes: 1, available_bytes: 9 }, { mount: "/scratch", used_bytes: 97, available_bytes: 3 }] } })], total: 2 },
    unhealthyCount: 7,
    unknown: NONE,
    twice: NONE,
    idle: idleOf(frame),
    longest: "3h 12m",
  };
  const shown = lines(told, 7);
  expect(shown.map((line) => [line.state, line.title, line.words, line.side])).toEqual([
    ["unhealthy", "gpu01:0", "ECC errors, XID error", "+6"],
    ["busy", "gpu01:0", "91 °C, throttled", ""],
    ["down", "gpu01", "timed out", "+299"],
    ["stale", "gpu02", "is silent", ""],
    ["idle", "gpu01:5", "Process vanished", "+3"],
    [null, "gpu01", "/scratch is 97 % full", "+1"],
    ["idle", "3 GPUs", "held without work: bob 2, alice 1", "3h 12m"],
  ]);
  expect(lines(told, 5).length).toBe(5);
  expect(lines(told, 8)[1].words).toBe("fell off the bus");
  expect(lines({ ...told, unhealthy: [], unhealthyCount: 0, hot: NONE, warned: NONE, down: NONE, stale: NONE, full: NONE, idle: { count: 0, holders: [] } }, 5)).toEqual([]);
});

test("GPUs nobody can say anything of come right after what is broken, with the driver's words", () => {
  const reason = "Unknown Error from nvmlDeviceGetUtilizationRates";
  const silent = (more: Partial<GpuView> = {}) => gpu({ state: "unknown", failed_fields: ["utilization_ratio"], failed_reason: reason, ...more });
  const nothing = { unhealthy: [], unhealthyCount: 0, unknown: NONE, twice: NONE, hot: NONE, warned: NONE, down: NONE, stale: NONE, full: NONE, idle: { count: 0, holders: [] }, longest: null };
  const shown = (items: GpuView[]) => lines({ ...nothing, unknown: { items, total: items.length } }, 5).map((line) => [line.state, line.title, line.words]);
  expect(shown([silent()])).toEqual([["unknown", "gpu01:0", `unknown: ${reason}`]]);
  expect(shown([silent(), silent({ id: "GPU-2", index: 1 })])).toEqual([["unknown", "2 GPUs", `unknown: ${reason}`]]);
  expect(shown([silent(), silent({ id: "GPU-2", failed_reason: "timeout" })])).toEqual([["unknown", "2 GPUs", `unknown: ${reason} …`]]);
  const both = lines({ ...nothing, unhealthy: [gpu({ state: "unhealthy", flags: ["fabric_failed", "fabric"] })], unhealthyCount: 1, unknown: { items: [silent()], total: 1 } }, 5);
  expect(both.map((line) => line.words)).toEqual(["Fabric failed", `unknown: ${reason}`]);
});

test("a machine under two names is told of once", () => {
  const nothing = { unhealthy: [], unhealthyCount: 0, unknown: NONE, hot: NONE, warned: NONE, down: NONE, stale: NONE, full: NONE, idle: { count: 0, holders: [] }, longest: null };
  const twice = { items: [node({ name: "old01", display_name: "old01", same_machine_as: "gpu01" })], total: 2 };
  const [line] = lines({ ...nothing, twice }, 5);
  expect([line.state, line.title, line.words, line.side]).toEqual([null, "old01", "is the same machine as gpu01, counted once", "+1"]);
  expect(lines({ ...nothing, twice: { items: [], total: 1 } }, 5)[0].title).toBe("1 node");
  const { frame, nodes } = testFleet({ gpu01: [{ state: "free" }], old01: [{ state: "split" }], mig1: [{ state: "split" }, { state: "free", parent: "GPU-mig1-0" }], login: [] });
  expect(uncounted(frame, nodes, 3)).toEqual(["old01"]);
});

test("a GPU nobody can say anything of is never offered", () => {
  const { frame, nodes } = testFleet({ gpu1: [{ state: "unknown" }, { state: "free" }], gpu2: [{ state: "unknown" }] });
  const found = freeModels(frame, nodes, Uint16Array.of(0, 0, 0), null, 3);
  expect(found.map((one) => [one.count, one.places.map((place) => place.gpus.map((gpu) => gpu[1]))])).toEqual([[1, [[1]]]]);
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

test("what is reserved for me now and I am not on", () => {
  const spots = (ids: string[]) => ids.map((id, index) => ({ node: "gpu10", index: String(index), id }));
  const reserved = (more: Partial<ReservationView>) =>
    ({ id: "r1", person: "bob", name: "bob", start: 100, last: 900, gpus: spots(["GPU-1", "GPU-2"]), ...more }) as ReservationView;
  const found = (all: ReservationView[], on: string[]) =>
    waiting(all, on.map((id) => gpu({ id })), "Bob", 500).map((one) => [one.id, one.places.map((place) => place.index), one.until]);
  expect(found([reserved({}), reserved({ id: "r2", last: 700 })], [])).toEqual([["r2", ["0", "1"], 700], ["r1", ["0", "1"], 900]]);
  expect(found([reserved({})], ["GPU-1"])).toEqual([["r1", ["1"], 900]]);
  expect(found([reserved({})], ["GPU-1", "GPU-2"])).toEqual([]);
  // Of others, over, and to come.
  expect(found([reserved({ person: "ann" }), reserved({ last: 500 }), reserved({ start: 501 })], [])).toEqual([]);
});

test("what concerns who looks is told first and one by one, the rest by its kind", () => {
  const finding = (more: object) =>
    ({ kind: "squatter", reservation: "r1", node: "gpu01", index: "0", gpu: "GPU-1", person: "ann", name: "ann", other: "bob", other_name: "bob", since: 0, pids: [], message: "", release_at: null, ...more }) as FindingView;
  const eve = { other: "eve", other_name: "eve" };
  const findings = [finding({}), finding({ index: "1", ...eve }), finding({ index: "2", ...eve }), finding({ node: "gpu02", index: "0", ...eve }), finding({ index: "3" })];
  const told = { unhealthy: [], unhealthyCount: 0, unknown: NONE, twice: NONE, hot: NONE, warned: NONE, down: NONE, stale: NONE, full: NONE, idle: { count: 0, holders: [] }, longest: null, findings };
  const titles = (me: string | null, most = 5) => lines({ ...told, me }, most).map((line) => [line.title, line.side]);
  expect(titles(null)).toEqual([["gpu01:0,3", "+3"]]);
  expect(titles("eve")).toEqual([["gpu01:1–2", ""], ["gpu02:0", ""], ["gpu01:0,3", ""]]);
  expect(lines({ ...told, me: null }, 5).map((line) => [line.words, line.full])).toEqual([["bob is on ann's booking", "gpu01:0,3: bob computes on what ann has reserved"]]);
  const blocked = finding({ kind: "blocked" });
  expect(lines({ ...told, findings: [blocked] }, 5)[0].words).toBe("bob blocks ann's booking");
  expect(titles("eve", 2)).toEqual([["gpu01:1–2", ""], ["gpu02:0", ""]]);
});

test("booked next is in the order of time, and one's own are in it", () => {
  const coming = (id: string, start: number, mine = false) => ({ id, start, mine, state: "coming" }) as ReservationView;
  const all = [coming("far", 900, true), coming("soon", 200), coming("b", 300), coming("c", 400), coming("mine", 600, true), coming("begun", 50)];
  const told = (most: number) => {
    const { shown, more } = nextOnes(all, 100, most);
    return [shown.map((one) => one.id), more];
  };
  expect(told(5)).toEqual([["soon", "b", "c", "mine", "far"], 0]);
  expect(told(4)).toEqual([["soon", "mine", "far"], 2]);
  expect(told(2)).toEqual([["mine"], 4]);
  expect(nextOnes([], 100, 5)).toEqual({ shown: [], more: 0 });
});

test("yours has no more lines than there is room for, and none about nothing", () => {
  expect(shares(0, 2, 2)).toEqual({ nodes: 0, waits: 2 });
  expect(shares(0, 3, 2)).toEqual({ nodes: 0, waits: 1 });
  expect(shares(1, 4, 5)).toEqual({ nodes: 1, waits: 4 });
  expect(shares(9, 9, 5)).toEqual({ nodes: 2, waits: 1 });
  expect(shares(9, 9, 2)).toEqual({ nodes: 0, waits: 0 });
  for (const most of [2, 5])
    for (let nodes = 0; nodes < 8; nodes++)
      for (let waits = 0; waits < 8; waits++) {
        const told = shares(nodes, waits, most);
        const used = told.nodes + told.waits + (told.nodes < nodes ? 1 : 0) + (told.waits < waits ? 1 : 0);
        expect(used, `${nodes} ${waits} ${most}`).toBeLessThanOrEqual(most);
        expect(Math.min(told.nodes, told.waits)).toBeGreaterThanOrEqual(0);
      }
});

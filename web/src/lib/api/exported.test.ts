import { expect, test } from "vitest";
import type { ExportData } from "../hub";
import type { GpuView, LogEntry, NodeView } from "./api";
import { answer } from "./exported";

const gpu = (id: string, node: string, more: Partial<GpuView>): GpuView => ({ id, node, state: "busy", ...more }) as GpuView;
const gpus = [
  gpu("GPU-1", "gpu1", { temperature_celsius: 80, flags: ["hot"] }),
  gpu("GPU-2", "gpu2", { temperature_celsius: 90, flags: ["throttled"] }),
  gpu("GPU-3", "gpu2", { state: "unhealthy", temperature_celsius: 99, flags: ["xid", "hot"] }),
  gpu("GPU-4", "gpu2", { state: "idle", idle_seconds: 5 }),
  gpu("GPU-5", "gpu2", { state: "idle", idle_seconds: 500 }),
];
const node = (name: string, state: NodeView["state"]) =>
  ({ name, state, gpus: gpus.filter((one) => one.node === name) }) as NodeView;
const data = {
  nodes: [node("gpu1", "up"), node("gpu2", "down")],
  people: [],
  others: 3,
  logs: { gpu2: [{ time: 1, message: "refused" } as LogEntry] },
  history: { node: null, step_seconds: 10, end: 100, gpus: gpus.map(({ id, node }) => ({ id, node, utilization: [1], memory: [], temperature: [], power: [] })) },
} as unknown as ExportData;

const ids = (query: Record<string, string>) => (answer(data, "/api/v1/gpus", query) as { items: GpuView[] }).items.map((one) => one.id);

test("what the panels ask for", () => {
  expect(ids({ q: "-unhealthy flag:hot,throttled", sort: "-temperature" })).toEqual(["GPU-2", "GPU-1"]);
  expect(ids({ state: "idle", sort: "-idle" })).toEqual(["GPU-5", "GPU-4"]);
  expect(ids({})).toEqual(gpus.map((one) => one.id));
  expect(answer(data, "/api/v1/nodes", { state: "down" })).toMatchObject({ total: 1, items: [{ name: "gpu2" }] });
});

test("logs and the last minutes", () => {
  expect(answer(data, "/api/v1/nodes/gpu2/log", {})).toMatchObject({ total: 1, items: [{ message: "refused" }] });
  expect(answer(data, "/api/v1/nodes/gpu1/log", {})).toMatchObject({ total: 0 });
  expect(answer(data, "/api/v1/history", { node: "gpu1" })).toMatchObject({ node: "gpu1", end: 100, gpus: [{ id: "GPU-1" }] });
  const both = answer(data, "/api/v1/history", { nodes: "gpu1,gpu2" }) as { gpus: unknown[] };
  expect(both.gpus.length).toBe(5);
});

test("people whose names are left out are counted", () => {
  expect(answer(data, "/api/v1/users", { q: "ann" })).toEqual({ items: [], total: 0, next: null, others: 3 });
});

test("what is not there is refused", () => {
  expect(() => answer(data, "/api/v1/nodes/gpu9", {})).toThrow(/no node "gpu9"/);
  expect(() => answer({ ...data, history: null }, "/api/v1/history", { node: "gpu1" })).toThrow(/does not have this/);
});

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { NodeView } from "../api/api";
import { Details } from "./details.svelte";
import type { Layout } from "./frame";

const layout = (count: number): Layout => ({
  models: [],
  nodes: Array.from({ length: count }, (_, at) => ({ name: `n${at}`, display_name: `n${at}`, group: null, rack: null, gpus: [] })),
});
let shown = layout(100);
let asked: string[] = [];

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  shown = layout(100);
  asked = [];
  vi.stubGlobal("document", { baseURI: "http://hub.example/gpulse/" });
  vi.stubGlobal("fetch", async (url: URL) => {
    asked.push(url.pathname + url.search);
    const [limit, offset] = ["limit", "offset"].map((name) => Number(url.searchParams.get(name)));
    const items = shown.nodes.slice(offset, offset + limit).map((node) => ({ name: node.name }) as NodeView);
    return new Response(JSON.stringify({ items, total: 100, next: null }));
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settled = () => vi.advanceTimersByTimeAsync(0);

test("neighbours are asked for together, under the page's own path", async () => {
  const details = new Details(() => shown);
  details.watch(() => ["n9", "n10", "n15"]);
  await settled();
  expect(asked).toEqual(["/gpulse/api/v1/nodes?detail=true&limit=8&offset=8"]);
  expect(details.get("n10")?.name).toBe("n10");
});

test("what is new is not asked for again, what is old is", async () => {
  const details = new Details(() => shown);
  details.watch(() => ["n1"]);
  await vi.advanceTimersByTimeAsync(1000);
  details.ask();
  expect(asked.length).toBe(1);
  await vi.advanceTimersByTimeAsync(1000);
  details.ask();
  expect(asked.length).toBe(2);
});

test("many are asked for at once the first time, then only some each second", async () => {
  const details = new Details(() => shown);
  details.watch(() => shown.nodes.map((node) => node.name));
  await settled();
  expect(asked.length).toBe(13);
  for (let second = 0; second < 10; second++) {
    await vi.advanceTimersByTimeAsync(1000);
    details.ask();
  }
  expect(asked.length).toBeLessThanOrEqual(13 + 40);
});

test("nobody looks: nothing is asked, and after a while nothing is kept", async () => {
  const details = new Details(() => shown);
  const stop = details.watch(() => ["n1"]);
  await settled();
  stop();
  await vi.advanceTimersByTimeAsync(5000);
  details.ask();
  expect(asked.length).toBe(1);
  expect(details.get("n1")).toBeDefined();
  await vi.advanceTimersByTimeAsync(60_000);
  details.ask();
  expect(details.get("n1")).toBeUndefined();
});

test("a node that leaves the fleet is forgotten", async () => {
  const details = new Details(() => shown);
  details.watch(() => ["n99"]);
  await settled();
  expect(details.get("n99")).toBeDefined();
  shown = layout(50);
  details.ask();
  expect(details.get("n99")).toBeUndefined();
});

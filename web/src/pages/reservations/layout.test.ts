import { expect, test } from "vitest";
import type { ReservationView } from "../../lib/reservations";
import { testFleet } from "../fleet/fleet_for_tests";
import { Blocks, placeOfBlock, runs } from "./blocks";
import { besideGpu, nodeRow, rowBySlot, rowsOf, sameRows, slotsIn } from "./rows";
import { instancesOf } from "./spots";

const free = { state: "free" } as const;
const { nodes, frame } = testFleet({ a: [free, free, free], b: [free, free] });
const none = () => false;

function reservation(id: string, slots: number[], start: number, last: number): ReservationView {
  return {
    id, person: "ann", name: "ann", maker: "ann", gpus: slots.map((slot) => ({ node: "", index: "", id: String(slot) })), start,
    end: last, last, comment: "", hold: false, made_at: 0, revision: 1, ended_at: null, ending: null, imported: false,
    state: "coming", mine: false, may_change: false, may_end: false,
  };
}

function blocksOf(all: ReservationView[], collapsed = none as (node: string) => boolean): Blocks {
  const rows = rowsOf(nodes, null, collapsed);
  const bySlot = rowBySlot(rows, nodes, frame.gpuCount);
  return new Blocks(all, rows, (gpu) => (gpu.id === null ? [] : [bySlot[Number(gpu.id)]]));
}

test("below each node its GPUs", () => {
  expect([...rowsOf(nodes, null, none)]).toEqual([nodeRow(0), 0, 1, 2, nodeRow(1), 3, 4]);
  expect([...rowsOf(nodes, null, (name) => name === "a")]).toEqual([nodeRow(0), nodeRow(1), 3, 4]);
  expect([...rowsOf(nodes, Uint8Array.from([0, 1, 0, 0, 0]), none)]).toEqual([nodeRow(0), 1]);
  expect(sameRows(rowsOf(nodes, null, none), rowsOf(nodes, null, none))).toBe(true);
});

test("a row for each GPU, the node's where it is collapsed, none where it is filtered out", () => {
  expect([...rowBySlot(rowsOf(nodes, null, none), nodes, 5)]).toEqual([1, 2, 3, 5, 6]);
  expect([...rowBySlot(rowsOf(nodes, null, (name) => name === "a"), nodes, 5)]).toEqual([0, 0, 0, 2, 3]);
  expect([...rowBySlot(rowsOf(nodes, Uint8Array.from([0, 1, 0, 0, 0]), none), nodes, 5)]).toEqual([-1, 1, -1, -1, -1]);
});

test("beside a GPU stands who is on it, and of one that is down that it is", () => {
  expect(besideGpu({ state: "busy", person: "ann" })).toBe("ann");
  expect(besideGpu({ state: "stale", person: "ann" })).toBe("ann");
  expect(besideGpu({ state: "free", person: null })).toBe("Free");
  expect(besideGpu({ state: "unknown", person: null })).toBe("Unknown");
  expect(besideGpu({ state: "down", person: "ann" })).toBe("Down");
  expect(besideGpu({ state: null, person: null })).toBe("split (MIG)");
});

test("neighbours are one block", () => {
  expect(runs([1, 2, 3, 5, 7, 8])).toEqual([[1, 3], [5, 5], [7, 8]]);
  const blocks = blocksOf([reservation("x", [0, 1, 4], 10, 20)]);
  expect(blocks.of("x").map(({ first, last }) => [first, last])).toEqual([[1, 2], [6, 6]]);
});

test("a block that begins above the window is seen, and each once", () => {
  const blocks = blocksOf([reservation("x", [0, 1, 2], 10, 20), reservation("y", [3], 30, 40)]);
  expect(blocks.inSight(3, 7, 0, 100).map((block) => block.reservation.id)).toEqual(["x", "y"]);
  // It ends where the window begins: nothing of it is there.
  expect(blocks.inSight(0, 7, 20, 30)).toEqual([]);
  expect(blocks.at(5, 35, 36)).toHaveLength(1);
});

test("what was cancelled, and what has no row, is not drawn", () => {
  const lost = { ...reservation("lost", [], 1, 2), gpus: [{ node: "gone", index: "0", id: null }] };
  const blocks = blocksOf([reservation("cancelled", [0], 10, 10), lost]);
  expect(blocks.inSight(0, 7, 0, 100)).toEqual([]);
});

test("in the head of a collapsed node it is a line", () => {
  const blocks = blocksOf([reservation("x", [0, 2], 10, 20)], (name) => name === "a");
  expect(blocks.of("x")).toMatchObject([{ first: 0, last: 0, thin: true }]);
});

test("collapsed nodes beside each other have a line each", () => {
  const blocks = blocksOf([reservation("x", [0, 3], 10, 20)], () => true);
  expect(blocks.of("x")).toMatchObject([{ first: 0, last: 0, thin: true }, { first: 1, last: 1, thin: true }]);
});

test("lines of one time lie below each other, and no two in one place unless there are too many", () => {
  const times: [number, number][] = [[10, 30], [20, 40], [30, 50], [25, 35]];
  const blocks = blocksOf(times.map(([start, last], at) => reservation(`r${at}`, [at % 3], start, last)), () => true);
  const lanes = times.map((_, at) => blocks.of(`r${at}`)[0]);
  expect(lanes.map(({ lane, lanes: of }) => [lane, of])).toEqual([[0, 3], [1, 3], [0, 3], [2, 3]]);
  const places = lanes.map((one) => placeOfBlock(one, 26));
  expect(places).toEqual([{ top: 2, height: 6 }, { top: 9, height: 6 }, { top: 2, height: 6 }, { top: 16, height: 6 }]);
  const many = blocksOf(Array.from({ length: 9 }, (_, at) => reservation(`r${at}`, [0], at, 100)), () => true);
  const lowest = placeOfBlock(many.of("r8")[0], 26);
  expect(lowest.height).toBeGreaterThanOrEqual(4);
  expect(lowest.top + lowest.height).toBeLessThanOrEqual(24);
  expect(placeOfBlock(blocksOf([reservation("x", [0], 1, 2)], () => true).of("x")[0], 26)).toEqual({ top: 8, height: 8 });
  expect(placeOfBlock(blocksOf([reservation("x", [0, 1], 1, 2)]).of("x")[0], 26)).toEqual({ top: 2, height: 47 });
});

test("what is meant by the rows that are marked", () => {
  const meant = (first: number, last: number, collapsed = none as (node: string) => boolean, mask: Uint8Array | null = null) => {
    const rows = rowsOf(nodes, mask, collapsed);
    return slotsIn(rows.subarray(first, last + 1), rows, nodes, mask);
  };
  // From one node to the next: its head lies between, and is not all of it.
  expect(meant(2, 5)).toEqual([1, 2, 3]);
  expect(meant(0, 1)).toEqual([0]);
  expect(meant(0, 0)).toEqual([0, 1, 2]);
  expect(meant(0, 2, (name) => name === "a")).toEqual([0, 1, 2, 3]);
  expect(meant(0, 1, () => true)).toEqual([0, 1, 2, 3, 4]);
  expect(meant(0, 0, () => true, Uint8Array.from([0, 1, 1, 0, 0]))).toEqual([1, 2]);
});

test("who has a card that is split has its instances", () => {
  const split = testFleet({ a: [free], b: [{ state: "split", id: "card" }, { state: "free", parent: "card" }, { state: "free", parent: "card" }] });
  const instances = instancesOf(split.nodes);
  expect([...instances]).toEqual([["card", [2, 3]]]);
  const rows = rowsOf(split.nodes, null, none);
  const bySlot = rowBySlot(rows, split.nodes, split.frame.gpuCount);
  const blocks = new Blocks([reservation("x", [1], 10, 20)], rows, () => [1, ...(instances.get("card") ?? [])].map((slot) => bySlot[slot]));
  expect(blocks.of("x")).toMatchObject([{ first: 3, last: 5 }]);
});

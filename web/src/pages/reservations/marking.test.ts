import { expect, test } from "vitest";
import { DAY, HOUR } from "../../lib/moments";
import { cellAfter, cellWords, moveBy } from "./cells";
import { pickedCells, pickedDrag, pulled } from "./picked";
import { PlacesError, readPlaces } from "./places";

// Before the first Date.
process.env.TZ = "Europe/Berlin";

const at = (text: string) => new Date(text).getTime() / 1000;
const NOW = at("2026-11-18T12:00:00");

test("from one corner to the other, whichever way", () => {
  const next = (time: number) => time + HOUR;
  const [one, other] = [{ row: 7, time: NOW + 3 * HOUR }, { row: 2, time: NOW }];
  const expected = { first: 2, last: 7, from: NOW, to: NOW + 4 * HOUR };
  expect(pickedCells(one, other, next)).toEqual(expected);
  expect(pickedCells(other, one, next)).toEqual(expected);
});

test("nothing begins in the past", () => {
  const drag = (from: number, to: number) => pickedDrag({ row: 1, time: from }, { row: 1, time: to }, HOUR, NOW);
  expect(drag(NOW - 5 * HOUR, NOW + HOUR)).toEqual({ first: 1, last: 1, from: NOW, to: NOW + HOUR });
  expect(drag(NOW - 5 * HOUR, NOW - 2 * HOUR)).toBeNull();
  expect(drag(NOW + HOUR, NOW + HOUR)).toMatchObject({ from: NOW + HOUR, to: NOW + 2 * HOUR });
});

test("an edge that is pulled leaves something over", () => {
  const times = { start: NOW + 2 * HOUR, end: NOW + 4 * HOUR };
  expect(pulled(times, "end", NOW + 9 * HOUR, HOUR, NOW)).toEqual({ start: times.start, end: NOW + 9 * HOUR });
  expect(pulled(times, "end", NOW, HOUR, NOW)).toEqual({ start: times.start, end: NOW + 3 * HOUR });
  expect(pulled(times, "start", NOW + 9 * HOUR, HOUR, NOW)).toEqual({ start: NOW + 3 * HOUR, end: times.end });
  expect(pulled(times, "start", NOW - 9 * HOUR, HOUR, NOW)).toEqual({ start: NOW, end: times.end });
  // What runs can end now, not before.
  expect(pulled({ start: NOW - HOUR * 5, end: NOW + HOUR }, "end", NOW - 2 * HOUR, HOUR, NOW)).toEqual({ start: NOW - HOUR * 5, end: NOW });
});

test("keys move by GPU and by cell", () => {
  const here = { row: 3, time: NOW };
  const move = (key: string) => moveBy(key, here, HOUR, 10, 5, NOW);
  expect(move("ArrowDown")).toEqual({ row: 4, time: NOW });
  expect(move("PageUp")).toEqual({ row: 0, time: NOW });
  expect(move("PageDown")).toEqual({ row: 8, time: NOW });
  expect(move("ArrowRight")).toEqual({ row: 3, time: NOW + HOUR });
  expect(move("ArrowLeft")).toEqual({ row: 3, time: NOW - HOUR });
  expect(move("x")).toBeNull();
});

test("a cell of a day is a day, also where the clocks change", () => {
  expect(cellAfter(at("2026-10-25T00:00:00"), DAY)).toBe(at("2026-10-26T00:00:00"));
  expect(cellAfter(at("2026-03-29T00:00:00"), 6 * HOUR)).toBe(at("2026-03-29T06:00:00"));
  expect(cellAfter(at("2026-03-29T06:00:00"), 6 * HOUR, -1)).toBe(at("2026-03-29T00:00:00"));
});

test("what a screen reader hears", () => {
  expect(cellWords("gpu1 GPU 0", NOW + HOUR, NOW + 2 * HOUR, [], NOW)).toBe("gpu1 GPU 0, 13:00–14:00, not reserved");
  expect(cellWords("gpu1 GPU 0", NOW - HOUR, NOW, [], NOW)).toBe("gpu1 GPU 0, 11:00–12:00, past");
});

const indices = (node: string) => ({ gpu1: ["0", "1", "2", "3"], gpu2: ["0", "1.0", "1.1"] })[node];
const read = (text: string) => readPlaces(text, indices).map(({ node, index }) => `${node}:${index}`);

test("GPUs as people write them", () => {
  expect(read("gpu1:0-2")).toEqual(["gpu1:0", "gpu1:1", "gpu1:2"]);
  expect(read("gpu1:3,0 gpu2")).toEqual(["gpu1:3", "gpu1:0", "gpu2:0", "gpu2:1.0", "gpu2:1.1"]);
  expect(read("gpu1:0, gpu2:1.1")).toEqual(["gpu1:0", "gpu2:1.1"]);
  expect(read("gpu1:0,gpu2:0")).toEqual(["gpu1:0", "gpu2:0"]);
  expect(read("gpu[1-2]:0")).toEqual(["gpu1:0", "gpu2:0"]);
  expect(read("gpu1:0 gpu1:0")).toEqual(["gpu1:0"]);
  expect(read("  ")).toEqual([]);
});

test.each([
  ["gpu9", 'there is no node "gpu9"'],
  ["gpu1:7", "gpu1 has no GPU 7; it has 0, 1, 2, 3"],
  ["gpu1:3-1", '"3-1" in "gpu1:3-1" is no range'],
  ["gpu1:x", '"x" in "gpu1:x" is no GPU; write gpu03:0-3 or gpu03:0.2'],
  ["gpu[1:0", '"gpu[1": a bracket is not closed'],
])("%s is refused in words", (text, words) => {
  expect(() => read(text)).toThrow(new PlacesError(words));
});

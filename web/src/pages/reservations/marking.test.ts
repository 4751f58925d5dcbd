import { expect, test } from "vitest";
import { DAY, HOUR } from "../../lib/moments";
import { cellAfter, cellWords, moveBy } from "./cells";
import { pickedCells, pickedDrag, pulled } from "./picked";

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

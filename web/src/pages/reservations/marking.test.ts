import { expect, test } from "vitest";
import { DAY, HOUR } from "../../lib/moments";
import { cellAfter, cellWords, moveBy } from "./cells";
import { pickedCells, pickedDrag, pickedWords, pulled, pulledWords, scrolledBy } from "./picked";

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

test("rows go on while a hand rests at an edge, and not where it only began there", () => {
  const by = (y: number, begin: number) => scrolledBy(y, begin, 100, 500);
  expect(by(300, 200)).toBe(0);
  expect(by(490, 300)).toBeGreaterThan(0);
  expect(by(700, 300)).toBeGreaterThan(by(490, 300));
  expect(by(110, 300)).toBeLessThan(0);
  expect(by(-400, 300)).toBe(-by(900, 300));
  // Along the last row that is seen.
  expect(by(490, 488)).toBe(0);
  expect(by(110, 490)).toBeLessThan(0);
});

test("an edge that is pulled leaves something over", () => {
  const times = { start: NOW + 2 * HOUR, end: NOW + 4 * HOUR };
  expect(pulled(times, "end", NOW + 9 * HOUR, HOUR, NOW)).toEqual({ start: times.start, end: NOW + 9 * HOUR });
  expect(pulled(times, "end", NOW, HOUR, NOW)).toEqual({ start: times.start, end: NOW + 3 * HOUR });
  expect(pulled(times, "start", NOW + 9 * HOUR, HOUR, NOW)).toEqual({ start: NOW + 3 * HOUR, end: times.end });
  expect(pulled(times, "start", NOW - 9 * HOUR, HOUR, NOW)).toEqual({ start: NOW, end: times.end });
});

test("what runs cannot be pulled to an end before the next step", () => {
  const end = (of: number, time: number, seconds: number, now: number) => pulled({ start: NOW - 60 * DAY, end: of }, "end", time, seconds, now).end;
  expect(end(NOW + 4 * HOUR, NOW - 2 * HOUR, HOUR, NOW + 600)).toBe(NOW + HOUR);
  expect(end(NOW + 4 * HOUR, NOW, HOUR, NOW)).toBe(NOW + HOUR);
  expect(end(NOW + 4 * HOUR, NOW + 2 * HOUR, HOUR, NOW)).toBe(NOW + 2 * HOUR);
  // By the clock on the wall: a day of 25 hours.
  expect(end(at("2026-10-30T12:00:00"), 0, DAY, at("2026-10-25T00:30:00"))).toBe(at("2026-10-26T00:00:00"));
  // One that ends before the step stays as it is, and is not extended.
  expect(end(NOW + 1200, NOW - 2 * HOUR, HOUR, NOW + 600)).toBe(NOW + 1200);
  expect(end(NOW + 1200, NOW + 3 * HOUR, HOUR, NOW + 600)).toBe(NOW + 3 * HOUR);
});

test("what is shorter than a step stays as it is", () => {
  const times = { start: NOW + 2 * HOUR, end: NOW + 2 * HOUR + 600 };
  expect(pulled(times, "end", NOW, HOUR, NOW)).toEqual(times);
  expect(pulled(times, "start", NOW + 9 * HOUR, HOUR, NOW)).toEqual(times);
});

test("what a hand is told while it pulls or marks", () => {
  const pulling = { id: "r1", row: 3, start: NOW + 2 * DAY, end: NOW + 2 * DAY + 6 * HOUR };
  expect(pulledWords({ ...pulling, edge: "end" })).toEqual(["Fri 20 Nov 18:00", "6 h"]);
  expect(pulledWords({ ...pulling, edge: "start" })).toEqual(["Fri 20 Nov 12:00", "6 h"]);
  expect(pickedWords({ first: 1, last: 2, from: NOW + HOUR, to: NOW + 5 * HOUR }, NOW)).toEqual(["13:00–17:00", "4 h"]);
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

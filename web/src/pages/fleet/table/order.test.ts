import { expect, test } from "vitest";
import { natural } from "../../../lib/format";
import { UNKNOWN_KEY, ranks, sorted } from "./order";

const rows = (...numbers: number[]) => Uint32Array.from(numbers);

test("rows are sorted both ways, unknown last, equals as they were", () => {
  const keys = rows(70_000, 5, UNKNOWN_KEY, 5, 0, UNKNOWN_KEY - 1);
  const all = rows(0, 1, 2, 3, 4, 5);
  expect([...sorted(all, keys, false)]).toEqual([4, 1, 3, 0, 5, 2]);
  expect([...sorted(all, keys, true)]).toEqual([5, 0, 1, 3, 4, 2]);
});

test("keys of one digit, with 65,535 as the most and unknown beside it", () => {
  const keys = rows(UNKNOWN_KEY, 65_535, 0, 65_534, UNKNOWN_KEY);
  expect([...sorted(rows(0, 1, 2, 3, 4), keys, false)]).toEqual([2, 3, 1, 0, 4]);
  expect([...sorted(rows(0, 1, 2, 3, 4), keys, true)]).toEqual([1, 3, 2, 0, 4]);
});

test("some rows of many", () => {
  const keys = Uint32Array.from({ length: 10 }, (_, row) => row);
  expect([...sorted(rows(9, 4, 7), keys, false)]).toEqual([4, 7, 9]);
  expect([...sorted(rows(), keys, true)]).toEqual([]);
});

test("agrees with the language's own sort for many rows", () => {
  const keys = Uint32Array.from({ length: 20_000 }, (_, at) => (at * 2_654_435_761) % 100_003);
  const all = Uint32Array.from(keys, (_, at) => at);
  const expected = [...all].sort((a, b) => keys[a] - keys[b] || a - b);
  expect([...sorted(all, keys, false)]).toEqual(expected);
});

test("texts have ranks in natural order", () => {
  expect([...ranks(["gpu10", null, "gpu2", "", "gpu10"], natural)]).toEqual([1, UNKNOWN_KEY, 0, UNKNOWN_KEY, 1]);
});

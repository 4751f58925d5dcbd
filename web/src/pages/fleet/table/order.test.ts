import { expect, test } from "vitest";
import { natural } from "../../../lib/format";
import { UNKNOWN_KEY, ranks, sorted } from "./order";

const rows = (...numbers: number[]) => Uint32Array.from(numbers);

test("rows are sorted both ways, unknown last, equals as they were", () => {
  const keys = [70_000, 5, UNKNOWN_KEY, 5, 0, 4_000_000_000];
  const all = rows(0, 1, 2, 3, 4, 5);
  expect([...sorted(all, (row) => keys[row], false)]).toEqual([4, 1, 3, 0, 5, 2]);
  expect([...sorted(all, (row) => keys[row], true)]).toEqual([5, 0, 1, 3, 4, 2]);
});

test("some rows of many", () => {
  expect([...sorted(rows(9, 4, 7), (row) => row, false)]).toEqual([4, 7, 9]);
  expect([...sorted(rows(), (row) => row, true)]).toEqual([]);
});

test("agrees with the language's own sort for many rows", () => {
  const keys = Uint32Array.from({ length: 20_000 }, (_, at) => (at * 2_654_435_761) % 100_003);
  const all = Uint32Array.from(keys, (_, at) => at);
  const expected = [...all].sort((a, b) => keys[a] - keys[b] || a - b);
  expect([...sorted(all, (row) => keys[row], false)]).toEqual(expected);
});

test("texts have ranks in natural order", () => {
  expect([...ranks(["gpu10", null, "gpu2", "", "gpu10"], natural)]).toEqual([1, UNKNOWN_KEY, 0, UNKNOWN_KEY, 1]);
});

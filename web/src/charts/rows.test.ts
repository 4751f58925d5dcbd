import { expect, it } from "vitest";
import { hottest, mean, total } from "./rows";

it("takes means and sums of what is known", () => {
  expect(mean([1, null, 3])).toBe(2);
  expect(mean([null])).toBeNull();
  expect(total([[1, null, null], [2, 5, null]])).toEqual([3, 5, null]);
  expect(total([])).toEqual([]);
});

it("finds the row that ends highest", () => {
  expect(hottest([[90, 40], [30, 60], [50, null]])).toBe(1);
  expect(hottest([[null]])).toBe(-1);
});

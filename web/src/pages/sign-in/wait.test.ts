import { expect, test } from "vitest";
import { secondsLeft } from "./wait";

test.each([
  [null, 1000, 0],
  [6000, 1000, 5],
  [6001, 1000, 6],
  [1000, 1000, 0],
  [1000, 9000, 0],
])("until %s, at %s: %s s", (until, now, expected) => {
  expect(secondsLeft(until, now)).toBe(expected);
});

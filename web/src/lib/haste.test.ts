import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Haste } from "./haste.svelte";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a click that follows at once was meant for what was there before", () => {
  const haste = new Haste();
  expect(haste.ignores({ detail: 1 })).toBe(false);
  haste.begin();
  vi.advanceTimersByTime(250);
  expect([0, 1, 2].map((detail) => haste.ignores({ detail }))).toEqual([false, true, true]);
  haste.begin();
  vi.advanceTimersByTime(400);
  expect(haste.ignores({ detail: 1 })).toBe(true);
  vi.advanceTimersByTime(200);
  expect([0, 1, 2].map((detail) => haste.ignores({ detail }))).toEqual([false, false, true]);
});

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CAME_FROM, cameBack } from "./came_back";

let kept: Map<string, string>;
beforeEach(() => {
  kept = new Map();
  vi.stubGlobal("sessionStorage", { getItem: (key: string) => kept.get(key) ?? null, removeItem: (key: string) => kept.delete(key) });
});
afterEach(() => vi.unstubAllGlobals());

test.each([
  ["#/nodes/gpu07", "", true, "#/nodes/gpu07"],
  ["#/nodes/gpu07", "#/", true, "#/nodes/gpu07"],
  ["#/nodes/gpu07", "#/people", true, null],
  ["#/nodes/gpu07", "", false, null],
  ["https://evil.example", "", true, null],
])("was at %s, comes to %s, signed in %s", (before, hash, signedIn, expected) => {
  kept.set(CAME_FROM, before);
  expect(cameBack(hash, signedIn)).toBe(expected);
  expect(kept.size).toBe(0);
});

test("nobody was away", () => {
  expect(cameBack("", true)).toBeNull();
});

import { expect, test } from "vitest";
import { colour, hue } from "./person";

const names = Array.from({ length: 500 }, (_, at) => `user${at}`);

test("a colour is stable", () => {
  expect(colour("alice")).toBe(colour("alice"));
  expect(colour("alice")).toMatch(/^oklch\(var\(--person-[ab]\) [0-9.]+\)$/);
});

test("nobody is green, which is free, or amber, which warns", () => {
  for (const name of names) expect(hue(name) <= 50 || hue(name) >= 199).toBe(true);
});

test("colours are spread over people", () => {
  const used = new Map<string, number>();
  for (const name of names) used.set(colour(name), (used.get(colour(name)) ?? 0) + 1);
  expect(used.size).toBe(48);
  expect(Math.max(...used.values())).toBeLessThan(30);
});

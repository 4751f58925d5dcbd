import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { colour, hue } from "./person";

const names = Array.from({ length: 500 }, (_, at) => `user${at}`);

test("a colour is stable", () => {
  expect(colour("alice")).toBe(colour("alice"));
  expect(colour("alice")).toMatch(/^oklch\(var\(--person-[ab]\) [0-9.]+\)$/);
});

/** Of a colour as `#rrggbb`, in oklch. */
function hueOf(hex: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(hex.slice(at, at + 2), 16) / 255) ** 2.2);
  const l = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
  const m = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
  const s = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
  const [a, b] = [1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
  return (Math.atan2(b, a) * 180) / Math.PI;
}

test("nobody is green, which is free, amber, which warns, or red, which alarms, in any theme", () => {
  const sheet = readFileSync(new URL("../styles/tokens.css", import.meta.url), "utf8");
  const taken = [...sheet.matchAll(/--(?:free|idle|unhealthy): (#[0-9a-f]{6});/g)].map(([, hex]) => hueOf(hex));
  expect(taken).toHaveLength(12);
  const apart = (one: number, other: number) => Math.abs(((one - other + 540) % 360) - 180);
  for (const name of names) expect(Math.min(...taken.map((other) => apart(hue(name), other)))).toBeGreaterThan(35);
});

test("colours are spread over people", () => {
  const used = new Map<string, number>();
  for (const name of names) used.set(colour(name), (used.get(colour(name)) ?? 0) + 1);
  expect(used.size).toBe(48);
  expect(Math.max(...used.values())).toBeLessThan(30);
});

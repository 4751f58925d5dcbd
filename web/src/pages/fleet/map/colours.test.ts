import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { GPU_STATES } from "../../../lib/state";
import { type Rgb, type StateColours, oklab, ramp, smallColours } from "./colours";

const TOKENS = readFileSync(new URL("../../../styles/tokens.css", import.meta.url), "utf8");

/** The colours of each theme, as the style sheet has them. */
function themes(): Map<string, Map<string, Rgb>> {
  const found = new Map<string, Map<string, Rgb>>();
  for (const [, name, body] of TOKENS.matchAll(/\[data-theme="(\w+)"\]\s*\{([^}]*)\}/g)) {
    const colours = new Map<string, Rgb>();
    for (const [, token, hex] of body.matchAll(/--([\w-]+):\s*#([0-9a-f]{6})/g)) {
      const number = Number.parseInt(hex, 16);
      colours.set(token, [number >> 16, (number >> 8) & 255, number & 255]);
    }
    found.set(name, colours);
  }
  return found;
}

// How people see who lack the cones for red or green (Machado, Oliveira and Fernandes, 2009), on linear light.
const EYES: Record<string, number[][]> = {
  most: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
};

function seen(colour: Rgb, eyes: number[][]): Rgb {
  const linear = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  const parts = eyes.map((row) => {
    const value = Math.min(1, Math.max(0, row[0] * linear[0] + row[1] * linear[1] + row[2] * linear[2]));
    return 255 * (value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055);
  });
  return [parts[0], parts[1], parts[2]];
}

function apart(one: Rgb, other: Rgb, eyes: number[][]): number {
  const [a, b] = [oklab(seen(one, eyes)), oklab(seen(other, eyes))];
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

describe.each([...themes()])("small cells in the theme %s", (_, tokens) => {
  const shapes = Object.fromEntries(GPU_STATES.map((state) => [state, tokens.get(state)!])) as StateColours;
  const small = smallColours(shapes, tokens.get("busy-soft")!, tokens.get("surface")!);

  test.each(Object.entries(EYES))("are told apart by %s", (_, eyes) => {
    const others = GPU_STATES.filter((state) => state !== "busy").map((state) => [state, small.states[state]] as const);
    const all = [...others, ...small.busy.map((colour) => ["busy", colour] as const)];
    for (const [name, colour] of others) {
      expect(apart(colour, tokens.get("surface")!, eyes), `${name} on the surface`).toBeGreaterThan(0.075);
      for (const [other, beside] of all) {
        if (other !== name) expect(apart(colour, beside, eyes), `${name} beside ${other}`).toBeGreaterThan(0.08);
      }
    }
  });
});

test("a ramp goes through its stops", () => {
  const steps = ramp([[0, 0, 0], [100, 0, 0], [100, 200, 0]], 5);
  expect(steps).toEqual([[0, 0, 0], [50, 0, 0], [100, 0, 0], [100, 100, 0], [100, 200, 0]]);
});

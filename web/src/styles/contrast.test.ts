import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

type Colour = [number, number, number];
const sheet = readFileSync(new URL("tokens.css", import.meta.url), "utf8");

const linear = (value: number) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const luminance = ([red, green, blue]: Colour) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;

/** Of two colours in linear light, by WCAG 2.1. */
function contrast(one: Colour, other: Colour): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function fromHex(text: string): Colour {
  return [1, 3, 5].map((at) => linear(parseInt(text.slice(at, at + 2), 16) / 255)) as Colour;
}

/** Oklch to linear light; what no screen can show is cut off. */
function fromOklch(lightness: number, chroma: number, hue: number): Colour {
  const [a, b] = [chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const light = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return light.map((value) => Math.min(1, Math.max(0, value))) as Colour;
}

describe.each(["light", "dark", "yellow", "blue"])("the theme %s", (theme) => {
  const block = sheet.split(`[data-theme="${theme}"] {`)[1].split("\n}")[0];
  const colours = Object.fromEntries(
    [...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, fromHex(value)]),
  );

  test.each(["text", "text-2", "text-3", "accent"])("%s can be read on every ground", (name) => {
    for (const ground of ["surface", "bg", "surface-2"]) {
      expect(contrast(colours[name], colours[ground])).toBeGreaterThanOrEqual(4.5);
    }
  });

  test("a main button can be read", () => {
    expect(contrast(colours["on-accent"], colours.accent)).toBeGreaterThanOrEqual(4.5);
  });

  test.each(["free", "busy", "reserved", "idle", "unhealthy", "unknown", "stale", "down"])("%s can be seen and read", (state) => {
    expect(contrast(colours[state], colours.surface)).toBeGreaterThanOrEqual(3);
    expect(contrast(colours[state], colours.bg)).toBeGreaterThanOrEqual(3);
    expect(contrast(colours[`${state}-ink`], colours.surface)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(colours[`${state}-ink`], colours[`${state}-soft`])).toBeGreaterThanOrEqual(4.5);
  });

  test.each(["a", "b"])("people of depth %s can be seen in every hue", (depth) => {
    const [lightness, chroma] = block.match(new RegExp(`--person-${depth}: ([\\d.]+) ([\\d.]+);`))!.slice(1).map(Number);
    for (let hue = 0; hue < 360; hue += 5) {
      expect(contrast(fromOklch(lightness, chroma, hue), colours.surface)).toBeGreaterThanOrEqual(3);
    }
  });
});

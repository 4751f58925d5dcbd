/** A person's colour: the same everywhere and always; never green, which means free, nor amber, which warns. */

const HUES = 24;
/** Hues of oklch from 200 over 360 to 50. */
const FROM = 200;
const SPAN = 210;

/** A number that spreads well, from the name (FNV-1a with a last stir). */
function hash(name: string): number {
  let value = 0x811c9dc5;
  for (const letter of new TextEncoder().encode(name)) value = Math.imul(value ^ letter, 0x01000193) >>> 0;
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d) >>> 0;
  return (value ^ (value >>> 13)) >>> 0;
}

export function hue(name: string): number {
  return (FROM + ((hash(name) % HUES) * SPAN) / HUES) % 360;
}

/** For styles; follows the theme by itself. Two depths for each hue, so that fewer people look alike. */
export function colour(name: string): string {
  return `oklch(var(--person-${depth(name)}) ${hue(name).toFixed(1)})`;
}

/** For a canvas, which knows no variables. Reads the theme: keep the answer until the theme changes. */
export function paint(name: string): string {
  const fill = getComputedStyle(document.documentElement).getPropertyValue(`--person-${depth(name)}`).trim();
  return `oklch(${fill} ${hue(name).toFixed(1)})`;
}

function depth(name: string): "a" | "b" {
  return (hash(name) >>> 8) % 2 === 0 ? "a" : "b";
}

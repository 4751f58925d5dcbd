/** A person's colour: the same everywhere and always; never green, which means free, nor amber, which warns,
 *  nor red, which alarms. */

const HUES = 24;
/** Hues of oklch from 200 to 350: turquoise, blue, violet, pink. */
const FROM = 200;
const SPAN = 150;
/** A page that is open for months meets many names. */
const MOST_KEPT = 20_000;

interface Tint {
  depth: "a" | "b";
  hue: number;
  colour: string;
}

const letters = new TextEncoder();
const tints = new Map<string, Tint>();

/** A number that spreads well, from the name (FNV-1a with a last stir). */
function hash(name: string): number {
  let value = 0x811c9dc5;
  for (const letter of letters.encode(name)) value = Math.imul(value ^ letter, 0x01000193) >>> 0;
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d) >>> 0;
  return (value ^ (value >>> 13)) >>> 0;
}

/** Made once for a name: rows and cells ask again and again. */
function tint(name: string): Tint {
  let known = tints.get(name);
  if (known === undefined) {
    const number = hash(name);
    const hue = FROM + ((number % HUES) * SPAN) / HUES;
    const depth = (number >>> 8) % 2 === 0 ? "a" : "b";
    known = { depth, hue, colour: `oklch(var(--person-${depth}) ${hue.toFixed(1)})` };
    if (tints.size >= MOST_KEPT) tints.clear();
    tints.set(name, known);
  }
  return known;
}

export function hue(name: string): number {
  return tint(name).hue;
}

/** For styles; follows the theme by itself. Two depths for each hue, so that fewer people look alike. */
export function colour(name: string): string {
  return tint(name).colour;
}

/** For a canvas, which knows no variables. Reads the theme: keep the answer until the theme changes. */
export function paint(name: string): string {
  return paints([name])[0];
}

/** The same for many, with one look at the theme. */
export function paints(names: readonly string[]): string[] {
  const style = getComputedStyle(document.documentElement);
  const fills = { a: style.getPropertyValue("--person-a").trim(), b: style.getPropertyValue("--person-b").trim() };
  return names.map((name) => `oklch(${fills[tint(name).depth]} ${tint(name).hue.toFixed(1)})`);
}

/** Sorts rows by numbers, fast enough for a fleet of any size to be sorted at once. */

/** Comes last, whichever way one sorts. */
export const UNKNOWN_KEY = 0xffffffff;
const HALF = 0x10000;

/** The rows by ascending or descending key (0 to 2^32 - 2); rows with the same key stay as they were. */
export function sorted(rows: Uint32Array, key: (row: number) => number, descending: boolean): Uint32Array {
  const keys = new Uint32Array(rows.length);
  for (let at = 0; at < rows.length; at++) {
    const value = key(rows[at]);
    keys[at] = value === UNKNOWN_KEY || !descending ? value : UNKNOWN_KEY - 1 - value;
  }
  let order = new Uint32Array(rows.length);
  for (let at = 0; at < order.length; at++) order[at] = at;
  order = byDigit(order, keys, 0);
  order = byDigit(order, keys, 16);
  return order.map((at) => rows[at]);
}

/** One pass of a radix sort: by 16 bits of the keys. */
function byDigit(order: Uint32Array<ArrayBuffer>, keys: Uint32Array, shift: number): Uint32Array<ArrayBuffer> {
  const starts = new Uint32Array(HALF + 1);
  for (const key of keys) starts[((key >>> shift) & (HALF - 1)) + 1]++;
  for (let digit = 0; digit < HALF; digit++) starts[digit + 1] += starts[digit];
  const next = new Uint32Array(order.length);
  for (const at of order) next[starts[(keys[at] >>> shift) & (HALF - 1)]++] = at;
  return next;
}

/** The place of each text in natural order; texts that are not there come last. */
export function ranks(texts: readonly (string | null)[], compare: (a: string, b: string) => number): Uint32Array {
  const names = [...new Set(texts.filter((text): text is string => text !== null && text !== ""))].sort(compare);
  const place = new Map(names.map((name, at) => [name, at]));
  return Uint32Array.from(texts, (text) => place.get(text ?? "") ?? UNKNOWN_KEY);
}

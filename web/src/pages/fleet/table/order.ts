/** Sorts rows by numbers, fast enough for a fleet of any size to be sorted at once. */

/** Comes last, whichever way one sorts. */
export const UNKNOWN_KEY = 0xffffffff;
const BITS = 16;
const DIGITS = 1 << BITS;

/** The rows by ascending or descending key (0 to 2^32 - 2, by row); rows with the same key stay as they were. */
export function sorted(rows: Uint32Array, keys: Uint32Array, descending: boolean): Uint32Array {
  let most = 0;
  for (let at = 0; at < rows.length; at++) {
    const key = keys[rows[at]];
    if (key !== UNKNOWN_KEY && key > most) most = key;
  }
  const last = most + 1;
  const own = new Uint32Array(rows.length);
  let order = new Uint32Array(rows.length);
  for (let at = 0; at < rows.length; at++) {
    const key = keys[rows[at]];
    own[at] = key === UNKNOWN_KEY ? last : descending ? most - key : key;
    order[at] = at;
  }
  // Most figures are small: one pass is enough for them.
  for (let shift = 0; shift < 32 && (shift === 0 || last >>> shift > 0); shift += BITS) {
    order = byDigit(order, own, shift, Math.min(DIGITS, (last >>> shift) + 1));
  }
  const found = new Uint32Array(rows.length);
  for (let at = 0; at < rows.length; at++) found[at] = rows[order[at]];
  return found;
}

/** One pass of a radix sort: by 16 bits of the keys, of which there are so many values. */
function byDigit(
  order: Uint32Array<ArrayBuffer>,
  keys: Uint32Array,
  shift: number,
  digits: number,
): Uint32Array<ArrayBuffer> {
  const starts = new Uint32Array(digits + 1);
  for (let at = 0; at < keys.length; at++) starts[((keys[at] >>> shift) & (DIGITS - 1)) + 1]++;
  for (let digit = 0; digit < digits; digit++) starts[digit + 1] += starts[digit];
  const next = new Uint32Array(order.length);
  for (let at = 0; at < order.length; at++) {
    const row = order[at];
    next[starts[(keys[row] >>> shift) & (DIGITS - 1)]++] = row;
  }
  return next;
}

/** The place of each text in natural order; texts that are not there come last. */
export function ranks(texts: readonly (string | null)[], compare: (a: string, b: string) => number): Uint32Array {
  const names = [...new Set(texts.filter((text): text is string => text !== null && text !== ""))].sort(compare);
  const place = new Map(names.map((name, at) => [name, at]));
  return Uint32Array.from(texts, (text) => place.get(text ?? "") ?? UNKNOWN_KEY);
}

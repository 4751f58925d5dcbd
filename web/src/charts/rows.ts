/** Sums over rows of figures; unknown stays unknown. */
import type { Value } from "./timeline";

export function mean(values: readonly Value[]): Value {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** All rows in one: at each time what is known of it, null where nothing is. */
export function total(rows: readonly Value[][]): Value[] {
  return Array.from({ length: rows[0]?.length ?? 0 }, (_, at) => {
    const known = rows.map((row) => row[at] ?? null).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
  });
}

/** The number of the row that ends highest; -1: nothing is known. */
export function hottest(rows: readonly Value[][]): number {
  let best = -1;
  let highest = -Infinity;
  rows.forEach((row, number) => {
    const last = row.findLast((value) => value !== null) ?? null;
    if (last !== null && last > highest) [best, highest] = [number, last];
  });
  return best;
}

/** Names that are nearly another: what somebody may have meant who typed one that is not there. */

const MOST = 3;
/** Of the letters of the longer name so many must be the same. */
const LEAST_ALIKE = 0.6;

/** The nearest first; in the order they came where they are equally near. */
export function nearNames(name: string, names: Iterable<string>, most = MOST): string[] {
  const wanted = name.toLowerCase();
  const found: { one: string; changes: number }[] = [];
  for (const one of names) {
    const longest = Math.max(one.length, wanted.length);
    const allowed = Math.floor(longest * (1 - LEAST_ALIKE));
    if (Math.abs(one.length - wanted.length) > allowed) continue;
    const changes = distance(wanted, one.toLowerCase());
    if (changes <= allowed) found.push({ one, changes });
  }
  return found
    .sort((a, b) => a.changes - b.changes)
    .slice(0, most)
    .map(({ one }) => one);
}

/** How many letters must be typed, taken away or changed to make one of the other. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length];
}

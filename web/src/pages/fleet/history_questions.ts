/** As few questions as possible for the last minutes of some nodes. */

/** The hub tells of so many at once. */
export const MOST_NODES = 100;
/** In a set of nodes other characters mean something. */
const PLAIN = /^[A-Za-z0-9._-]+$/;
/** What is drawn of them. */
const ONLY = { only: "utilization" };

export type HistoryQuestion = { only: string } & ({ nodes: string } | { node: string });

export function questions(nodes: readonly string[]): HistoryQuestion[] {
  const plain = nodes.filter((node) => PLAIN.test(node));
  const found: HistoryQuestion[] = nodes.filter((node) => !PLAIN.test(node)).map((node) => ({ ...ONLY, node }));
  for (let at = 0; at < plain.length; at += MOST_NODES) {
    found.push({ ...ONLY, nodes: plain.slice(at, at + MOST_NODES).join(",") });
  }
  return found;
}

/** Sets of nodes as HPC people write them: gpu[01-16,20], a1,b[2-8/2], gpu[01-16]!gpu07. */

/** A set that nobody would mean. */
export const MOST_NODES = 100_000;

export class NodeSetError extends Error {}

const RANGE = /^([0-9]{1,9})(?:-([0-9]{1,9})(?:\/([0-9]{1,9}))?)?$/;

/** The names of a set, each as it is written out. */
export function expand(text: string): Set<string> {
  if (!/^(?:\[[^[\]]*\]|[^[\]])*$/.test(text)) throw new NodeSetError("a bracket is not closed");
  let names = new Set<string>();
  // "," adds, "!" takes away, "&" keeps what is in both, "^" what is in one: from left to right.
  for (const [, sign, pattern] of text.matchAll(/(^|[,!&^])((?:\[[^\]]*\]|[^,!&^[])*)/g)) {
    const more = expandPattern(pattern.trim());
    if (sign === "!") names = new Set([...names].filter((name) => !more.has(name)));
    else if (sign === "&") names = new Set([...names].filter((name) => more.has(name)));
    else if (sign === "^") names = new Set([...[...names].filter((n) => !more.has(n)), ...[...more].filter((n) => !names.has(n))]);
    else for (const name of more) names.add(name);
    if (names.size > MOST_NODES) throw tooMany();
  }
  if (names.size === 0) throw new NodeSetError("it names no node");
  return names;
}

function expandPattern(pattern: string): Set<string> {
  if (pattern === "" || pattern.startsWith("@")) throw new NodeSetError(`"${pattern}" is not a node`);
  let names = [""];
  for (const part of pattern.split(/(\[[^\]]*\])/)) {
    const ends = part.startsWith("[") ? part.slice(1, -1).split(",").flatMap(expandRange) : [part];
    if (names.length * ends.length > MOST_NODES) throw tooMany();
    names = names.flatMap((name) => ends.map((end) => name + end));
  }
  return new Set(names);
}

function expandRange(part: string): string[] {
  const match = RANGE.exec(part);
  if (match === null) throw new NodeSetError(`"${part}" is not a number or a range of at most nine digits, such as 01-16`);
  if (match[2] === undefined) return [match[1]];
  const [first, last, step] = [Number(match[1]), Number(match[2]), Number(match[3] ?? 1)];
  if (last - first > MOST_NODES) throw tooMany();
  if (last < first || step < 1) throw new NodeSetError(`"${part}" is no range`);
  const width = match[1].startsWith("0") ? match[1].length : 0;
  const names: string[] = [];
  for (let number = first; number <= last; number += step) names.push(String(number).padStart(width, "0"));
  return names;
}

function tooMany(): NodeSetError {
  return new NodeSetError(`it names more than ${MOST_NODES.toLocaleString("en")} nodes; write a smaller range`);
}

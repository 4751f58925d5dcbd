/**
 * Sets of nodes as HPC people write them: gpu[01-16,20], a1,b[2-8/2], gpu[01-16]!gpu07.
 * The same as the hub's fleet/node_sets.py: a name is compared with a set that is not written out.
 */

/** A set that nobody would mean. */
export const MOST_NODES = 100_000;
/** Patterns with brackets in one set: every name is compared with each of them. */
export const MOST_PATTERNS = 100;
/** Brackets in one pattern. */
const MOST_BRACKETS = 8;

export class NodeSetError extends Error {}

const RANGE = /^([0-9]{1,9})(?:-([0-9]{1,9})(?:\/([0-9]{1,9}))?)?$/;
const DIGITS = /^[0-9]+$/;

/** Numbers from first to last, filled with zeros up to a width; `single` is one as it is written. */
interface Span {
  single: string | null;
  first: number;
  last: number;
  step: number;
  width: number;
}

interface Bracket {
  spans: Span[];
  shortest: number;
  longest: number;
  /** The text after it. */
  behind: string;
}

interface Pattern {
  head: string;
  brackets: Bracket[];
}

type Sign = "," | "!" | "&" | "^";

interface Operand {
  sign: Sign;
  names: Set<string>;
  patterns: Pattern[];
}

export class NodeSet {
  readonly #operands: Operand[] = [];
  /** How many names it has at most. */
  readonly size: number;

  /** Throws NodeSetError in words that name what is wrong. */
  constructor(text: string) {
    let operand: Operand = { sign: ",", names: new Set(), patterns: [] };
    this.#operands.push(operand);
    for (const [sign, part] of signed(text)) {
      const name = part.trim();
      if (name === "") throw new NodeSetError(`a name is missing beside "${sign}"`);
      if (name.startsWith("@")) throw new NodeSetError(`"${name}" is a group, and groups are not known here`);
      // Names that are added one after the other are looked up at once.
      if (sign !== "," || operand.sign !== ",") this.#operands.push((operand = { sign, names: new Set(), patterns: [] }));
      if (name.includes("[")) operand.patterns.push(readPattern(name));
      else operand.names.add(name);
    }
    const patterns = this.#operands.flatMap((one) => one.patterns);
    if (patterns.length > MOST_PATTERNS) {
      throw new NodeSetError(`it has more than ${MOST_PATTERNS} names with brackets; write fewer`);
    }
    this.size = this.#operands.reduce((sum, one) => sum + one.names.size, 0) + patterns.reduce((sum, one) => sum + count(one), 0);
    checkSize(this.size);
  }

  has(name: string): boolean {
    let found = false;
    for (const { sign, names, patterns } of this.#operands) {
      if (sign === "," ? found : sign !== "^" && !found) continue;
      const inside = names.has(name) || patterns.some((pattern) => fits(pattern, name));
      if (sign === ",") found = inside;
      else if (sign === "^") found = found !== inside;
      else found = inside === (sign === "&");
    }
    return found;
  }

  /** The set written out, in the order of its text; at most `size` names. */
  names(): Set<string> {
    const order = this.#operands.flatMap(({ names, patterns }) => [...names, ...patterns.flatMap(writtenOut)]);
    return new Set(order.filter((name) => this.has(name)));
  }
}

/** The names of a set, each as it is written out; one that names nobody is a mistake. */
export function expand(text: string): Set<string> {
  const names = new NodeSet(text).names();
  if (names.size === 0) throw new NodeSetError("it names no node");
  return names;
}

/** Throws where a question names more nodes than any fleet has. */
export function checkSize(size: number): void {
  if (size > MOST_NODES) throw new NodeSetError(`it names more than ${MOST_NODES.toLocaleString("en")} nodes; write a smaller range`);
}

/** Each name with the sign before it; signs within brackets belong to their ranges. */
function* signed(text: string): Generator<[Sign, string]> {
  let sign: Sign = ",";
  let start = 0;
  let inside = false;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (letter === "[" || letter === "]") {
      if (inside === (letter === "[")) throw new NodeSetError(`a "${letter}" is too many`);
      inside = !inside;
    } else if (!inside && (letter === "," || letter === "!" || letter === "&" || letter === "^")) {
      yield [sign, text.slice(start, at)];
      [sign, start] = [letter, at + 1];
    }
  }
  if (inside) throw new NodeSetError("a bracket is not closed");
  yield [sign, text.slice(start)];
}

function readPattern(text: string): Pattern {
  const [head, ...parts] = text.split(/\[([^[\]]*)\]/);
  if (parts.length / 2 > MOST_BRACKETS) throw new NodeSetError(`at most ${MOST_BRACKETS} brackets are read in one name`);
  const brackets: Bracket[] = [];
  for (let at = 0; at < parts.length; at += 2) {
    const spans = parts[at].split(",").map((part) => readSpan(part.trim()));
    brackets.push({
      spans,
      shortest: Math.min(...spans.map((span) => written(span, span.first).length)),
      longest: Math.max(...spans.map((span) => written(span, span.last).length)),
      behind: parts[at + 1],
    });
  }
  return { head, brackets };
}

function readSpan(part: string): Span {
  const match = RANGE.exec(part);
  if (match === null) throw new NodeSetError(`"${part}" is not a number or a range of at most nine digits, such as 01-16`);
  const [, first, last] = match;
  if (last === undefined) return { single: first, first: Number(first), last: Number(first), step: 1, width: 1 };
  if (last.startsWith("0") && last.length !== first.length) {
    throw new NodeSetError(`both ends of "${part}" need the same number of digits, as in 01-16`);
  }
  const step = Number(match[3] ?? 1);
  if (Number(last) < Number(first) || step < 1) throw new NodeSetError(`"${part}" counts backwards`);
  return { single: null, first: Number(first), last: Number(last), step, width: first.startsWith("0") ? first.length : 1 };
}

const written = (span: Span, number: number): string => span.single ?? String(number).padStart(span.width, "0");
const numbers = (span: Span): number => Math.floor((span.last - span.first) / span.step) + 1;
const count = (pattern: Pattern): number =>
  pattern.brackets.reduce((size, { spans }) => size * spans.reduce((sum, span) => sum + numbers(span), 0), 1);

function fits(pattern: Pattern, name: string): boolean {
  if (!name.startsWith(pattern.head)) return false;
  // All the places up to which the name can have been read: brackets may stand beside digits.
  let places = new Set([pattern.head.length]);
  for (const bracket of pattern.brackets) {
    const next = new Set<number>();
    for (const at of places) {
      for (let end = at + bracket.shortest; end <= Math.min(at + bracket.longest, name.length); end++) {
        const digits = name.slice(at, end);
        if (!DIGITS.test(digits)) break;
        if (name.startsWith(bracket.behind, end) && bracket.spans.some((span) => has(span, digits))) next.add(end + bracket.behind.length);
      }
    }
    places = next;
  }
  return places.has(name.length);
}

function has(span: Span, digits: string): boolean {
  if (span.single !== null) return digits === span.single;
  const number = Number(digits);
  return number >= span.first && number <= span.last && (number - span.first) % span.step === 0 && written(span, number) === digits;
}

function writtenOut({ head, brackets }: Pattern): string[] {
  let names = [head];
  for (const { spans, behind } of brackets) {
    const ends = spans.flatMap((span) => Array.from({ length: numbers(span) }, (_, at) => written(span, span.first + at * span.step) + behind));
    names = names.flatMap((name) => ends.map((end) => name + end));
  }
  return names;
}

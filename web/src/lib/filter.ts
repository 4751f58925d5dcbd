/**
 * The filter language, the same as the hub's: words in, a yes or no for each GPU out.
 *
 * A live frame does not have everything: commands, jobs and further people are asked of the hub. So a term says yes, no,
 * or that the frame cannot tell.
 */
import {
  FilterError, type FilterGpu, type FilterNode, type Plane, type Term, type Token, folded, parseTerm,
} from "./filter_terms";
import { MOST_NODES } from "./nodeset";
import { GPU_STATES } from "./state";

export { FilterError };
export type { FilterGpu, FilterNode, Plane };

/** The budget of one question, as the hub has it: characters, terms, and nodes that are named. */
export const LONGEST = 500;
export const MOST_TERMS = 32;

export interface Filter {
  /** As it was written. */
  text: string;
  terms: Term[];
}

/** Reads a filter; `me` is who "mine" stands for. Throws FilterError in words that name what is wrong. */
export function parse(text: string, me = ""): Filter {
  if (text.length > LONGEST) {
    throw new FilterError(`the filter has ${text.length} characters; at most ${LONGEST} are allowed`);
  }
  // A term that is written twice is looked for once.
  const terms = [...new Map(tokens(text).map((token) => [`${token.text}\n${token.quotedFrom ?? ""}`, token])).values()];
  if (terms.length > MOST_TERMS) {
    throw new FilterError(`the filter has ${terms.length} terms; at most ${MOST_TERMS} are allowed`);
  }
  const read = terms.map((token) => readTerm(token, me));
  if (read.reduce((sum, term) => sum + term.names, 0) > MOST_NODES) {
    throw new FilterError(`the filter names more than ${MOST_NODES.toLocaleString("en")} nodes; write smaller ranges`);
  }
  return { text, terms: read };
}

/** What the answer for a GPU rests on, beside what never changes. */
export function reads(filter: Filter): Set<Plane> {
  return new Set(filter.terms.flatMap((term) => term.reads));
}

/** Whether the hub must be asked for what this frame cannot tell. */
export function asksHub(filter: Filter, models: readonly string[]): boolean {
  return filter.terms.some((term) => term.asksHub(models));
}

/**
 * Whether a GPU matches; `gpu` is null for a node without any.
 * `found` are the GPUs the hub has found for what the frame cannot tell; without them the frame's best guess counts.
 */
export function matches(filter: Filter, gpu: FilterGpu | null, node: FilterNode, found?: ReadonlySet<string>): boolean {
  let open = false;
  let guess = true;
  for (const { test, negated, aboutState } of filter.terms) {
    // A card split into MIG instances is neither free nor not free: its instances are.
    if (aboutState && gpu !== null && !gpu.counted) return false;
    const told = test(gpu, node);
    if (told === null) {
      open = true;
      guess &&= negated;
    } else if (told === negated) {
      return false;
    }
  }
  return open && gpu !== null && found !== undefined ? found.has(gpu.id) : guess;
}

function readTerm(written: Token, me: string): Term {
  const negated = written.text.startsWith("-") && written.quotedFrom !== 0;
  const token = negated
    ? { text: written.text.slice(1), quotedFrom: written.quotedFrom === null ? null : written.quotedFrom - 1 }
    : written;
  if (token.text === "") {
    throw new FilterError('the filter has "-" with nothing behind it; put a word there: -free, -user:alice');
  }
  const plain = token.quotedFrom === null;
  const aboutState = token.text.startsWith("state:") || (plain && (GPU_STATES as readonly string[]).includes(token.text));
  return { ...parseTerm(token, me), negated, aboutState };
}

function tokens(text: string): Token[] {
  const found: Token[] = [];
  let current = "";
  let quotedFrom: number | null = null;
  let quote = false;
  for (const character of folded(text) + " ") {
    if (character === '"') {
      quote = !quote;
      quotedFrom ??= current.length;
    } else if (/\s/.test(character) && !quote) {
      if (current !== "") found.push({ text: current, quotedFrom });
      current = "";
      quotedFrom = null;
    } else {
      current += character;
    }
  }
  if (quote) throw new FilterError(`the filter has a quote that is not closed: "${current.trim()}; add a "`);
  return found;
}

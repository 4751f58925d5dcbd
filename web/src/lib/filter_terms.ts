/** The terms of a filter: a key with a value, a comparison, a state or a plain word. */
import { NodeSet, NodeSetError } from "./nodeset";
import { FLAG_LABELS, GPU_STATES, type GpuState, type NodeState } from "./state";

export interface FilterNode {
  name: string;
  displayName: string;
  group: string | null;
  rack: string | null;
  state: NodeState;
}

export interface FilterGpu {
  id: string;
  model: string | null;
  memoryBytes: number | null;
  counted: boolean;
  /** null: not counted. */
  state: GpuState | null;
  utilization: number | null;
  memoryUsed: number | null;
  temperature: number | null;
  power: number | null;
  person: string | null;
}

/** null: the frame cannot tell. */
export type Told = boolean | null;
export type Test = (gpu: FilterGpu | null, node: FilterNode) => Told;
/** A figure of a GPU that changes while the fleet stays the same. */
export type Plane = "state" | "utilization" | "memory" | "temperature" | "power" | "person";

export class FilterError extends Error {}

export interface Term {
  test: Test;
  negated: boolean;
  aboutState: boolean;
  /** Whether the hub knows more, given the models of the fleet. */
  asksHub: (models: readonly string[]) => boolean;
  /** What its answer for a GPU rests on, beside what never changes: while these are the same, so is the answer. */
  reads: readonly Plane[];
  /** How many nodes it names. */
  names: number;
}

export interface Token {
  text: string;
  /** Where the first quote stood: what comes before it may be a key, the rest is text. */
  quotedFrom: number | null;
}

/** As the hub does it: upper and lower case are the same. */
export function folded(text: string): string {
  return text.toLowerCase().replaceAll("ß", "ss");
}

const KEYS = ["user", "reserved", "model", "node", "group", "rack", "job", "state", "flag"];
const EXAMPLES: Record<string, string> = { mem: "40G", free_mem: "20G", util: "10", temp: "80", power: "300" };
const FIGURES = Object.keys(EXAMPLES);
const UNITS: Record<string, string> = { util: "%", temp: "c", power: "w" };
// G and GB are 10^9, so that a card sold as 40 GB has them; GiB is 2^30.
const SIZES: Record<string, number> = {
  "": 1e9, m: 1e6, mb: 1e6, mib: 2 ** 20, g: 1e9, gb: 1e9, gib: 2 ** 30, t: 1e12, tb: 1e12, tib: 2 ** 40,
};
const TERM = /^([a-z_]+)(:|>=|<=|>|<|=)/;

export type Parsed = Pick<Term, "test" | "asksHub" | "reads" | "names">;
const here = (test: Test, ...reads: Plane[]): Parsed => ({ test, asksHub: () => false, reads, names: 0 });
const asked = (test: Test, ...reads: Plane[]): Parsed => ({ test, asksHub: () => true, reads, names: 0 });
const PLANES: Record<string, Plane[]> = {
  mem: [], free_mem: ["memory"], util: ["utilization"], temp: ["temperature"], power: ["power"],
};

export function parseTerm(token: Token, me: string): Parsed {
  const plain = token.quotedFrom === null;
  const match = TERM.exec(plain ? token.text : token.text.slice(0, token.quotedFrom!));
  if (match !== null) return keyed(token.text, match[1], match[2], token.text.slice(match[0].length), me);
  if (plain && isState(token.text)) return here(inState(token.text), "state");
  if (plain && token.text === "mine") {
    return asked(ofUser(known(token.text, me)), "person");
  }
  return asked(word(token.text), "person");
}

function known(term: string, me: string): string {
  if (me === "") throw new FilterError(`"${term}" needs to know who you are; set your name at the top of the page`);
  return folded(me);
}

function keyed(term: string, key: string, sign: string, value: string, me: string): Parsed {
  if (FIGURES.includes(key)) {
    if (sign === ":") {
      throw new FilterError(`"${term}": ${key} is compared, as in ${key}>${EXAMPLES[key]}; allowed are > >= < <= =`);
    }
    return here(figure(term, key, sign, value), ...PLANES[key]);
  }
  if (!KEYS.includes(key)) {
    const known = `${KEYS.map((one) => one + ":").join(", ")} and ${FIGURES.map((one) => one + ">").join(", ")}`;
    throw new FilterError(`"${term}": there is no key "${key}"; allowed are ${known}; put it in quotes to look for the text`);
  }
  if (sign !== ":") throw new FilterError(`"${term}": ${key} takes a colon, as in ${key}:${value || "…"}`);
  if (value === "") {
    throw new FilterError(`"${term}" has nothing behind the colon; name what ${key} shall be, as in ${key}:…`);
  }
  switch (key) {
    case "state":
      if (!isState(value)) {
        throw new FilterError(`"${term}": there is no state "${value}"; allowed are ${GPU_STATES.join(", ")}`);
      }
      return here(inState(value), "state");
    case "flag":
      for (const flag of value.split(",")) {
        if (Object.hasOwn(FLAG_LABELS, flag)) continue;
        throw new FilterError(`"${term}": there is no flag "${flag}"; allowed are ${Object.keys(FLAG_LABELS).join(", ")}`);
      }
      // Frames have no flags.
      return asked((gpu) => (gpu === null ? false : null));
    case "node":
      return onNodes(term, value);
    case "user":
      return asked(ofUser(value), "person");
    case "reserved":
      if (value === "me") known(term, me);
      // Frames tell that a GPU is reserved, and not by whom.
      return asked((gpu) => (gpu === null ? false : null));
    case "job":
      return asked((gpu) => (gpu === null ? false : null));
    case "group":
      return here(onceANode((node) => same(node.group, value)));
    case "rack":
      return here(onceANode((node) => same(node.rack, value)));
    default:
      return ofModel(value);
  }
}

const isState = (text: string) => (GPU_STATES as readonly string[]).includes(text);
const same = (told: string | null, wanted: string) => told !== null && folded(told) === wanted;

/** GPUs are tested node after node, and what a node is called does not change. */
function onceANode(test: (node: FilterNode) => boolean): (gpu: FilterGpu | null, node: FilterNode) => boolean {
  let last: FilterNode | null = null;
  let answer = false;
  return (_, node) => {
    if (node !== last) [last, answer] = [node, test(node)];
    return answer;
  };
}

/** A fleet has many GPUs, and few models and people. */
function onceAText(test: (text: string) => boolean): (text: string | null) => boolean {
  const known = new Map<string, boolean>();
  return (text) => {
    if (text === null) return false;
    let answer = known.get(text);
    if (answer === undefined) known.set(text, (answer = test(text)));
    return answer;
  };
}

function inState(state: string): Test {
  return (gpu, node) => (gpu === null ? node.state === state : gpu.state === state);
}

function ofUser(name: string): Test {
  const is = onceAText((person) => same(person, name));
  return (gpu) => {
    // Nobody in the frame: somebody may still be there with a process that holds no memory.
    if (gpu === null) return false;
    return is(gpu.person) ? true : null;
  };
}

function ofModel(wanted: string): Parsed {
  const is = onceAText((model) => isModel(model, wanted));
  return {
    reads: [],
    names: 0,
    // A frame has short names: the hub also knows the words that are left out of them.
    test: (gpu) => (gpu === null ? false : is(gpu.model) ? true : null),
    asksHub: (models) => !models.some(is),
  };
}

/** Whether all words of `wanted` are words of the model: "A10" is not "A100", "rtx3090" is "RTX 3090". */
export function isModel(model: string, wanted: string): boolean {
  const [known, words] = [listed(model), listed(wanted)];
  return words.length > 0 && (words.every((one) => known.includes(one)) || words.join("") === known.join(""));
}

const listed = (text: string): string[] => folded(text).match(/[\p{L}\p{N}_]+/gu) ?? [];

function onNodes(term: string, value: string): Parsed {
  const names = (node: FilterNode) => [folded(node.name), folded(node.displayName)];
  if (/[*?]/.test(value)) {
    const pattern = glob(value);
    return here(onceANode((node) => names(node).some((name) => pattern.test(name))));
  }
  try {
    const named = new NodeSet(value);
    return { ...here(onceANode((node) => names(node).some((name) => named.has(name)))), names: named.size };
  } catch (error) {
    if (!(error instanceof NodeSetError)) throw error;
    throw new FilterError(`"${term}" is not a set of nodes (${error.message}); write it like node:gpu[01-16,20]`, { cause: error });
  }
}

/** A pattern with * and ?, read in linear time: what stands behind a * is taken where it comes first, and not tried again. */
function glob(value: string): RegExp {
  const parts = value.split(/\*+/).map((part) => part.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("?", "."));
  if (parts.length === 1) return new RegExp(`^${parts[0]}$`, "su");
  const between = parts.slice(1, -1).map((part, at) => `(?=(.*?${part}))\\${at + 1}`);
  return new RegExp(`^${parts[0]}${between.join("")}.*${parts.at(-1)}$`, "su");
}

function figure(term: string, key: string, sign: string, value: string): Test {
  const limit = key.endsWith("mem") ? size(value) : number(value, UNITS[key]);
  if (limit === null) {
    const kind = key.endsWith("mem") ? "an amount of memory" : "a number";
    throw new FilterError(`"${term}": "${value}" is not ${kind}; write it like ${key}>${EXAMPLES[key]}`);
  }
  return (gpu) => {
    const told = gpu === null ? null : reading(gpu, key);
    // What a card has not told does not compare.
    return told !== null && compare(told, sign, limit);
  };
}

function size(text: string): number | null {
  const match = /^([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([a-z]*)$/.exec(text.trim());
  return match === null || !Object.hasOwn(SIZES, match[2]) ? null : Math.round(Number(match[1]) * SIZES[match[2]]);
}

function number(text: string, unit: string): number | null {
  const bare = text.endsWith(unit) ? text.slice(0, -unit.length) : text;
  return /^[0-9]{1,9}(\.[0-9]{1,6})?$/.test(bare) ? Number(bare) : null;
}

function reading(gpu: FilterGpu, key: string): number | null {
  switch (key) {
    case "mem":
      return gpu.memoryBytes;
    case "free_mem":
      return gpu.memoryBytes === null || gpu.memoryUsed === null ? null : gpu.memoryBytes * (1 - gpu.memoryUsed);
    case "util":
      return gpu.utilization === null ? null : Math.round(gpu.utilization * 1e8) / 1e6;
    case "temp":
      return gpu.temperature;
    default:
      return gpu.power;
  }
}

function compare(told: number, sign: string, limit: number): boolean {
  switch (sign) {
    case ">":
      return told > limit;
    case ">=":
      return told >= limit;
    case "<":
      return told < limit;
    case "<=":
      return told <= limit;
    default:
      return told === limit;
  }
}

function word(wanted: string): Test {
  const within = (text: string | null) => text !== null && folded(text).includes(wanted);
  const ofNode = onceANode((node) => [node.name, node.displayName, node.group, node.rack].some(within));
  const ofText = onceAText(within);
  return (gpu, node) => {
    if (ofNode(gpu, node)) return true;
    if (gpu === null) return false;
    return ofText(gpu.model) || ofText(gpu.person) || within(gpu.id) ? true : null;
  };
}

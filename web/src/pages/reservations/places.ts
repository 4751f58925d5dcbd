/** Reads GPUs as people write them: "gpu03:0-3 gpu04", "gpu[01-04]:0,2.1". */
import { nearNames } from "../../lib/near_names";
import { NodeSetError, expand } from "../../lib/nodeset";
import { type Place, wholeNode } from "../../lib/reservations";

export class PlacesError extends Error {}

/** Longer is no name, and would take long to compare. */
const LONGEST = 200;
export const NO_PLACES = "name a GPU, or a node for all of its GPUs";

export interface Known {
  /** Those of a node as they are written, cards and instances; undefined: there is no such node. */
  indices: (node: string) => readonly string[] | undefined;
  /** Of all nodes. */
  names: () => Iterable<string>;
  /** Those that are meant although they are not there now. */
  had?: readonly Place[];
}

/** As the page writes them, "gpu03: 0–3, 5 · gpu04: 1", and somebody copies them. */
function typed(text: string): string {
  return text
    .replace(/[‐-―−]/g, "-")
    .replaceAll("·", " ")
    .replace(/:\s+/g, ":")
    .replace(/,\s+(?=\d{1,3}(?:[-.]\d{1,3})?(?:[\s,;]|$))/g, ",");
}

/** Splits at blanks, and at commas between GPUs of two nodes: "gpu03:0-3,gpu04:1". "gpu03,gpu04:1" is the same GPU of both. */
function words(text: string): string[] {
  return typed(text).split(/,?[\s;]+/).flatMap(parts).filter((word) => word !== "");
}

function parts(word: string): string[] {
  const found: string[] = [];
  // Commas inside brackets are of a set of nodes.
  for (const part of word.replace(/,$/, "").split(/,(?![^[]*\])/)) {
    const before = found.at(-1);
    if (before === undefined || (part.includes(":") && before.includes(":"))) found.push(part);
    else found[found.length - 1] = `${before},${part}`;
  }
  return found;
}

/** The places of a text, or what is wrong with it. A node alone stands for all its GPUs. */
export function placesIn(text: string, known: Known): Place[] | PlacesError {
  try {
    return readPlaces(text, known);
  } catch (error) {
    if (error instanceof PlacesError) return error;
    throw error;
  }
}

function readPlaces(text: string, { indices, names: all, had = [] }: Known): Place[] {
  const places = new Map<string, Place>();
  for (const word of words(text)) {
    const at = word.lastIndexOf(":");
    const [nodes, written] = at < 0 ? [word, null] : [word.slice(0, at), word.slice(at + 1)];
    for (const node of names(nodes)) {
      const gone = had.filter((place) => place.node === node).map((place) => place.index);
      const known = indices(node) ?? (gone.length > 0 ? [] : undefined);
      if (known === undefined) throw new PlacesError(`there is no node "${node}"${meant(node.slice(0, LONGEST), all())}`);
      for (const index of written === null ? wholeNode(known) : expanded(written, word)) {
        if (!known.includes(index) && !gone.includes(index)) throw new PlacesError(`${node} has no GPU ${index}; it has ${known.join(", ") || "none"}`);
        places.set(`${node}:${index}`, { node, index });
      }
    }
  }
  return [...places.values()];
}

function meant(node: string, all: Iterable<string>): string {
  const near = nearNames(node, all);
  // Only in other letters: nothing else can be meant.
  const same = near.filter((name) => name.toLowerCase() === node.toLowerCase());
  const told = same.length > 0 ? same : near;
  return told.length > 0 ? `; did you mean ${told.join(" or ")}?` : "";
}

function names(text: string): Iterable<string> {
  try {
    return expand(text);
  } catch (error) {
    if (error instanceof NodeSetError) throw new PlacesError(`"${text}": ${error.message}`);
    throw error;
  }
}

function expanded(written: string, word: string): string[] {
  return written.split(",").flatMap((part) => {
    const range = /^(\d{1,3})-(\d{1,3})$/.exec(part);
    if (range !== null) {
      const [first, last] = [Number(range[1]), Number(range[2])];
      if (last < first) throw new PlacesError(`"${part}" in "${word}" is no range`);
      return Array.from({ length: last - first + 1 }, (_, of) => String(first + of));
    }
    if (!/^\d{1,3}(\.\d{1,3})?$/.test(part)) throw new PlacesError(`"${part}" in "${word}" is no GPU; write gpu03:0-3 or gpu03:0.2`);
    return [part];
  });
}

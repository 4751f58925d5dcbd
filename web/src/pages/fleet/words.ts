/** Changes single words of a filter and leaves the others as they were written. */
import { GPU_STATES } from "../../lib/state";

/** The words of a filter; what is in quotes stays together. */
function words(filter: string): string[] {
  return filter.match(/(?:"[^"]*"?|[^\s"])+/g) ?? [];
}

export function hasWord(filter: string, word: string): boolean {
  return words(filter).includes(word);
}

/** Takes the word away, or puts it at the end. */
export function toggleWord(filter: string, word: string): string {
  const now = words(filter);
  return (now.includes(word) ? now.filter((one) => one !== word) : [...now, word]).join(" ");
}

/** As toggleWord; a GPU has one state, so a state takes the place of another. */
export function toggleState(filter: string, state: string): string {
  const others = words(filter).filter((word) => word === state || !(GPU_STATES as readonly string[]).includes(word));
  return toggleWord(others.join(" "), state);
}

/** `key:value`, in quotes where it needs them; there is no way to write a quote, so those are left out. */
export function term(key: string, value: string): string {
  const text = value.replaceAll('"', "");
  return /\s/.test(text) ? `${key}:"${text}"` : `${key}:${text}`;
}

/** The filter with these words too, each once, and "free" at its end. */
export function narrowedToFree(filter: string, word: string | null): string {
  const now = words(filter).filter((one) => one !== "free" && one !== word);
  return [...now, ...(word === null ? [] : [word]), "free"].join(" ");
}

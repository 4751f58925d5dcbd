/** What this browser keeps for its person; without storage it lasts as long as the page. */

const PREFIX = "gpulse.";
/** What could not be stored. */
const kept = new Map<string, string>();

export function recall<T>(key: string, fallback: T): T {
  const text = read(key);
  if (text === null) return fallback;
  try {
    return JSON.parse(text) as T;
  } catch {
    // Somebody else's, or cut off: as if it were not there.
    return fallback;
  }
}

export function keep(key: string, value: unknown): void {
  const text = JSON.stringify(value);
  try {
    localStorage.setItem(PREFIX + key, text);
    // Else what another tab has forgotten since would come back.
    kept.delete(key);
  } catch {
    // Private mode or full.
    kept.set(key, text);
  }
}

export function forget(key: string): void {
  kept.delete(key);
  try {
    localStorage.removeItem(PREFIX + key);
  } catch {
    // There is no storage that could have it.
  }
}

/** Calls back when another tab keeps or forgets it; by then it can be recalled here. */
export function watch(key: string, changed: (gone: boolean) => void): void {
  window.addEventListener("storage", (event) => {
    // Without a key: everything was cleared.
    if (event.key === PREFIX + key || event.key === null) changed(event.newValue === null);
  });
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key) ?? kept.get(key) ?? null;
  } catch {
    return kept.get(key) ?? null;
  }
}

/** What this browser keeps for its person; without storage it lasts as long as the page. */

const PREFIX = "gpulse.";
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
  kept.set(key, text);
  try {
    localStorage.setItem(PREFIX + key, text);
  } catch {
    // Private mode or full: `kept` has it.
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

function read(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key) ?? kept.get(key) ?? null;
  } catch {
    return kept.get(key) ?? null;
  }
}

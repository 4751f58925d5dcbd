/** Reads the audit log backwards, page by page, as far as somebody wants to see. */
import { type AuditLine, type AuditPage, get } from "../../lib/api/api";
import { Task } from "../../lib/task.svelte";

const DAY = 86_400;
export const PERIODS = {
  all: { words: "All", seconds: null },
  day: { words: "Last 24 hours", seconds: DAY },
  week: { words: "Last 7 days", seconds: 7 * DAY },
  month: { words: "Last 30 days", seconds: 30 * DAY },
} as const;
export type Period = keyof typeof PERIODS;

/** How many more are shown at a time. */
const STEP = 50;
/** Where few entries match, so many pages are read before somebody is asked whether to go on. */
const MOST_PAGES = 10;

export function isPeriod(text: string | undefined): text is Period {
  return text !== undefined && Object.hasOwn(PERIODS, text);
}

/** Since when, in seconds since 1970; null: since ever. */
export function since(period: Period, now: number = Date.now()): number | null {
  const { seconds } = PERIODS[period];
  return seconds === null ? null : Math.floor(now / 1000 - seconds);
}

/** "role viewer, sessions 2" */
export function detailWords(detail: Record<string, unknown>): string {
  return Object.entries(detail)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${Array.isArray(value) ? value.join(" ") : String(value)}`)
    .join(", ");
}

export function matches(entry: AuditLine, word: string): boolean {
  const text = [entry.who, entry.way, entry.action, entry.target, entry.address, detailWords(entry.detail)].join("\n").toLowerCase();
  return word
    .toLowerCase()
    .split(/\s+/)
    .every((part) => text.includes(part));
}

export class AuditReading {
  found = $state.raw<AuditLine[]>([]);
  /** Whether there is nothing older. */
  complete = $state(false);
  /** The time of the oldest entry that was looked at; null: of none. */
  readTo = $state<number | null>(null);
  readonly task = new Task();
  #before: number | null = null;
  #since: number | null;
  #stopped = new AbortController();

  constructor(
    period: Period,
    private readonly word: string,
  ) {
    this.#since = since(period);
  }

  /** Some more, older ones. */
  async more(): Promise<void> {
    if (this.complete || this.#stopped.signal.aborted) return;
    await this.task.run(async () => {
      const wanted = this.found.length + STEP;
      for (let pages = 0; pages < MOST_PAGES && this.found.length < wanted && !this.complete; pages++) {
        // A word may match few of many.
        const limit = this.word.trim() === "" ? STEP : 1000;
        const query = { before: this.#before, since: this.#since, limit };
        const page = await get<AuditPage>("/api/v1/audit", query);
        if (this.#stopped.signal.aborted) return;
        this.found = [...this.found, ...page.items.filter((entry) => matches(entry, this.word))];
        this.readTo = page.items.at(-1)?.at ?? this.readTo;
        this.#before = page.next;
        this.complete = page.next === null;
      }
    });
  }

  /** Nobody looks any more. */
  stop(): void {
    this.#stopped.abort();
  }
}

/** An answer of the hub that is asked for again and again, while somebody looks and the hub is there. */
import { ApiError, type Query, get } from "../../lib/api/api";
import { live } from "../../lib/live/live.svelte";

export interface Question {
  path: string;
  query?: Query;
  /** Not sent: another one is a reason to ask at once. */
  version?: number;
}

export interface Answer<T> {
  /** null: not answered yet, or nothing to ask. */
  readonly value: T | null;
}

/**
 * In a component. A question that stays the same is not asked anew by what else changes; null: nothing to ask.
 * A page that is paused asks once: for what somebody opens, and when they want to see what is new. `read` asks the hub.
 */
export function asked<T>(
  question: () => Question | null,
  everyMs: number,
  read: (question: Question, signal: AbortSignal) => Promise<T> = ({ path, query }, signal) => get<T>(path, query, signal),
): Answer<T> {
  let value = $state.raw<T | null>(null);
  /** The question that was answered last, and while the page is paused the frame that was shown. */
  let answered: { key: string; frame: number | null } | null = null;
  // As text, or each frame would ask again.
  const key = $derived(JSON.stringify(question()));
  const open = $derived(live.status !== "connecting" && live.status !== "gone");
  const goesOn = $derived(live.status === "live");
  /** While the page is paused a new frame comes only for those who want it. */
  const shown = $derived(goesOn ? null : (live.frame?.generation ?? null));

  $effect(() => {
    const now = JSON.parse(key) as Question | null;
    // Read here, whatever comes of it, or a new one is not noticed.
    const frame = shown;
    if (now === null) [value, answered] = [null, null];
    if (now === null || !open) return;
    if (!goesOn && answered?.key === key) {
      answered.frame ??= frame;
      if (answered.frame === frame) return;
    }
    const stop = new AbortController();
    let timer: number | undefined;
    const ask = async () => {
      if (!document.hidden) {
        try {
          value = await read(now, stop.signal);
          answered = { key, frame };
        } catch (error) {
          if (stop.signal.aborted) return;
          // What was told last stays; the live stream tells whether the hub is there.
          if (!(error instanceof ApiError)) throw error;
        }
      }
      if (goesOn) timer = window.setTimeout(ask, everyMs);
    };
    void ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  });

  return {
    get value() {
      return value;
    },
  };
}

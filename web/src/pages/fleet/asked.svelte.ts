/** An answer of the hub that is asked for again and again, while somebody looks and the hub is there. */
import { ApiError, type Query, get } from "../../lib/api/api";
import { live } from "../../lib/live/live.svelte";

export interface Question {
  path: string;
  query?: Query;
}

export interface Answer<T> {
  /** null: not answered yet, or nothing to ask. */
  readonly value: T | null;
}

/** In a component. A question that stays the same is not asked anew by what else changes; null: nothing to ask. */
export function asked<T>(question: () => Question | null, everyMs: number): Answer<T> {
  let value = $state.raw<T | null>(null);
  // As text, or each frame would ask again.
  const key = $derived(JSON.stringify(question()));
  const open = $derived(live.status === "live" || live.status === "export");

  $effect(() => {
    const now = JSON.parse(key) as Question | null;
    if (now === null) value = null;
    if (now === null || !open) return;
    const stop = new AbortController();
    let timer: number | undefined;
    const ask = async () => {
      if (!document.hidden) {
        try {
          value = await get<T>(now.path, now.query, stop.signal);
        } catch (error) {
          if (stop.signal.aborted) return;
          // What was told last stays; the live stream tells whether the hub is there.
          if (!(error instanceof ApiError)) throw error;
        }
      }
      if (live.status !== "export") timer = window.setTimeout(ask, everyMs);
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

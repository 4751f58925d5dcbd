/** The last ten minutes of the nodes somebody looks at, many of them in one question. */
import { untrack } from "svelte";
import { SvelteMap } from "svelte/reactivity";
import { ApiError, get } from "../../lib/api/api";
import type { components } from "../../lib/api/types";
import { live } from "../../lib/live/live.svelte";
import { questions } from "./history_questions";

/** Of one GPU; half percents, the oldest first, 255 unknown. */
export type GpuHistory = components["schemas"]["GpuHistory"];

/** Two steps: less often than the eye sees, more often than a line gets wrong. */
const AGAIN_MS = 20_000;
const TICK_MS = 1000;
/** Cards come into sight one after the other, and are asked for together. */
const GATHER_MS = 50;
/** For those who scroll back. */
const KEPT_MS = 60_000;

class Histories {
  /** By node, then by the id of the GPU. */
  #nodes = new SvelteMap<string, Map<string, GpuHistory>>();
  #watched = new Map<string, number>();
  /** When nobody looked any more. */
  #left = new Map<string, number>();
  #asked = new Map<string, number>();
  #timer: number | undefined;
  #gathering: number | undefined;

  of(node: string, id: string): GpuHistory | undefined {
    return this.#nodes.get(node)?.get(id);
  }

  watch(node: string): () => void {
    this.#watched.set(node, (this.#watched.get(node) ?? 0) + 1);
    this.#left.delete(node);
    this.#timer ??= window.setInterval(() => this.#tick(), TICK_MS);
    if (this.#gathering === undefined) {
      this.#gathering = window.setTimeout(() => {
        this.#gathering = undefined;
        this.#ask();
      }, GATHER_MS);
    }
    return () => {
      const others = (this.#watched.get(node) ?? 1) - 1;
      if (others > 0) {
        this.#watched.set(node, others);
        return;
      }
      this.#watched.delete(node);
      this.#left.set(node, Date.now());
    };
  }

  #tick(): void {
    for (const [node, time] of this.#left) {
      if (Date.now() - time < KEPT_MS) continue;
      this.#left.delete(node);
      this.#asked.delete(node);
      this.#nodes.delete(node);
    }
    if (this.#watched.size === 0 && this.#left.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#ask();
  }

  #ask(): void {
    if (document.hidden || live.status === "connecting" || live.status === "gone") return;
    const now = Date.now();
    // A page that does not go on asks once for what comes into sight.
    const again = live.status === "live" ? AGAIN_MS : Infinity;
    const due = [...this.#watched.keys()].filter((node) => now - (this.#asked.get(node) ?? -Infinity) >= again);
    for (const node of due) this.#asked.set(node, now);
    for (const question of questions(due)) void this.#fetch(question);
  }

  async #fetch(question: ReturnType<typeof questions>[number]): Promise<void> {
    try {
      const { gpus } = await get<components["schemas"]["HistoryView"]>("/api/v1/history", question);
      const found = new Map<string, Map<string, GpuHistory>>();
      for (const gpu of gpus) {
        const node = found.get(gpu.node) ?? new Map<string, GpuHistory>();
        found.set(gpu.node, node.set(gpu.id, gpu));
      }
      for (const [node, told] of found) this.#nodes.set(node, told);
    } catch (error) {
      // Nothing is drawn then; the bar beside it tells of now.
      if (!(error instanceof ApiError)) throw error;
    }
  }
}

export const histories = new Histories();

/** In a component: asks for the history of these nodes while it is there. */
export function watchHistory(wanted: () => string[]): void {
  const key = $derived(wanted().join("\n"));
  $effect(() => {
    const nodes = key === "" ? [] : key.split("\n");
    const stops = untrack(() => nodes.map((node) => histories.watch(node)));
    return () => stops.forEach((stop) => stop());
  });
}

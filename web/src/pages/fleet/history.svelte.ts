/** The last ten minutes of the nodes somebody looks at. */
import { untrack } from "svelte";
import { SvelteMap } from "svelte/reactivity";
import { ApiError, get } from "../../lib/api/api";
import type { components } from "../../lib/api/types";
import { live } from "../../lib/live/live.svelte";

/** Of one GPU; half percents, the oldest first, 255 unknown. */
export type GpuHistory = components["schemas"]["GpuHistory"];

/** Two steps: less often than the eye sees, more often than a line gets wrong. */
const AGAIN_MS = 20_000;
const AT_ONCE = 4;
const TICK_MS = 1000;
/** For those who scroll back. */
const KEPT_MS = 60_000;

class Histories {
  /** By node, then by the id of the GPU. */
  #nodes = new SvelteMap<string, Map<string, GpuHistory>>();
  #watched = new Map<string, number>();
  /** When nobody looked any more. */
  #left = new Map<string, number>();
  #asked = new Map<string, number>();
  #asking = 0;
  #timer: number | undefined;

  of(node: string, id: string): GpuHistory | undefined {
    return this.#nodes.get(node)?.get(id);
  }

  watch(node: string): () => void {
    this.#watched.set(node, (this.#watched.get(node) ?? 0) + 1);
    this.#left.delete(node);
    this.#timer ??= window.setInterval(() => this.#tick(), TICK_MS);
    this.#ask();
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
    if (live.status !== "live" || document.hidden) return;
    const now = Date.now();
    for (const node of this.#watched.keys()) {
      if (this.#asking >= AT_ONCE) return;
      if (now - (this.#asked.get(node) ?? 0) >= AGAIN_MS) void this.#fetch(node);
    }
  }

  async #fetch(node: string): Promise<void> {
    this.#asked.set(node, Date.now());
    this.#asking++;
    try {
      const told = await get<components["schemas"]["HistoryView"]>("/api/v1/history", { node });
      this.#nodes.set(node, new Map(told.gpus.map((gpu) => [gpu.id, gpu])));
    } catch (error) {
      // Nothing is drawn then; the bar beside it tells of now.
      if (!(error instanceof ApiError)) throw error;
    } finally {
      this.#asking--;
      this.#ask();
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

/** The filter of the address, applied to the newest frame: which GPUs match. One for the whole page. */
import { ApiError, get, type GpuPage } from "./api/api";
import { type Filter, FilterError, asksHub, matches, parse } from "./filter";
import { type FleetNode, fleet } from "./fleet.svelte";
import { isExport } from "./hub";
import { live } from "./live/live.svelte";
import { route } from "./route.svelte";
import { type Found, Mask } from "./selection_mask";
import { settings } from "./settings.svelte";
import { NOT_COUNTED } from "./state";

/** While somebody types, the hub is not asked. */
const TYPING_MS = 350;
const AGAIN_MS = 10_000;
const MOST = 1000;

class Selection {
  /** As written in the address; empty: everything. */
  text: string = $derived((route.query.q ?? "").trim());
  #parsed: Filter | FilterError | null = $derived(read(this.text, settings.me));
  filter: Filter | null = $derived(this.#parsed instanceof FilterError ? null : this.#parsed);
  /** What is wrong with the filter, in words. */
  error: string | null = $derived(this.#parsed instanceof FilterError ? this.#parsed.message : null);
  #found = $state.raw<Found | null>(null);
  readonly #kept = new Mask();

  /** By slot, 1 where a GPU matches; null: no filter, everything does. */
  mask: Uint8Array | null = $derived(this.#mask());
  /** How many counted GPUs match. */
  count: number = $derived(this.#count());
  /** By the number of the node, 1 where it or one of its GPUs matches; null: no filter. */
  nodeMask: Uint8Array | null = $derived(this.#nodeMask());

  /** Whether a GPU matches, by its slot. */
  has(slot: number): boolean {
    return this.mask === null || this.mask[slot] === 1;
  }

  hasNode(node: FleetNode): boolean {
    return this.nodeMask === null || this.nodeMask[node.place] === 1;
  }

  /** In the outermost component: asks the hub for what frames cannot tell. */
  watch(): void {
    $effect(() => {
      const filter = this.filter;
      if (filter === null || isExport() || live.status !== "live" || !asksHub(filter, fleet.models)) return;
      const { text } = this;
      const me = settings.me;
      const stop = new AbortController();
      const ask = async () => {
        if (!document.hidden) this.#found = (await find(text, me, stop.signal)) ?? this.#found;
        if (!stop.signal.aborted) timer = window.setTimeout(ask, AGAIN_MS);
      };
      let timer = window.setTimeout(ask, TYPING_MS);
      return () => {
        clearTimeout(timer);
        stop.abort();
      };
    });
  }

  #mask(): Uint8Array | null {
    const [filter, frame, nodes] = [this.filter, live.frame, fleet.nodes];
    if (filter === null || frame === null || frame.layout !== fleet.layout) return null;
    return this.#kept.of(filter, frame, nodes, this.#found?.text === filter.text ? this.#found : null);
  }

  #count(): number {
    const [mask, state] = [this.mask, live.frame?.state];
    if (state === undefined) return 0;
    let count = 0;
    for (let slot = 0; slot < state.length; slot++) if (state[slot] !== NOT_COUNTED && (mask === null || mask[slot] === 1)) count++;
    return count;
  }

  #nodeMask(): Uint8Array | null {
    const [mask, filter] = [this.mask, this.filter];
    if (mask === null || filter === null) return null;
    const found = new Uint8Array(fleet.nodes.length);
    for (const node of fleet.nodes) {
      if (node.count === 0) found[node.place] = matches(filter, null, node) ? 1 : 0;
      for (let slot = node.first; slot < node.first + node.count; slot++) if (mask[slot] === 1) found[node.place] = 1;
    }
    return found;
  }
}

function read(text: string, me: string): Filter | FilterError | null {
  if (text === "") return null;
  try {
    return parse(text, me);
  } catch (error) {
    if (error instanceof FilterError) return error;
    throw error;
  }
}

async function find(text: string, me: string, signal: AbortSignal): Promise<Found | null> {
  try {
    const page = await get<GpuPage>("/api/v1/gpus", { q: text, me, limit: MOST }, signal);
    return { text, ids: new Set(page.items.map((gpu) => gpu.id)), all: page.next === null };
  } catch (error) {
    if (!signal.aborted && !(error instanceof ApiError)) throw error;
    // The frame's guess stays; the next try may do better.
    return null;
  }
}

export const selection = new Selection();

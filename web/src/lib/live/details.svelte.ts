/** Nodes in full, asked for only while somebody looks at them. */
import { SvelteMap } from "svelte/reactivity";
import { ApiError, get, type NodePage, type NodeView } from "../api/api";
import { exported, isExport } from "../hub";
import type { Layout } from "./frame";

/** How long an answer counts as new. */
const FRESH_MS = 2000;
/** Nodes are asked for in blocks of neighbours that are the same for everybody: the hub makes each answer once. */
const BLOCK = 8;
/** One browser asks at most so often; many cards on a large screen are asked for less often each. */
const MOST_A_SECOND = 4;
/** Nodes nobody looks at are kept a while, for those who scroll back. */
const KEPT_MS = 60_000;

export class Details {
  #views = new SvelteMap<string, NodeView>();
  #watchers = new Set<() => string[]>();
  #seen = new Map<string, number>();
  #asked = new Map<number, number>();
  #layout: Layout | null = null;
  #places = new Map<string, number>();
  #exported: Map<string, NodeView> | undefined;
  /** Counts who looked: answers to who looked before are left out. */
  #round = 0;

  /** `layout` is that of the newest frame: where in the hub's order a node stands. */
  constructor(private readonly layout: () => Layout | null) {}

  get(name: string): NodeView | undefined {
    if (isExport()) return (this.#exported ??= new Map(exported().nodes.map((node) => [node.name, node]))).get(name);
    return this.#views.get(name);
  }

  /** Adds somebody who looks at these nodes; the answer takes them away again. */
  watch(names: () => string[]): () => void {
    this.#watchers.add(names);
    this.ask();
    return () => this.#watchers.delete(names);
  }

  /** Asks for what is wanted and not new. Called every second while the hub is there. */
  ask(): void {
    if (isExport()) return;
    this.#arrange();
    const now = Date.now();
    const blocks = new Set<number>();
    for (const names of this.#watchers) {
      for (const name of names()) {
        const place = this.#places.get(name);
        this.#seen.set(name, now);
        if (place !== undefined) blocks.add(Math.floor(place / BLOCK));
      }
    }
    const fresh = Math.max(FRESH_MS, (blocks.size / MOST_A_SECOND) * 1000) - 500;
    const askedAt = (block: number) => this.#asked.get(block) ?? 0;
    const due = [...blocks].filter((block) => now - askedAt(block) >= fresh).sort((a, b) => askedAt(a) - askedAt(b));
    // What nobody has seen yet does not wait.
    const unseen = due.filter((block) => askedAt(block) === 0).length;
    for (const block of due.slice(0, Math.max(MOST_A_SECOND, unseen))) void this.#fetch(block, now);
    this.#drop(now);
  }

  /** Everything is to be asked for anew. */
  forget(): void {
    this.#asked.clear();
  }

  /** Nothing of what one person saw is left for the next. */
  clear(): void {
    this.#round++;
    this.#views.clear();
    this.#asked.clear();
  }

  #arrange(): void {
    const layout = this.layout();
    if (layout === this.#layout) return;
    this.#layout = layout;
    this.#asked.clear();
    this.#places = new Map(layout?.nodes.map((node, place) => [node.name, place]));
    for (const name of this.#views.keys()) if (!this.#places.has(name)) this.#views.delete(name);
  }

  #drop(now: number): void {
    for (const [name, time] of this.#seen) if (now - time > KEPT_MS) this.#seen.delete(name);
    for (const name of this.#views.keys()) if (!this.#seen.has(name)) this.#views.delete(name);
  }

  async #fetch(block: number, now: number): Promise<void> {
    this.#asked.set(block, now);
    const query = { detail: true, limit: BLOCK, offset: block * BLOCK };
    const round = this.#round;
    try {
      const { items } = await get<NodePage>("/api/v1/nodes", query);
      if (round !== this.#round) return;
      for (const node of items) {
        this.#views.set(node.name, node);
        if (!this.#seen.has(node.name)) this.#seen.set(node.name, now);
      }
    } catch (error) {
      // A hub that is gone leaves what we have; the live stream tells of it.
      if (!(error instanceof ApiError)) throw error;
    }
  }
}

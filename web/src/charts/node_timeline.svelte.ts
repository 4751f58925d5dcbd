/** The last ten minutes of a node: its GPUs from the hub and the live frames, the rest since the page was opened. */
import { untrack } from "svelte";
import { ApiError, type NodeView, get } from "../lib/api/api";
import { fleet } from "../lib/fleet.svelte";
import { isExport } from "../lib/hub";
import { live } from "../lib/live/live.svelte";
import { type History, SPAN_SECONDS, Timeline, type Value, key } from "./timeline";

/** The hub keeps a figure every ten seconds, and a page asks for a node every two. */
const GPU_STEP_SECONDS = 10;
const VIEW_STEP_SECONDS = 2;
/** After so long without a frame the hub knows more than we do. */
const GAP_SECONDS = 25;

/** To be made while a component is: it follows the node as long as that component is there. */
export class NodeTimeline {
  /** Utilisation, memory, temperature and power of each GPU. */
  gpus = new Timeline(GPU_STEP_SECONDS);
  /** What the hub keeps no past of: clocks of the GPUs, CPU, RAM and network of the host. */
  watched = new Timeline(VIEW_STEP_SECONDS);
  /** Grows with everything that comes; a chart that reads it is drawn again. */
  version = $state(0);
  /** The right end of all charts, in seconds since 1970 by the hub's clock. */
  end = $state(0);

  #lastFrame = -Infinity;

  /** null: there is no such node, and nothing is asked. */
  constructor(node: () => string | null) {
    $effect(() => this.#follow(node()));
    $effect(() => this.#addFrame(node()));
    $effect(() => this.#addView(live.details.get(node() ?? "")));
  }

  get start(): number {
    return this.end - SPAN_SECONDS;
  }

  #follow(node: string | null): () => void {
    this.gpus = new Timeline(GPU_STEP_SECONDS);
    this.watched = new Timeline(VIEW_STEP_SECONDS);
    this.#lastFrame = -Infinity;
    const leaving = new AbortController();
    if (node !== null) void this.#ask(node, leaving.signal);
    return () => leaving.abort();
  }

  async #ask(node: string, signal?: AbortSignal): Promise<void> {
    try {
      const history = await get<History>("/api/v1/history", { node }, signal);
      if (signal?.aborted) return;
      this.gpus.begin(history);
      this.end = Math.max(this.end, history.end);
      this.version++;
    } catch (error) {
      // Left the page. Or the hub does not have the node, or is gone: the page tells of both by itself.
      if (!signal?.aborted && !(error instanceof ApiError)) throw error;
    }
  }

  #addFrame(name: string | null): void {
    const frame = live.frame;
    if (frame === null || name === null || isExport()) return;
    const node = fleet.byName.get(name);
    if (node === undefined) return;
    if (frame.time - this.#lastFrame > GAP_SECONDS && this.#lastFrame > 0) void this.#ask(name);
    this.#lastFrame = frame.time;
    const up = node.state === "up";
    const figures: [string, Value][] = node.gpus.flatMap((gpu) => [
      [key("utilization", gpu.id), up ? gpu.utilization : null],
      [key("memory", gpu.id), up ? gpu.memoryUsed : null],
      [key("temperature", gpu.id), up ? gpu.temperature : null],
      [key("power", gpu.id), up ? gpu.power : null],
    ]);
    this.gpus.add(frame.time, figures);
    this.end = frame.time;
    this.#changed();
  }

  #addView(view: NodeView | undefined): void {
    if (view === undefined || isExport()) return;
    const up = view.state === "up";
    const told = (value: number | null | undefined): Value => (up ? (value ?? null) : null);
    const { host, rates } = view;
    const total = host?.memory_total_bytes;
    const used = host?.memory_used_bytes;
    const figures: [string, Value][] = [
      [key("cpu"), told(rates?.cpu_ratio)],
      [key("ram"), told(total && used != null ? used / total : null)],
      [key("received"), told(rates?.network_received_bytes_per_second)],
      [key("sent"), told(rates?.network_sent_bytes_per_second)],
    ];
    for (const gpu of view.gpus) {
      figures.push([key("clock_sm", gpu.id), told(gpu.clock_sm_hertz)]);
      figures.push([key("clock_memory", gpu.id), told(gpu.clock_memory_hertz)]);
    }
    // By the hub's clock, as everything else here; the view has come, not the frame.
    const now = untrack(() => live.frame?.time);
    if (now === undefined) return;
    this.watched.add(now, figures);
    this.#changed();
  }

  #changed(): void {
    // Read without being followed: the effects that write it must not wake themselves.
    this.version = untrack(() => this.version) + 1;
  }
}

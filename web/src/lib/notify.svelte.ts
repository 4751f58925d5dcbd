/** "Tell me when this filter finds N free GPUs": a browser notification, while a tab is open. */
import { matches, parse } from "./filter";
import { FleetGpu, fleet } from "./fleet.svelte";
import { live } from "./live/live.svelte";
import { settings } from "./settings.svelte";

export interface Wish {
  /** A filter; "free" is added to it. */
  text: string;
  count: number;
}

class Notify {
  /** What is waited for; null: nothing. */
  wish = $state.raw<Wish | null>(null);
  /** What was found last, for those whose browser shows no notifications. */
  told = $state<string | null>(null);

  get possible(): boolean {
    return typeof Notification !== "undefined" && Notification.permission !== "denied";
  }

  /** Asks for permission where that is needed, and begins to wait. False: the browser will not show any. */
  async when(text: string, count: number): Promise<boolean> {
    parse(text, settings.me);
    this.told = null;
    this.wish = { text, count };
    if (typeof Notification === "undefined") return false;
    return (await Notification.requestPermission()) === "granted";
  }

  cancel(): void {
    this.wish = null;
  }

  /** In the outermost component: looks at each frame. */
  watch(): void {
    $effect(() => {
      live.awake = this.wish !== null;
      if (this.wish === null || live.frame === null) return;
      const found = freeGpus(this.wish.text);
      if (found.length >= this.wish.count) this.#tell(this.wish, found);
    });
  }

  #tell(wish: Wish, found: FleetGpu[]): void {
    const nodes = [...new Set(found.map((gpu) => gpu.node.displayName))];
    const where = nodes.slice(0, 3).join(", ") + (nodes.length > 3 ? ` and ${nodes.length - 3} more` : "");
    this.wish = null;
    this.told = `${found.length} free ${found.length === 1 ? "GPU" : "GPUs"} on ${where}`;
    if (typeof Notification === "undefined" || Notification.permission !== "granted") return;
    const shown = new Notification(this.told, { body: wish.text || undefined, tag: "gpulse-free" });
    shown.onclick = () => window.focus();
  }
}

/** The free GPUs a filter finds, as far as live frames tell. */
function freeGpus(text: string): FleetGpu[] {
  const frame = live.frame;
  if (frame === null) return [];
  const filter = parse(`${text} free`, settings.me);
  return fleet.nodes.flatMap((node) => node.gpus.filter((gpu) => matches(filter, gpu, node)));
}

export const notify = new Notify();

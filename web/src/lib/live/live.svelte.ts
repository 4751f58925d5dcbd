/** The fleet as it is now: one stream for the whole page, which comes back by itself. */
import { untrack } from "svelte";
import { ApiError, address, get, type HubView } from "../api/api";
import { clock } from "../clock.svelte";
import { exported, isExport } from "../hub";
import { liveProtocols } from "../page_key";
import { session } from "../session.svelte";
import { Details } from "./details.svelte";
import { exportedFrame } from "./exported_frame";
import { type Frame, type Own, VersionError, decode, withOwn } from "./frame";

export type Status = "connecting" | "live" | "paused" | "gone" | "signed-out" | "export";

/** The hub sends a frame a second; after so long without one the connection counts as dead. */
const SILENCE_MS = 10_000;
/** A hub that restarts is back before anybody need be told. */
const GRACE_MS = 3000;
const LONGEST_WAIT_MS = 30_000;
/** Frames of another version stay unreadable until somebody loads the page again or upgrades the hub. */
const OTHER_VERSION_MS = 60_000;
/** A tab in the background lets go of the stream after this. */
const HIDDEN_MS = 60_000;
const HUB_MS = 30_000;
/** How the hub closes the stream of somebody who may no longer see it. */
const SIGNED_OUT = 4401;

class Live {
  status = $state<Status>("connecting");
  frame = $state.raw<Frame | null>(null);
  /** When the newest frame came, by this computer's clock in milliseconds. */
  receivedAt = $state<number | null>(null);
  /** The hub's title, version and notices. */
  hub = $state.raw<HubView | null>(null);
  /** Why the hub is gone, where it said so. */
  reason = $state<string | null>(null);
  /** The version of the hub's frames where this page can't read them; null: it can. */
  otherVersion = $state<number | null>(null);
  details = new Details(() => this.frame?.layout ?? null);
  /** Somebody waits for something: a tab in the background goes on listening. */
  awake = false;

  #socket: WebSocket | null = null;
  #newest: Frame | null = null;
  #own: Own | null = null;
  #queue: Promise<void> = Promise.resolve();
  #failures = 0;
  #retry: number | undefined;
  #grace: number | undefined;
  #hiding: number | undefined;
  #heardAt = 0;
  #hubAt = 0;
  #once = false;
  /** For whom the data at hand was made; null: for who asked, and who that is, the hub has yet to say. */
  #who: string | null = null;

  /** How old the newest data is; null: there is none. Ticks each second. */
  get ageSeconds(): number | null {
    return this.receivedAt === null ? null : Math.max(0, (clock.now - this.receivedAt) / 1000);
  }

  /** The hub's time in seconds since 1970; ticks each second. A browser's clock may be wrong, and says how much has passed. */
  get now(): number {
    const ahead = this.frame === null || this.receivedAt === null ? 0 : this.frame.time - this.receivedAt / 1000;
    return clock.now / 1000 + ahead;
  }

  /** There is nothing to show before somebody signs in. */
  get locked(): boolean {
    return this.status === "signed-out" && this.frame === null;
  }

  /** Begins; called once, after the config was read. The hub may still be thinking about who looks. */
  start(): void {
    if (isExport()) {
      this.status = "export";
      this.frame = exportedFrame(exported());
      this.receivedAt = exported().made * 1000;
      return;
    }
    document.addEventListener("visibilitychange", () => this.#seen());
    window.addEventListener("online", () => this.#retryNow());
    setInterval(() => this.#tick(), 1000);
    this.#who = session.me === null ? null : session.who;
    session.changed = () => this.#become();
    if (session.mayRead) this.#connect();
    else this.#shutOut();
  }

  pause(): void {
    if (this.status === "export" || this.status === "signed-out") return;
    this.#leave();
    clearTimeout(this.#grace);
    this.#grace = undefined;
    this.status = "paused";
  }

  resume(): void {
    if (this.status !== "paused") return;
    this.status = this.frame === null ? "connecting" : "live";
    this.details.forget();
    this.#connect();
  }

  /** What is new now: one frame where the page is paused, else everything again. */
  refresh(): void {
    if (this.status === "export") return;
    if (this.status === "signed-out") {
      void session.ask();
      return;
    }
    this.#once = this.status === "paused";
    this.details.forget();
    this.details.ask();
    this.#leave();
    this.#connect();
  }

  get #asleep(): boolean {
    return document.hidden && !this.awake;
  }

  #connect(): void {
    clearTimeout(this.#retry);
    const url = address("/api/v1/live", { format: "binary" });
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url, liveProtocols());
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    this.#newest = null;
    this.#own = null;
    this.#heardAt = Date.now();
    socket.onmessage = (message) => {
      this.#heardAt = Date.now();
      // One after the other: a delta builds on the frame before it.
      this.#queue = this.#queue.then(() => this.#take(socket, message.data as ArrayBuffer | string));
    };
    let opened = false;
    socket.onopen = () => (opened = true);
    socket.onclose = (event) => {
      if (this.#socket !== socket) return;
      if (opened && event.code !== SIGNED_OUT) this.#lost(event.reason);
      else void this.#refused(event.reason);
    };
  }

  /** Scripts are not told why a stream was refused: the hub is asked who looks, which tells. */
  async #refused(reason: string): Promise<void> {
    this.#leave();
    await session.ask();
    if (!session.mayRead) this.#shutOut();
    else if (this.#socket === null && this.status !== "paused") this.#lost(reason);
  }

  /** Somebody signed in or out, or has another role. What was shown to one is not for the next. */
  #become(): void {
    // The stream was asked for with the same cookie and key: it is theirs.
    this.#who ??= session.who;
    if (!session.mayRead) {
      this.#shutOut();
      // Who is signed out by the hub keeps what was on the screen; who signs out leaves nothing.
      if (session.ended === null) this.#drop();
    } else if (session.who !== this.#who) {
      this.#drop();
      this.status = "connecting";
      this.#connect();
    } else if (this.status === "signed-out") {
      this.details.forget();
      this.#connect();
    }
  }

  #shutOut(): void {
    this.#leave();
    clearTimeout(this.#grace);
    this.#grace = undefined;
    this.#once = false;
    this.status = "signed-out";
  }

  #drop(): void {
    this.#leave();
    clearTimeout(this.#grace);
    this.#grace = undefined;
    this.#who = session.who;
    this.#newest = null;
    this.frame = null;
    this.receivedAt = null;
    this.hub = null;
    this.#hubAt = 0;
    this.#failures = 0;
    this.details.clear();
  }

  async #take(socket: WebSocket, data: ArrayBuffer | string): Promise<void> {
    if (this.#socket !== socket) return;
    if (typeof data === "string") {
      // It holds from the next frame on.
      this.#own = JSON.parse(data) as Own;
      return;
    }
    try {
      const frame = await decode(data, this.#newest);
      this.#newest = this.#own === null ? frame : withOwn(frame, this.#own);
    } catch (error) {
      console.warn("a live frame could not be read; connecting again", error);
      if (this.#socket === socket) this.#unreadable(error);
      return;
    }
    if (this.#socket !== socket) return;
    // A hub that was away may know nobody any more.
    if (this.#failures > 0 || (session.me === null && !session.asking)) void session.ask();
    this.#failures = 0;
    clearTimeout(this.#grace);
    this.#grace = undefined;
    if (this.#once) {
      this.#once = false;
      this.#leave();
    } else {
      this.status = "live";
    }
    this.reason = null;
    this.otherVersion = null;
    // Nobody sees a tab in the background; it is drawn when it is looked at again.
    if (!this.#asleep) this.#show();
  }

  #show(): void {
    if (this.#newest === null || this.#newest === this.frame) return;
    this.frame = this.#newest;
    this.receivedAt = this.#heardAt;
  }

  #unreadable(error: unknown): void {
    this.otherVersion = error instanceof VersionError ? error.version : null;
    if (this.otherVersion === null || this.#once) return this.#lost(error instanceof Error ? error.message : "");
    this.#leave();
    clearTimeout(this.#grace);
    this.#grace = undefined;
    this.status = "gone";
    if (!this.#asleep) this.#retry = window.setTimeout(() => this.#connect(), OTHER_VERSION_MS);
  }

  #lost(reason: string): void {
    this.#leave();
    if (this.#once) {
      this.#once = false;
      return;
    }
    if (reason !== "") this.reason = reason;
    const told = () => (this.status = "gone");
    if (this.status === "live") this.#grace ??= window.setTimeout(told, GRACE_MS);
    else if (this.#failures > 0 && this.#grace === undefined) told();
    const longest = Math.min(LONGEST_WAIT_MS, 500 * 2 ** this.#failures++);
    if (!this.#asleep) this.#retry = window.setTimeout(() => this.#connect(), longest * (0.5 + Math.random() / 2));
  }

  /** Lets go of the stream, without a word on the page. */
  #leave(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #retryNow(): void {
    if (this.status === "signed-out") void session.ask();
    else if (this.#socket === null && this.status !== "paused") this.#connect();
  }

  #seen(): void {
    clearTimeout(this.#hiding);
    if (document.hidden) {
      this.#hiding = window.setTimeout(() => this.#asleep && this.#leave(), HIDDEN_MS);
      return;
    }
    this.#show();
    this.#retryNow();
  }

  #tick(): void {
    if (this.#asleep || this.status === "paused") return;
    const now = Date.now();
    if (this.#socket !== null && now - this.#heardAt > SILENCE_MS) this.#lost("the hub says nothing");
    if (this.status !== "live") return;
    this.details.ask();
    if (now - this.#hubAt > HUB_MS) {
      this.#hubAt = now;
      void this.#askHub();
    }
  }

  async #askHub(): Promise<void> {
    try {
      this.hub = await get<HubView>("/api/v1/hub");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // Asked again soon; the live stream tells whether the hub is there.
      this.#hubAt = 0;
    }
  }
}

export const live = new Live();

/** In a component: asks for these nodes in full while it is there; `live.details.get(name)` has them. */
export function watchNodes(names: () => string[]): void {
  $effect(() => {
    const wanted = names();
    // Asking looks at the newest frame and at what is there; neither is a reason to ask again.
    return untrack(() => live.details.watch(() => wanted));
  });
}

/** A moment somebody types, and what the hub understands it as: shown back in full before anything is saved. */
import { ApiError, get } from "../../lib/api/api";
import { live } from "../../lib/live/live.svelte";
import { MINUTE, fullMoment, zone } from "../../lib/moments";
import type { Understood } from "../../lib/reservations";

const TYPING_MS = 250;
/** What was meant as now is so long away at most when the answer comes. */
const NOW_SECONDS = 5;

export class When {
  text = $state("");
  /** null: not understood, or not yet; with an empty text: now. */
  at = $state<number | null>(null);
  /** How long, where that was written: it is saved as such, so that "4h" from now on is no minute more; null: a moment was. */
  length = $state<number | null>(null);
  /** "now", "today": whenever it is saved, it is not past then. */
  isNow = $state(false);
  /** In full, in the time zone of who looks. */
  words = $state("");
  error = $state<string | null>(null);

  /** Texts that need not be shown first: what the page itself wrote, and what was answered. */
  #given = "";
  #told = "";
  #asked: string | null = null;
  /** The hub did not answer: with the next frame it is there again. */
  #unanswered = $state(false);
  #missed = $derived(this.#unanswered ? live.frame : null);
  #timer: number | undefined;
  #answering: Promise<void> = Promise.resolve();

  /** `start`: what a span ("2d 4h") is counted from, where one may be written; null: from now. */
  constructor(private readonly start: (() => number | null) | null = null) {}

  /** Whether somebody typed it who has not been shown what it was understood as. */
  get unseen(): boolean {
    const text = this.text.trim();
    return text !== "" && text !== this.#given && text !== this.#told;
  }

  /** A moment in full: the one that is written here as it stands below the field, where the end of Monday is not Tuesday. */
  named(time: number): string {
    return time === this.at ? this.words : fullMoment(time);
  }

  /** How far away it is by `now`; of a length from now on that is the length, whenever it was asked for. */
  ahead(now: number): number {
    if (this.length !== null && this.start?.() === null) return this.length;
    return this.at === null ? 0 : this.at - now;
  }

  /** As the hub reads a length: "14400s"; null: a moment was written, or more than that can say. */
  get lengthText(): string | null {
    return this.length === null || this.length >= 1e9 ? null : `${this.length}s`;
  }

  /** Instead of somebody who types. */
  give(text: string): void {
    this.text = text;
    this.#given = text.trim();
  }

  /** In a component: asks while somebody types. */
  watch(): void {
    $effect(() => {
      const wanted = this.#question();
      void this.#missed;
      if (wanted === this.#asked) return;
      clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => void this.settle(), this.#asked === null ? 0 : TYPING_MS);
      return () => clearTimeout(this.#timer);
    });
  }

  /** Until what is written now is understood, or refused. */
  async settle(): Promise<void> {
    const wanted = this.#question();
    if (wanted !== this.#asked) {
      this.#asked = wanted;
      this.#answering = this.#ask(wanted);
    }
    await this.#answering;
  }

  #question(): string {
    // From now is another moment each minute, also in a form that was left open.
    const from = this.start === null ? null : (this.start() ?? Math.floor(live.now / MINUTE) * MINUTE);
    return JSON.stringify([this.text.trim(), from]);
  }

  async #ask(question: string): Promise<void> {
    const [text, start] = JSON.parse(question) as [string, number | null];
    if (text === "") {
      [this.at, this.length, this.words, this.error] = [null, null, "", null];
      return;
    }
    try {
      const query = { text, zone: zone(), start };
      const understood = await get<Understood>("/api/v1/when", query);
      if (question !== this.#asked) return;
      [this.at, this.length, this.words, this.error] = [understood.at, understood.length_seconds, understood.text, null];
      [this.#told, this.#unanswered] = [text, false];
      this.isNow = Math.abs(understood.at - live.now) < NOW_SECONDS;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (question !== this.#asked) return;
      [this.at, this.length, this.words, this.error] = [null, null, "", error.words];
      // Nothing is known of it: the next try asks again.
      this.#unanswered = error.status === 0;
      if (this.#unanswered) this.#asked = "";
    }
  }
}

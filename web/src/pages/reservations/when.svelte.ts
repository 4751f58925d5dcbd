/** A moment somebody types, and what the hub understands it as: shown back in full before anything is saved. */
import { ApiError, get } from "../../lib/api/api";
import { clock } from "../../lib/clock.svelte";
import { zone } from "../../lib/moments";
import type { Understood } from "../../lib/reservations";

const TYPING_MS = 250;
const MINUTE_MS = 60_000;

export class When {
  text = $state("");
  /** null: not understood, or not yet; with an empty text: now. */
  at = $state<number | null>(null);
  /** In full, in the time zone of who looks. */
  words = $state("");
  error = $state<string | null>(null);

  /** Texts that need not be shown first: what the page itself wrote, and what was answered. */
  #given = "";
  #told = "";
  #asked: string | null = null;
  #timer: number | undefined;
  #answering: Promise<void> = Promise.resolve();

  /** `start`: what a span ("2d 4h") is counted from, where one may be written; null: from now. */
  constructor(private readonly start: (() => number | null) | null = null) {}

  /** Whether somebody typed it who has not been shown what it was understood as. */
  get unseen(): boolean {
    const text = this.text.trim();
    return text !== "" && text !== this.#given && text !== this.#told;
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
    const from = this.start === null ? null : (this.start() ?? Math.ceil(clock.now / MINUTE_MS) * 60);
    return JSON.stringify([this.text.trim(), from]);
  }

  async #ask(question: string): Promise<void> {
    const [text, start] = JSON.parse(question) as [string, number | null];
    if (text === "") {
      [this.at, this.words, this.error] = [null, "", null];
      return;
    }
    try {
      const query = { text, zone: zone(), start };
      const understood = await get<Understood>("/api/v1/when", query);
      if (question !== this.#asked) return;
      [this.at, this.words, this.error, this.#told] = [understood.at, understood.text, null, text];
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (question !== this.#asked) return;
      [this.at, this.words, this.error] = [null, "", error.words];
      // Nothing is known of it: the next try asks again.
      if (error.status === 0) this.#asked = "";
    }
  }
}

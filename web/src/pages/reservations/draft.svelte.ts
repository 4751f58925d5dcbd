/** A reservation that is being written: nothing typed is lost, whatever the hub says of it. */
import { ApiError } from "../../lib/api/api";
import { send } from "../../lib/api/send";
import { fleet } from "../../lib/fleet.svelte";
import { zone } from "../../lib/moments";
import { type Place, type ReservationView, USUAL_HOURS, writePlaces } from "../../lib/reservations";
import { Task } from "../../lib/task.svelte";
import { NO_PLACES, PlacesError, placesIn } from "./places";
import { indicesOf } from "./spots";
import { When } from "./when.svelte";

const PATH = "/api/v1/reservations";
/** While somebody types, nothing is tried. */
const TYPING_MS = 400;
export const USUAL_END = `${USUAL_HOURS}h`;
export const MOST_GPUS = 1024;

/** Beside which field an objection belongs. */
export type FieldName = "gpus" | "start" | "end" | "person" | "whole";
const FIELDS: Record<string, FieldName> = {
  no_gpus: "gpus",
  gpu_unknown: "gpus",
  same_machine: "gpus",
  not_enough: "gpus",
  too_many_gpus: "gpus",
  in_the_past: "start",
  too_far: "start",
  too_long: "end",
  ends_before_start: "end",
};

/** GPUs of the fleet as somebody writes them, or what is wrong with that. */
export function placesWritten(text: string, had: readonly Place[] = []): Place[] | PlacesError {
  return placesIn(text, { indices: indicesOf, names: () => fleet.byName.keys(), had });
}

/** What the hub objects to in a field, in words; null: nothing, or others are in the way. */
export function objectionTo(field: FieldName, objection: ApiError | null): string | null {
  if (objection === null || objection.conflicts.length > 0 || objection.alternatives.length > 0) return null;
  if ((FIELDS[objection.code] ?? "whole") !== field) return null;
  return objection.words;
}

export class Draft {
  way = $state<"chosen" | "any">("any");
  gpus = $state("");
  /** null: nothing is written. */
  count = $state<number | null>(1);
  memory = $state("");
  model = $state("");
  sameNode = $state(true);
  comment = $state("");
  person = $state("");
  readonly start = new When();
  readonly end = new When(() => this.start.at);

  /** What would be reserved, by the hub's own trial; null: not tried yet, or refused. */
  trial = $state.raw<ReservationView | null>(null);
  objection = $state.raw<ApiError | null>(null);
  /** What was reserved last; null once another is written or asked for. Until then nothing is tried, as it would hide that, and
   *  nothing saved: who clicks twice reserves once. */
  made = $state.raw<ReservationView | null>(null);
  /** Was it to be saved before its times were shown? They are now, and saved when that is wanted once more. */
  again = $state(false);
  readonly task = new Task();
  /** Something was, when it was to be saved: before that nobody is told so. */
  #missing = $state(false);
  #tried = "";
  #round = 0;

  places: Place[] | PlacesError = $derived(placesWritten(this.gpus));

  constructor() {
    this.end.give(USUAL_END);
  }

  /** Is there enough to be tried? */
  get ready(): boolean {
    const chosen = !(this.places instanceof PlacesError) && this.places.length > 0;
    const begins = this.start.text.trim() === "" || this.start.at !== null;
    return begins && this.end.at !== null && (this.way === "any" ? this.#countable : chosen);
  }

  get #countable(): boolean {
    return this.count !== null && Number.isInteger(this.count) && this.count >= 1 && this.count <= MOST_GPUS;
  }

  /** What is wrong with a field, in words; null: nothing. */
  wrong(field: FieldName): string | null {
    if (field === "gpus" && this.way === "any" && !this.#countable && (this.count !== null || this.#missing)) return `take a whole number from 1 to ${MOST_GPUS}`;
    if (field === "gpus" && this.way === "chosen" && this.places instanceof PlacesError) return this.places.message;
    if (field === "gpus" && this.way === "chosen" && this.#missing && this.gpus.trim() === "") return NO_PLACES;
    if (field === "start" && this.start.error !== null) return this.start.error;
    if (field === "end" && this.end.error !== null) return this.end.error;
    if (field === "end" && this.#missing && this.end.text.trim() === "") return "say until when, or for how long";
    return objectionTo(field, this.objection);
  }

  /** These GPUs, and a time where one is told. */
  choose(places: readonly Place[], start?: string, end?: string): void {
    this.made = null;
    this.way = "chosen";
    this.gpus = writePlaces(places);
    if (start !== undefined) this.start.give(start);
    if (end !== undefined) this.end.give(end);
  }

  /** In a component: the hub is asked what would come of it, while `may`. */
  watch(may: () => boolean): void {
    this.start.watch();
    this.end.watch();
    $effect(() => {
      if (this.ready) this.#missing = false;
    });
    $effect(() => {
      const wanted = may() && this.made === null && this.ready ? this.#wanted() : "";
      if (wanted === this.#tried) return;
      // What is being saved is not tried: it would be in its own way.
      const timer = window.setTimeout(() => this.task.busy || void this.#try(wanted), wanted === "" ? 0 : TYPING_MS);
      return () => clearTimeout(timer);
    });
  }

  /** The same once more: something has changed meanwhile. */
  tryAgain(): void {
    if (this.#tried !== "" && !this.task.busy) void this.#try(this.#tried);
  }

  async #try(wanted: string): Promise<void> {
    this.#tried = wanted;
    const round = ++this.#round;
    if (wanted === "") {
      [this.trial, this.objection] = [null, null];
      return;
    }
    try {
      const trial = await send<ReservationView>("POST", PATH, { ...JSON.parse(wanted)[0], dry_run: true });
      if (round === this.#round) [this.trial, this.objection] = [trial, null];
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (round === this.#round) [this.trial, this.objection] = [null, error];
    }
  }

  /** Makes it. Where it is refused everything stays as it was written. */
  async save(): Promise<void> {
    if (this.made !== null) return;
    this.again = false;
    const unseen = this.start.unseen || this.end.unseen;
    await this.task.run(async () => {
      await this.start.settle();
      await this.end.settle();
      this.#missing = !this.ready;
      this.again = unseen && !this.#missing;
      if (this.#missing || this.again) return;
      const body = this.#body();
      this.#round++;
      try {
        this.made = await send<ReservationView>("POST", PATH, body);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        this.#tried = this.#wanted();
        [this.trial, this.objection] = [null, error];
        throw error;
      }
    });
    if (this.made !== null) this.#clear();
  }

  #clear(): void {
    this.gpus = "";
    this.comment = "";
    this.person = "";
    this.start.give("");
    this.end.give(USUAL_END);
    this.#tried = "";
    this.#round++;
    [this.trial, this.objection] = [null, null];
  }

  /** What is asked for, and what its end is understood as: from now on that is another each minute. */
  #wanted(): string {
    return JSON.stringify([this.#body(), this.end.at]);
  }

  #body(): Record<string, unknown> {
    const { memory, model, sameNode: same_node } = this;
    const n = this.count ?? 0;
    const wish = { n, same_node: same_node && n > 1, ...(memory === "" ? {} : { memory }), ...(model === "" ? {} : { model }) };
    return {
      ...(this.way === "any" ? { wish } : { gpus: this.places }),
      ...(this.start.at === null || this.start.isNow ? {} : { start: this.start.at }),
      // What was shown is what is saved: not the words, which mean something else a minute later. A length stays as long.
      ...(this.end.lengthText === null ? { end: this.end.at } : { for: this.end.lengthText }),
      comment: this.comment.trim(),
      ...(this.person.trim() === "" ? {} : { person: this.person.trim() }),
      zone: zone(),
    };
  }
}

/** What the form would reserve, as it is drawn on the timeline: it follows the form, whoever has written that. */
import type { ReservationView } from "../../lib/reservations";
import { runs } from "./blocks";
import type { Picked } from "./picked";

export interface Marked {
  /** UUIDs of its GPUs: rows come and go. */
  ids: readonly string[];
  from: number;
  to: number;
}

/** What a hand has marked, and what stood in the form then. */
export interface ByHand extends Marked {
  gpus: string;
  start: string;
  end: string;
}

/** As much of a draft as is read here. */
export interface Written {
  way: "chosen" | "any";
  gpus: string;
  start: { text: string };
  end: { text: string };
  trial: Pick<ReservationView, "gpus" | "start" | "end"> | null;
}

/** Whether the form still says what a hand has marked. */
export function isByHand(hand: ByHand | null, { way, gpus, start, end }: Written): hand is ByHand {
  return hand !== null && way === "chosen" && gpus === hand.gpus && start.text === hand.start && end.text === hand.end;
}

/** As it was marked; else what the hub would make of the form; null: nothing, or gpulse picks. */
export function markedIn(hand: ByHand | null, draft: Written): Marked | null {
  if (isByHand(hand, draft)) return hand;
  const { way, gpus, trial } = draft;
  if (way === "any" || gpus.trim() === "" || trial === null) return null;
  return { ids: trial.gpus.flatMap(({ id }) => id ?? []), from: trial.start, to: trial.end };
}

/** Where it is drawn: one box for neighbouring rows, none for what the filter leaves out. */
export function boxesOf({ ids, from, to }: Marked, rowsOf: (id: string) => readonly number[]): Picked[] {
  const rows = [...new Set(ids.flatMap(rowsOf))].filter((row) => row >= 0).sort((a, b) => a - b);
  return runs(rows).map(([first, last]) => ({ first, last, from, to }));
}

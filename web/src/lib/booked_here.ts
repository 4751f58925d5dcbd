/** What is reserved of the GPUs of a page: the page asks once, and all that is on it reads it here. */
import { getContext, setContext } from "svelte";
import { Findings } from "./findings";
import type { ReservationPage } from "./reservations";

export interface BookedHere {
  /** null: not answered yet, or nothing to ask. */
  readonly page: ReservationPage | null;
  readonly findings: Findings;
}

const KEY = Symbol("booked");
const NOT_ASKED: BookedHere = { page: null, findings: new Findings(null) };

/** In the component of a page. */
export function tellBooked(booked: BookedHere): void {
  setContext(KEY, booked);
}

/** In any component below it; a page that asks for nothing has no findings. */
export function bookedHere(): BookedHere {
  return getContext<BookedHere | undefined>(KEY) ?? NOT_ASKED;
}

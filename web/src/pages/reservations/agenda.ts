/** Reservations by day, for a list. */
import { midnight } from "../../lib/moments";
import type { ReservationView } from "../../lib/reservations";
import type { Span } from "./scale";

export interface AgendaDay {
  /** Its midnight. */
  day: number;
  reservations: ReservationView[];
}

/** Each stands once: on the day it begins, or on the first that is shown. Days without any are left out. */
export function agendaOf(reservations: readonly ReservationView[], span: Span): AgendaDay[] {
  const days = new Map<number, ReservationView[]>();
  const shown = reservations.filter((one) => one.state !== "cancelled" && one.start < span.to && one.last > span.from);
  for (const one of [...shown].sort((a, b) => a.start - b.start || a.last - b.last)) {
    const day = midnight(Math.max(one.start, span.from));
    const there = days.get(day);
    if (there === undefined) days.set(day, [one]);
    else there.push(one);
  }
  return [...days].map(([day, of]) => ({ day, reservations: of })).sort((a, b) => a.day - b.day);
}

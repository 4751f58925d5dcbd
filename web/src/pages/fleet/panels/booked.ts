/** What is reserved next: the very next, and one's own among it. */
import type { ReservationView } from "../../../lib/reservations";

/** By their start. Where there is no room for all: the next one, unless one's own is all that fits, then one's own. */
export function nextOnes(reservations: readonly ReservationView[], now: number, most: number): { shown: ReservationView[]; more: number } {
  const byStart = (a: ReservationView, b: ReservationView) => a.start - b.start;
  const coming = reservations.filter((one) => one.start > now && one.state === "coming").sort(byStart);
  if (coming.length <= most) return { shown: coming, more: 0 };
  const next = most > 2 ? coming.slice(0, 1) : [];
  const later = coming.slice(next.length);
  const wanted = [...next, ...later.filter((one) => one.mine), ...later.filter((one) => !one.mine)];
  // The last line says how many more.
  const shown = wanted.slice(0, most - 1).sort(byStart);
  return { shown, more: coming.length - shown.length };
}

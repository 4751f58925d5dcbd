/** The keyboard's cursor on the timeline: which cell a key leads to, and what a screen reader hears of it. */
import { DAY, between, midnight, shortMoment } from "../../lib/moments";
import type { ReservationView } from "../../lib/reservations";
import type { Corner } from "./picked";
import { snapped } from "./scale";

/** The begin of the next cell, or of one before: by the wall clock, also where that changes. */
export function cellAfter(time: number, seconds: number, times = 1): number {
  return seconds >= DAY ? midnight(time, times) : snapped(time + times * seconds, seconds);
}

/** Where a key leads; null: it is no key of the cursor's. `page` is how many rows a screen has. */
export function moveBy(key: string, at: Corner, seconds: number, rows: number, page: number, now: number): Corner | null {
  const down: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
  if (key in down) return { row: Math.max(0, Math.min(rows - 1, at.row + down[key])), time: at.time };
  if (key === "ArrowRight") return { row: at.row, time: cellAfter(at.time, seconds) };
  if (key === "ArrowLeft") return { row: at.row, time: cellAfter(at.time, seconds, -1) };
  if (key === "Home") return { row: at.row, time: snapped(now, seconds, "down") };
  return null;
}

/** "gpu03 GPU 2, Fri 14:00–15:00, free" */
export function cellWords(where: string, from: number, to: number, booked: readonly ReservationView[], now: number): string {
  const who = booked.map((one) => {
    const comment = one.comment === "" ? "" : `, ${one.comment}`;
    return `reserved by ${one.mine ? "you" : one.name} until ${shortMoment(one.last, now)}${comment}`;
  });
  const state = who.length > 0 ? who.join("; ") : to <= now ? "past" : "not reserved";
  return `${where}, ${between(from, to, now)}, ${state}`;
}

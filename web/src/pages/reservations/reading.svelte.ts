/** The reservations of a window of time, asked for again when one of them changes. */
import { live } from "../../lib/live/live.svelte";
import { DAY } from "../../lib/moments";
import type { ReservationPage } from "../../lib/reservations";
import { type Answer, asked } from "../fleet/asked.svelte";
import type { Span } from "./scale";

/** Countdowns and findings have a stream of their own; this is for what a hub forgot to tell. */
const AGAIN_MS = 60_000;
/** Asked for in whole weeks, with one more on each side: those who move a little need not ask. */
const BLOCK = 7 * DAY;
const MOST = 10_000;

/** In a component. */
export function reservationsOf(span: () => Span): Answer<ReservationPage> {
  return asked<ReservationPage>(() => {
    const { from, to } = span();
    return {
      path: "/api/v1/reservations",
      query: { from: (Math.floor(from / BLOCK) - 1) * BLOCK, to: (Math.ceil(to / BLOCK) + 1) * BLOCK, limit: MOST },
      version: live.frame?.reservations,
    };
  }, AGAIN_MS);
}

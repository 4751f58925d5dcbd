/** The reservations of a window of time, asked for again when one of them changes. */
import { type Query, get } from "../../lib/api/api";
import { live } from "../../lib/live/live.svelte";
import { DAY } from "../../lib/moments";
import type { ReservationPage } from "../../lib/reservations";
import { type Answer, type Question, asked } from "../fleet/asked.svelte";
import type { Span } from "./scale";

/** Countdowns and findings have a stream of their own; this is for what a hub forgot to tell. */
const AGAIN_MS = 60_000;
/** Asked for in whole days or weeks, with one more on each side: those who move a little need not ask. */
const BLOCKS = [DAY, 7 * DAY];
/** In one answer, and answers at most: so many a browser can draw. */
const MOST = 10_000;
const MOST_ANSWERS = 10;

/** In a component. Where `next` is not null there are more. */
export function reservationsOf(span: () => Span): Answer<ReservationPage> {
  return asked<ReservationPage>(
    () => ({
      path: "/api/v1/reservations",
      query: { ...aroundOf(span()), limit: MOST },
      version: live.frame?.reservations,
    }),
    AGAIN_MS,
    wholeAnswer,
  );
}

/** What is asked for, for a window. */
export function aroundOf({ from, to }: Span): { from: number; to: number } {
  const block = BLOCKS.find((one) => to - from <= 2 * one) ?? BLOCKS[1];
  return { from: (Math.floor(from / block) - 1) * block, to: (Math.ceil(to / block) + 1) * block };
}

/** The hub answers in pages, the last to start first: without the later ones, what begins soon would look free. */
export async function wholeAnswer({ path, query }: Question, signal: AbortSignal, ask = get): Promise<ReservationPage> {
  const one = (more: Query) => ask<ReservationPage>(path, { ...query, ...more }, signal);
  const whole = await one({});
  for (let answers = 1; whole.next !== null && answers < MOST_ANSWERS; answers++) {
    const { reservations, next } = await one({ before: whole.next });
    whole.reservations.push(...reservations);
    whole.next = next;
  }
  return whole;
}

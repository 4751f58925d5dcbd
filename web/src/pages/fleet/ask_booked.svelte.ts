/** The one question of a page for what is reserved of its GPUs, asked again when something about that has changed. */
import { type BookedHere, tellBooked } from "../../lib/booked_here";
import { Findings } from "../../lib/findings";
import { isExport } from "../../lib/hub";
import { live } from "../../lib/live/live.svelte";
import { HOUR } from "../../lib/moments";
import type { ReservationPage } from "../../lib/reservations";
import { asked } from "./asked.svelte";

/** The live stream says when to ask; this is for what a hub forgot to tell. */
const AGAIN_MS = 60_000;

export interface Wanted {
  /** Only of this node. */
  node?: string;
  /** So many seconds of the past, and of what comes. */
  back?: number;
  ahead: number;
}

/** In the component of a page; null: nothing to ask. */
export function askBooked(wanted: () => Wanted | null): BookedHere {
  const answer = asked<ReservationPage>(() => {
    const [want, frame] = [wanted(), live.frame];
    if (want === null || frame === null || isExport()) return null;
    // Another time each hour, or each second would be another question.
    const hour = (time: number) => Math.floor(time / HOUR) * HOUR;
    const [from, to] = [hour(frame.time - (want.back ?? 0)), hour(frame.time) + want.ahead];
    const node = want.node === undefined ? {} : { node: want.node };
    return { path: "/api/v1/reservations", query: { ...node, from, to }, version: frame.reservations };
  }, AGAIN_MS);
  const findings = $derived(new Findings(answer.value));
  const booked: BookedHere = {
    get page() {
      return answer.value;
    },
    get findings() {
      return findings;
    },
  };
  tellBooked(booked);
  return booked;
}

/** What somebody has marked on the timeline, by pointer or by keys: rows and a time; and an edge that is pulled. */
import { between, clockTime, dayText, spanText } from "../../lib/moments";
import { cellAfter } from "./cells";
import { snapped } from "./scale";

/** A corner of it: a row, and the cell of time that begins at `time`. */
export interface Corner {
  row: number;
  time: number;
}

export interface Picked {
  first: number;
  last: number;
  from: number;
  to: number;
}

/** From one corner to the other, both cells included. */
export function pickedCells(anchor: Corner, cursor: Corner, next: (time: number) => number): Picked {
  return {
    first: Math.min(anchor.row, cursor.row),
    last: Math.max(anchor.row, cursor.row),
    from: Math.min(anchor.time, cursor.time),
    to: next(Math.max(anchor.time, cursor.time)),
  };
}

/** Between two points of a pointer, at least a step long. Nothing begins in the past; null: all of it is there. */
export function pickedDrag(anchor: Corner, pointer: Corner, seconds: number, now: number): Picked | null {
  const [from, to] = [Math.min(anchor.time, pointer.time), Math.max(anchor.time, pointer.time)];
  const begin = Math.max(from, now);
  const end = Math.max(to, from + seconds);
  if (end <= now) return null;
  return { first: Math.min(anchor.row, pointer.row), last: Math.max(anchor.row, pointer.row), from: begin, to: end };
}

/** A hand is at an edge so many pixels before it; it has come there by as many as a tremble has not; rows come by so many at most. */
const EDGE_PX = 20;
const WAY_PX = 8;
const FASTEST_PX = 14;

/** By how many pixels rows go on, down or up (negative), for a hand at `y` that began to mark at `begin`: the further out the faster. */
export function scrolledBy(y: number, begin: number, top: number, bottom: number): number {
  const [below, above] = [y - (bottom - EDGE_PX), top + EDGE_PX - y];
  const speed = (pixels: number) => Math.min(FASTEST_PX, 1 + Math.floor(pixels / 4));
  if (below > 0 && y - begin > WAY_PX) return speed(below);
  if (above > 0 && begin - y > WAY_PX) return -speed(above);
  return 0;
}

/** An edge that is pulled, in the row it was taken in. */
export interface Pulling {
  id: string;
  row: number;
  edge: "start" | "end";
  start: number;
  end: number;
}

/** An edge of a reservation that is pulled: the other stays, and a step is left between. What runs keeps its time until
 *  the next step: ending it now is a button that asks twice. None of it makes longer what was to become shorter. */
export function pulled(
  times: { start: number; end: number },
  edge: "start" | "end",
  time: number,
  seconds: number,
  now: number,
): { start: number; end: number } {
  if (edge === "start") return { start: Math.min(Math.max(time, now), Math.max(times.start, times.end - seconds)), end: times.end };
  const least = times.start > now ? times.start + seconds : cellAfter(snapped(now, seconds, "down"), seconds);
  return { start: times.start, end: Math.max(time, Math.min(times.end, least)) };
}

/** "Fri 20 Nov 18:00" and "6 h": where the edge is, and how long the whole then is. */
export function pulledWords({ edge, start, end }: Pulling): [string, string] {
  const at = edge === "start" ? start : end;
  return [`${dayText(at)} ${clockTime(at)}`, spanText(end - start)];
}

/** "14:00–18:00" and "4 h" */
export function pickedWords({ from, to }: Picked, now: number): [string, string] {
  return [between(from, to, now), spanText(to - from)];
}

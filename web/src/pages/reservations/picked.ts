/** What somebody has marked on the timeline, by pointer or by keys: rows and a time. */

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

/** An edge of a reservation that is pulled: the other stays, and a step is left between. */
export function pulled(
  times: { start: number; end: number },
  edge: "start" | "end",
  time: number,
  seconds: number,
  now: number,
): { start: number; end: number } {
  if (edge === "end") return { start: times.start, end: Math.max(time, now, times.start + seconds) };
  return { start: Math.min(Math.max(time, now), times.end - seconds), end: times.end };
}

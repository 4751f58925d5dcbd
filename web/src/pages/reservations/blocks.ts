/** Where reservations are drawn: one of several neighbouring GPUs is one block, so that it reads as one thing. */
import type { ReservationView } from "../../lib/reservations";
import { type Rows, isNode } from "./rows";

export interface Block {
  /** Its reservation and its first row. */
  key: string;
  reservation: ReservationView;
  /** Numbers of rows. */
  first: number;
  last: number;
  /** In the head of a collapsed node: a thin line. */
  thin: boolean;
  /** Lines of one time lie below each other: which this is, and how many there are in its row. */
  lane: number;
  lanes: number;
}

/** More do not fit into a row. */
const MOST_LANES = 4;

type Spot = ReservationView["gpus"][number];

/** All blocks, by the rows they touch. */
export class Blocks {
  readonly #byRow = new Map<number, Block[]>();
  /** By reservation. */
  readonly #byId = new Map<string, Block[]>();

  constructor(reservations: readonly ReservationView[], rows: Rows, rowsOf: (gpu: Spot) => readonly number[]) {
    for (const reservation of reservations) {
      // One that was cancelled before its start holds nothing.
      if (reservation.last <= reservation.start) continue;
      const found = new Set(reservation.gpus.flatMap(rowsOf));
      found.delete(-1);
      const sorted = [...found].sort((a, b) => a - b);
      const heads = sorted.filter((row) => isNode(rows[row]));
      for (const row of heads) this.#add({ ...one(reservation, row, row), thin: true });
      for (const [first, last] of runs(sorted.filter((row) => !isNode(rows[row])))) this.#add(one(reservation, first, last));
    }
    for (const row of this.#byRow.values()) if (row[0].thin) lay(row);
  }

  #add(block: Block): void {
    for (let row = block.first; row <= block.last; row++) put(this.#byRow, row, block);
    put(this.#byId, block.reservation.id, block);
  }

  /** Those in these rows that are in the window, each once. */
  inSight(first: number, end: number, from: number, to: number): Block[] {
    const found = new Set<Block>();
    for (let row = first; row < end; row++) {
      for (const block of this.#byRow.get(row) ?? []) {
        if (block.reservation.start < to && block.reservation.last > from) found.add(block);
      }
    }
    return [...found];
  }

  /** What is booked in a row at some time between. */
  at(row: number, from: number, to: number): Block[] {
    return this.inSight(row, row + 1, from, to);
  }

  of(id: string): readonly Block[] {
    return this.#byId.get(id) ?? [];
  }
}

function one(reservation: ReservationView, first: number, last: number): Block {
  return { key: `${reservation.id} ${first}`, reservation, first, last, thin: false, lane: 0, lanes: 1 };
}

/** Each into the first lane that is free at its time; where there are too many, over the last. */
function lay(thin: Block[]): void {
  const ends: number[] = [];
  for (const block of [...thin].sort((a, b) => a.reservation.start - b.reservation.start)) {
    const free = ends.findIndex((end) => end <= block.reservation.start);
    block.lane = Math.min(free < 0 ? ends.length : free, MOST_LANES - 1);
    ends[block.lane] = Math.max(ends[block.lane] ?? 0, block.reservation.last);
  }
  for (const block of thin) block.lanes = ends.length;
}

function put<K>(map: Map<K, Block[]>, key: K, block: Block): void {
  const there = map.get(key);
  if (there === undefined) map.set(key, [block]);
  else there.push(block);
}

/** In pixels from the top of its first row. A line is at most 8 high, in the middle, with a pixel to the next. */
export function placeOfBlock({ first, last, thin, lane, lanes }: Block, rowHeight: number): { top: number; height: number } {
  const room = rowHeight - 5;
  if (!thin) return { top: 2, height: (last - first) * rowHeight + room };
  const height = Math.min(8, Math.floor((room + 1) / lanes) - 1);
  return { top: 2 + Math.floor((room - lanes * (height + 1) + 1) / 2) + lane * (height + 1), height };
}

/** Numbers that follow each other, as first and last. */
export function runs(sorted: readonly number[]): [number, number][] {
  const found: [number, number][] = [];
  for (const number of sorted) {
    const last = found.at(-1);
    if (last !== undefined && number === last[1] + 1) last[1] = number;
    else found.push([number, number]);
  }
  return found;
}

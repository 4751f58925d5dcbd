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
}

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
      for (const [first, last] of runs([...found].sort((a, b) => a - b))) {
        this.#add({ key: `${reservation.id} ${first}`, reservation, first, last, thin: isNode(rows[first]) });
      }
    }
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

function put<K>(map: Map<K, Block[]>, key: K, block: Block): void {
  const there = map.get(key);
  if (there === undefined) map.set(key, [block]);
  else there.push(block);
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

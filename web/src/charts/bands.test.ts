import { expect, test } from "vitest";
import type { ReservationView } from "../lib/reservations";
import { bandAt, bandLines, bandsOf } from "./bands";

const HOUR = 3600;
/** A moment of some day, by the clock of this computer. */
const at = (hour: number, minute = 0) => new Date(2026, 10, 16, hour, minute).getTime() / 1000;
const [start, end] = [at(15, 50), at(16)];

function reserved(places: string[], more: Partial<ReservationView> = {}): ReservationView {
  const gpus = places.map((place) => ({ node: place.split(":")[0], index: place.split(":")[1], id: place }));
  const first = more.start ?? at(14);
  const last = more.last ?? at(18);
  return {
    id: places.join(" "), person: "alice", name: "Alice", maker: "alice", gpus, start: first, end: last, last, comment: "", hold: false,
    made_at: 0, revision: 1, ended_at: null, ending: null, imported: false, state: "now", mine: false, may_change: false, may_end: false, ...more,
  };
}

test("whose time it is, from when to when", () => {
  const [band, ...more] = bandsOf([reserved(["n1:0"]), reserved(["n1:1"]), reserved(["n2:0"])], "n1", "0", start, end);
  expect(more).toEqual([]);
  expect(band).toMatchObject({ start: at(14), end: at(18), name: "Alice", mine: false, words: "Reserved by Alice from 14:00 to 18:00" });
  const [own] = bandsOf([reserved(["n1:0"], { mine: true, hold: true })], "n1", "0", start, end);
  expect(own.words).toBe("Held by you from 14:00 to 18:00");
});

test("what ended early ends there, and what holds nothing is not shown", () => {
  const early = reserved(["n1:0"], { last: at(15, 55), end: at(18) });
  const cancelled = reserved(["n1:0"], { last: at(14) });
  const over = reserved(["n1:0"], { last: start });
  const later = reserved(["n1:0"], { start: end });
  const bands = bandsOf([later, cancelled, early, over], "n1", "0", start, end);
  expect(bands.map((band) => band.end)).toEqual([at(15, 55)]);
  expect(bandAt(bands, at(15, 52))).toBe("Reserved by Alice from 14:00 to 15:55");
  expect(bandAt(bands, at(15, 55))).toBe(null);
});

test("who has a card has its instances, and not the other way round", () => {
  const all = [reserved(["n1:0"], { start: at(14) }), reserved(["n1:0.2"], { start: at(13) })];
  expect(bandsOf(all, "n1", "0.2", start, end)).toHaveLength(2);
  expect(bandsOf(all, "n1", "0.2", start, end)[0].start).toBe(at(13));
  expect(bandsOf(all, "n1", "0.1", start, end)).toHaveLength(1);
  expect(bandsOf(all, "n1", "0", start, end)).toHaveLength(1);
});

test("a node's lines name its GPUs, and not those of others", () => {
  const lines = bandLines([reserved(["n1:3"], { start: at(15) }), reserved(["n1:0", "n1:1", "n2:5"])], "n1", start, end);
  expect(lines.map((line) => line.words)).toEqual([
    "GPUs 0–1: reserved by Alice from 14:00 to 18:00",
    "GPU 3: reserved by Alice from 15:00 to 18:00",
  ]);
  expect(bandLines([reserved(["n2:5"])], "n1", start, end + HOUR)).toEqual([]);
});

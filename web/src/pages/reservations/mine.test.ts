import { expect, test } from "vitest";
import { DAY } from "../../lib/moments";
import type { ReservationView } from "../../lib/reservations";
import { ownOf } from "./mine";

const NOW = 1_800_000_000;

function one(id: string, start: number, last: number, more: Partial<ReservationView> = {}): ReservationView {
  return {
    id, person: "ann", name: "ann", maker: "ann", gpus: [{ node: "gpu1", index: "0", id: "GPU-1" }], start: NOW + start, end: NOW + last,
    last: NOW + last, comment: "", hold: false, made_at: NOW, revision: 1, ended_at: null, ending: null, imported: false,
    state: "now", mine: true, may_change: false, may_end: false, ...more,
  };
}

const ids = (all: ReservationView[]) => all.map(({ id }) => id);

test("those that stand, by their start, and for a day those that were released", () => {
  const released = { state: "over", ending: "no_show" } as const;
  const { standing, released: lost } = ownOf(
    [
      one("later", 60, 90),
      one("now", -60, 90),
      one("over", -60, -1, { state: "over" }),
      one("cancelled", 60, 90, { state: "cancelled" }),
      one("bobs", -60, 90, { mine: false }),
      one("released", -600, -60, released),
      one("long ago", -2 * DAY, -DAY, released),
    ],
    NOW,
  );
  expect(ids(standing)).toEqual(["now", "later"]);
  expect(ids(lost)).toEqual(["released"]);
});

test("what was released this moment, by a clock ahead of ours, is not there twice", () => {
  const { standing, released } = ownOf([one("r", -60, 0.5, { state: "over", ending: "no_show" })], NOW);
  expect([...ids(standing), ...ids(released)]).toEqual(["r"]);
});

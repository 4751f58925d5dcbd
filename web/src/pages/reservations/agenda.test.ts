import { expect, test } from "vitest";
import { HOUR } from "../../lib/moments";
import type { ReservationView } from "../../lib/reservations";
import { agendaOf } from "./agenda";
import { changeWords } from "./history";

// Before the first Date.
process.env.TZ = "Europe/Berlin";

const at = (text: string) => new Date(text).getTime() / 1000;
const one = (id: string, start: string, last: string, state = "coming") =>
  ({ id, start: at(start), last: at(last), state }) as ReservationView;

test("each stands once, on its first day that is shown", () => {
  const span = { from: at("2026-11-18T00:00:00"), to: at("2026-11-25T00:00:00") };
  const days = agendaOf(
    [
      one("later", "2026-11-20T09:00:00", "2026-11-22T09:00:00"),
      one("running", "2026-11-10T09:00:00", "2026-11-19T09:00:00", "now"),
      one("over", "2026-11-10T09:00:00", "2026-11-18T00:00:00", "over"),
      one("cancelled", "2026-11-20T09:00:00", "2026-11-20T10:00:00", "cancelled"),
      one("early", "2026-11-20T08:00:00", "2026-11-20T10:00:00"),
      one("far", "2026-11-25T00:00:00", "2026-11-26T00:00:00"),
    ],
    span,
  );
  expect(days.map(({ day, reservations }) => [day, reservations.map(({ id }) => id)])).toEqual([
    [at("2026-11-18T00:00:00"), ["running"]],
    [at("2026-11-20T00:00:00"), ["early", "later"]],
  ]);
});

test("history in words", () => {
  const now = at("2026-11-18T12:00:00");
  const terms = { person: "ann", gpus: [{ node: "gpu1", index: "0", id: null }], start: now, end: now + HOUR, comment: "" };
  expect(changeWords({ at: now, by: "ann", action: "made", before: null, after: terms }, now)).toBe("ann reserved gpu1: 0, 12:00–13:00");
  const after = { ...terms, end: now + 2 * HOUR, comment: "<b>longer" };
  expect(changeWords({ at: now, by: "root", action: "changed", before: terms, after }, now)).toBe(
    "root changed it: until 14:00 instead of 13:00, “<b>longer”",
  );
  expect(changeWords({ at: now, by: "ann", action: "ended", before: terms, after: terms }, now)).toBe("ann ended it");
});

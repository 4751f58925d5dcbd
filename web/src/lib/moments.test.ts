import { expect, test } from "vitest";
import { DAY, HOUR, between, dayText, fullMoment, midnight, shortMoment, spanText, written } from "./moments";

// Before the first Date.
process.env.TZ = "Europe/Berlin";

const at = (text: string) => new Date(text).getTime() / 1000;

test("as short as it stays clear", () => {
  const now = at("2026-11-16T10:00:00");
  expect(shortMoment(at("2026-11-16T18:00:00"), now)).toBe("18:00");
  expect(shortMoment(at("2026-11-20T18:00:00"), now)).toBe("Fri 18:00");
  expect(shortMoment(at("2026-11-22T23:59:00"), now)).toBe("Sun 23:59");
  // A week on, "Mon" would be today.
  expect(shortMoment(at("2026-11-23T09:00:00"), now)).toBe("23 Nov 09:00");
  expect(shortMoment(at("2027-01-01T00:00:00"), now)).toBe("1 Jan 2027 00:00");
  expect(shortMoment(at("2026-11-15T18:00:00"), now)).toBe("15 Nov 18:00");
});

test("in full there is nothing left to guess", () => {
  expect(fullMoment(at("2026-11-20T18:00:00"))).toBe("Friday 20 November 2026, 18:00 CET");
  expect(fullMoment(at("2026-07-01T00:05:00"))).toMatch(/^Wednesday 1 July 2026, 00:05 (CEST|GMT\+2)$/);
});

test("of another year the year is said", () => {
  const day = at("2027-10-31T12:00:00");
  expect([dayText(day), dayText(day, day), dayText(day, at("2026-11-16T10:00:00"))]).toEqual(["Sun 31 Oct", "Sun 31 Oct", "Sun 31 Oct 2027"]);
});

test("no day is said twice", () => {
  const now = at("2026-11-16T10:00:00");
  expect(between(at("2026-11-16T14:00:00"), at("2026-11-16T18:00:00"), now)).toBe("14:00–18:00");
  expect(between(at("2026-11-17T14:00:00"), at("2026-11-17T18:00:00"), now)).toBe("Tue 14:00–18:00");
  expect(between(at("2026-11-16T22:00:00"), at("2026-11-17T06:00:00"), now)).toBe("today 22:00 – Tue 06:00");
});

test("days are 23 or 25 hours long where the clocks change", () => {
  const spring = midnight(at("2026-03-29T12:00:00"));
  expect(midnight(spring, 1) - spring).toBe(23 * HOUR);
  const autumn = midnight(at("2026-10-25T12:00:00"));
  expect(midnight(autumn, 1) - autumn).toBe(DAY + HOUR);
});

test("how long", () => {
  expect([0, 45 * 60, 4 * HOUR, 5400, 2 * DAY + 4 * HOUR, 2 * DAY + 4 * HOUR + 60].map(spanText)).toEqual([
    "0 min", "45 min", "4 h", "1 h 30 min", "2 d 4 h", "2 d 4 h",
  ]);
});

test("what is written into a form can be read again", () => {
  expect(written(at("2026-12-01T08:05:00"))).toBe("2026-12-01 08:05");
  // This hour comes twice.
  expect(written(at("2026-10-25T02:30:00+02:00"))).toBe("2026-10-25 02:30 +02:00");
  expect(written(at("2026-10-25T02:30:00+01:00"))).toBe("2026-10-25 02:30 +01:00");
  expect(written(at("2026-10-25T03:00:00+01:00"))).toBe("2026-10-25 03:00");
});

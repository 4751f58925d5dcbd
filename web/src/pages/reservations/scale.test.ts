import { expect, test } from "vitest";
import { DAY, HOUR, midnight } from "../../lib/moments";
import {
  LONGEST, SHORTEST, type Span, axisOf, cellStep, labelsOf, readSpan, snapStep, snapped, spanNow, spanOf, timeAt, turned, viewOf, writeSpan,
  xOf, zoomed,
} from "./scale";

// Before the first Date.
process.env.TZ = "Europe/Berlin";

const at = (text: string) => new Date(text).getTime() / 1000;
const NOON = at("2026-11-18T12:00:00");

test("a view begins with its day", () => {
  expect(spanOf("week", NOON)).toEqual({ from: at("2026-11-18T00:00:00"), to: at("2026-11-25T00:00:00") });
  expect(viewOf(spanOf("month", NOON))).toBe("month");
  // A week with an hour more is still a week.
  const autumn = spanOf("week", at("2026-10-22T12:00:00"));
  expect(autumn.to - autumn.from).toBe(7 * DAY + HOUR);
  expect(viewOf(autumn)).toBe("week");
  expect(turned(autumn, 1)).toEqual(spanOf("week", at("2026-10-29T12:00:00")));
  expect(turned(turned(autumn, 1), -1)).toEqual(autumn);
});

test("today's day begins an hour ago, that of another day with it", () => {
  const today = spanNow("day", at("2026-11-18T16:30:00"));
  expect(today).toEqual({ from: at("2026-11-18T15:00:00"), to: at("2026-11-19T15:00:00") });
  expect(spanNow("week", NOON)).toEqual(spanOf("week", NOON));
  expect([viewOf(today), viewOf(spanOf("day", NOON))]).toEqual(["day", "day"]);
  // What is turned leaves nothing out between.
  expect(turned(today, 1)).toEqual({ from: today.to, to: today.to + DAY });
  expect(turned(spanOf("day", NOON), 1)).toEqual(spanOf("day", NOON + DAY));
  expect(viewOf({ from: today.from + 60, to: today.to + 60 })).toBeNull();
});

test("the time under the pointer stays there while it is zoomed", () => {
  let span = spanOf("week", NOON);
  for (const factor of [0.5, 0.7, 3, 0.1, 1.9]) {
    const x = xOf(NOON, span, 1200);
    span = zoomed(span, factor, NOON);
    expect(Math.abs(xOf(NOON, span, 1200) - x)).toBeLessThan(0.1);
    expect(timeAt(x, span, 1200)).toBeCloseTo(NOON, -2);
  }
  expect(zoomed(span, 1e-9, NOON).to - zoomed(span, 1e-9, NOON).from).toBe(SHORTEST);
  expect(zoomed(span, 1e9, NOON).to - zoomed(span, 1e9, NOON).from).toBe(LONGEST);
});

test("a hand snaps to what it can hit", () => {
  expect(snapStep(spanOf("day", NOON), 1200)).toBe(HOUR / 4);
  expect(snapStep(spanOf("week", NOON), 1200)).toBe(HOUR);
  expect(snapStep(spanOf("month", NOON), 1200)).toBe(6 * HOUR);
  expect([cellStep(spanOf("day", NOON), 1200), cellStep(spanOf("week", NOON), 1200), cellStep(spanOf("month", NOON), 1200)]).toEqual([
    HOUR, 6 * HOUR, DAY,
  ]);
});

test("it snaps by the clock on the wall, also where that changes", () => {
  expect(snapped(at("2026-11-18T14:22:00"), HOUR / 2)).toBe(at("2026-11-18T14:30:00"));
  expect(snapped(at("2026-11-18T14:52:00"), HOUR, "down")).toBe(at("2026-11-18T14:00:00"));
  expect(snapped(at("2026-03-29T05:10:00"), 6 * HOUR)).toBe(at("2026-03-29T06:00:00"));
  expect(snapped(at("2026-11-18T23:50:00"), HOUR)).toBe(at("2026-11-19T00:00:00"));
});

test("days with hours, or months with days, as there is room", () => {
  const week = axisOf(spanOf("week", NOON), 1200);
  expect(week.majors.map((mark) => mark.text).slice(0, 2)).toEqual(["Wed 18 Nov", "Thu 19 Nov"]);
  expect(week.minors.slice(0, 4).map((mark) => mark.text)).toEqual(["00:00", "06:00", "12:00", "18:00"]);
  expect(week.weekends.map((one) => one.from)).toEqual([at("2026-11-21T00:00:00"), at("2026-11-22T00:00:00")]);
  const month = axisOf(spanOf("month", NOON), 1200);
  expect(month.majors.map((mark) => mark.text)).toEqual(["November 2026", "December 2026"]);
  expect(month.minors).toHaveLength(31);
  const narrow = axisOf(spanOf("month", NOON), 256);
  expect(narrow.minors.length).toBeLessThan(12);
});

const written = (span: Span, width: number, now: number) => labelsOf(axisOf(span, width), span, width, now);

test.each([256, 1200, 2200])("labels on %d px keep their distance, from the edge and from the clock, too", (width) => {
  for (let day = 0; day < 62; day++) {
    const now = NOON + day * DAY + ((day * 7) % 24) * HOUR;
    for (const view of ["day", "week", "month"] as const) {
      const { majors, minors, clock } = written(spanNow(view, now), width, now);
      const ends = (labels: typeof minors, letter: number) => labels.map(({ x, text }) => [x + 6, x + 6 + text.length * letter]);
      for (const spots of [ends(majors, 8), ends(minors, 6)]) {
        for (const [place, [, right]] of spots.entries()) expect(right).toBeLessThanOrEqual((spots[place + 1]?.[0] ?? width + 4) - 4);
      }
      for (const [left, right] of ends(minors, 6)) expect(right < clock! - 22 || left > clock! + 22).toBe(true);
      expect(Math.min(majors.length, minors.length)).toBeGreaterThan(0);
    }
  }
});

test("a month that has little room has a short name or none, and its first day has its number", () => {
  const names = (day: string) => written(spanOf("month", at(`${day}T12:00:00`)), 256, NOON).majors.map((label) => label.text);
  expect(names("2026-11-10")).toEqual(["November 2026", "Dec"]);
  expect(names("2026-11-28")).toEqual(["December 2026"]);
  expect(written(spanOf("month", NOON + 90 * DAY), 256, NOON).clock).toBeNull();
  const numbers = written(spanOf("month", NOON), 256, NOON).minors.map((label) => label.text);
  expect(numbers).toContain("1");
  expect(numbers).not.toContain("29");
});

test("an hour that does not exist has no mark", () => {
  const day = axisOf(spanOf("day", at("2026-03-29T12:00:00")), 2400);
  const hours = day.minors.map((mark) => mark.text);
  expect(hours).not.toContain("02:00");
  expect(hours).toHaveLength(23);
  expect(new Set(day.minors.map((mark) => mark.at)).size).toBe(23);
});

test("the window is in the address, and comes back from it", () => {
  const today = spanOf("week", NOON);
  expect(writeSpan(today, NOON)).toEqual({ view: null, from: null, hours: null });
  for (const span of [today, spanOf("day", NOON + 40 * DAY), spanOf("month", NOON), spanOf("day", NOON), turned(spanNow("day", NOON), 1), { from: midnight(NOON) + 6 * HOUR, to: midnight(NOON) + 42 * HOUR }]) {
    const query = Object.fromEntries(Object.entries(writeSpan(span, NOON)).filter(([, value]) => value !== null)) as Record<string, string>;
    expect(readSpan(query, NOON)).toEqual(span);
  }
  // Without a day it is that of whoever opens it, whenever that is.
  expect(writeSpan(spanNow("day", NOON), NOON)).toEqual({ view: "day", from: null, hours: null });
  expect(readSpan({ view: "day" }, NOON + HOUR)).toEqual(spanNow("day", NOON + HOUR));
  for (const query of [{ from: "soon" }, { view: "year" }, { hours: "many" }, { from: "2026-99-99x" }] as Record<string, string>[]) {
    expect(readSpan(query, NOON)).toEqual(today);
  }
});

test("no address asks for what no hub answers", () => {
  const today = spanOf("week", NOON);
  // What every object has is no view.
  for (const view of ["toString", "__proto__", "constructor"]) expect(readSpan({ view }, NOON)).toEqual(today);
  for (const from of ["0000-01-01", "0099-12-31", "1969-12-31T23:00", "9999-12-31"]) {
    const span = readSpan({ from }, NOON);
    expect(span.from).toBeGreaterThan(at("2000-01-01T00:00:00") - DAY);
    expect(span.to).toBeLessThan(at("3001-01-01T00:00:00"));
    expect(viewOf(span)).toBe("week");
  }
});

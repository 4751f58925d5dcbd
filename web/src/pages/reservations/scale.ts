/** The time axis: which moments are in the window, where they are, and what stands above them. */
import { DAY, HOUR, MINUTE, MONTHS, clockTime, dayText, midnight } from "../../lib/moments";

/** What the window shows, in seconds since 1970. */
export interface Span {
  from: number;
  to: number;
}

export const VIEWS = { day: 1, week: 7, month: 31 } as const;
export type ViewName = keyof typeof VIEWS;

export const SHORTEST = 3 * HOUR;
export const LONGEST = 93 * DAY;

const SNAPS = [5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY];
const CELLS = [15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY];
const HOURS = [1, 2, 3, 6, 12, 24];
/** In pixels: what a hand can hit, a cell of the keyboard's cursor, a label with its room. */
const SNAP_PX = 6;
const CELL_PX = 22;
const LABEL_PX = 42;

/** A view from the day of `time` on; its days may have 23 or 25 hours. */
export function spanOf(view: ViewName, time: number): Span {
  return { from: midnight(time), to: midnight(time, VIEWS[view]) };
}

/** Which view a window is; null: it was zoomed to something between. */
export function viewOf(span: Span): ViewName | null {
  const names = Object.keys(VIEWS) as ViewName[];
  return names.find((view) => midnight(span.from) === span.from && midnight(span.from, VIEWS[view]) === span.to) ?? null;
}

export function xOf(time: number, span: Span, width: number): number {
  return ((time - span.from) / (span.to - span.from)) * width;
}

export function timeAt(x: number, span: Span, width: number): number {
  return span.from + (x / Math.max(1, width)) * (span.to - span.from);
}

/** Longer or shorter by a factor; what is at `time` stays where it is. */
export function zoomed(span: Span, factor: number, time: number): Span {
  const before = span.to - span.from;
  const length = Math.min(LONGEST, Math.max(SHORTEST, before * factor));
  const from = Math.round(time - ((time - span.from) / before) * length);
  return { from, to: from + Math.round(length) };
}

export function moved(span: Span, seconds: number): Span {
  const by = Math.round(seconds);
  return { from: span.from + by, to: span.to + by };
}

/** Earlier or later by a whole window: a view stays a view, also over a change of the clocks. */
export function turned(span: Span, times: number): Span {
  const view = viewOf(span);
  return view === null ? moved(span, times * (span.to - span.from)) : spanOf(view, midnight(span.from, times * VIEWS[view]));
}

/** To what a pointer snaps, in seconds. */
export function snapStep(span: Span, width: number): number {
  return step(SNAPS, SNAP_PX, span, width);
}

/** How wide a cell of the keyboard's cursor is, in seconds. */
export function cellStep(span: Span, width: number): number {
  return step(CELLS, CELL_PX, span, width);
}

function step(steps: readonly number[], least: number, span: Span, width: number): number {
  const perPixel = (span.to - span.from) / Math.max(1, width);
  return steps.find((one) => one / perPixel >= least) ?? DAY;
}

/** The nearest whole step of the wall clock; `way` "down": the one before. */
export function snapped(time: number, seconds: number, way: "near" | "down" = "near"): number {
  const at = new Date(time * 1000);
  const since = at.getHours() * HOUR + at.getMinutes() * MINUTE + at.getSeconds();
  const whole = (way === "near" ? Math.round(since / seconds) : Math.floor(since / seconds)) * seconds;
  return new Date(at.getFullYear(), at.getMonth(), at.getDate(), 0, 0, whole).getTime() / 1000;
}

export interface Mark {
  at: number;
  text: string;
}

export interface Axis {
  /** Days, or months where days are narrow. */
  majors: Mark[];
  /** Hours, or days. */
  minors: Mark[];
  /** Saturdays and Sundays. */
  weekends: Span[];
}

export function axisOf(span: Span, width: number): Axis {
  const days = daysOf(span);
  const dayWidth = (DAY / (span.to - span.from)) * width;
  const hours = HOURS.find((one) => (dayWidth / 24) * one >= LABEL_PX) ?? 24;
  const weekends = days.filter(isWeekend).map((from) => ({ from, to: midnight(from, 1) }));
  if (hours < 24) {
    return {
      majors: days.map((at) => ({ at, text: dayText(at) })),
      minors: days.flatMap((day) => hoursOf(day, hours)).filter(({ at }) => at >= span.from && at < span.to),
      weekends,
    };
  }
  const every = Math.max(1, Math.ceil(26 / dayWidth));
  return {
    majors: days.filter((at, place) => place === 0 || new Date(at * 1000).getDate() === 1).map((at) => ({ at, text: monthText(at) })),
    minors: days
      .filter((at) => every === 1 || (new Date(at * 1000).getDate() - 1) % every === 0)
      .map((at) => ({ at, text: dayWidth >= 84 ? dayText(at) : String(new Date(at * 1000).getDate()) })),
    weekends,
  };
}

function daysOf(span: Span): number[] {
  const days: number[] = [];
  for (let at = midnight(span.from); at < span.to; at = midnight(at, 1)) days.push(at);
  return days;
}

function hoursOf(day: number, every: number): Mark[] {
  const marks: Mark[] = [];
  const at = new Date(day * 1000);
  for (let hour = 0; hour < 24; hour += every) {
    const time = new Date(at.getFullYear(), at.getMonth(), at.getDate(), hour).getTime() / 1000;
    // An hour that a change of the clocks leaves out is no mark of its own.
    if (marks.at(-1)?.at !== time) marks.push({ at: time, text: clockTime(time) });
  }
  return marks;
}

function isWeekend(day: number): boolean {
  return new Date(day * 1000).getDay() % 6 === 0;
}

function monthText(time: number): string {
  const at = new Date(time * 1000);
  return `${MONTHS[at.getMonth()]} ${at.getFullYear()}`;
}

/** The window as it is in the address; without one the week that begins today. */
export function readSpan(query: Record<string, string>, now: number): Span {
  const match = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d))?$/.exec(query.from ?? "");
  const [year, month, day, hour, minute] = (match ?? []).slice(1).map((part) => Number(part ?? 0));
  const from = match === null ? midnight(now) : new Date(year, month - 1, day, hour, minute).getTime() / 1000;
  const hours = Number(query.hours ?? Number.NaN);
  if (Number.isFinite(hours) && Number.isFinite(from)) return { from, to: from + Math.min(LONGEST, Math.max(SHORTEST, hours * HOUR)) };
  const view = query.view !== undefined && query.view in VIEWS ? (query.view as ViewName) : "week";
  return spanOf(view, Number.isFinite(from) ? from : now);
}

/** What the address says of a window; today's week is no word at all. */
export function writeSpan(span: Span, now: number): { view: string | null; from: string | null; hours: string | null } {
  const view = viewOf(span);
  const at = new Date(span.from * 1000);
  const date = `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;
  if (view !== null) {
    return { view: view === "week" ? null : view, from: span.from === midnight(now) ? null : date, hours: null };
  }
  const hours = String(Math.round(((span.to - span.from) / HOUR) * 100) / 100);
  return { view: null, from: `${date}T${clockTime(span.from)}`, hours };
}

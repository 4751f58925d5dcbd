/** The time axis: which moments are in the window, where they are, and what stands above them. */
import { DAY, HOUR, MINUTE, MONTHS, clockTime, dayText, midnight } from "../../lib/moments";

/** What the window shows, in seconds since 1970. */
export interface Span {
  from: number;
  to: number;
}

export const VIEWS = { day: 1, week: 7, month: 31 } as const;
export type ViewName = keyof typeof VIEWS;

const FIRST_YEAR = 2000;
const LAST_YEAR = 2999;

export const SHORTEST = 3 * HOUR;
export const LONGEST = 93 * DAY;

const SNAPS = [5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY];
const CELLS = [15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY];
const HOURS = [1, 2, 3, 6, 12, 24];
/** In pixels: what a hand can hit, a cell of the keyboard's cursor, a label with its room. */
const SNAP_PX = 6;
const CELL_PX = 22;
const LABEL_PX = 42;
/** Of labels on the axis: what stands before one and is free behind it, how wide a letter is at most, half the clock of now. */
const GAP_PX = 6;
const MAJOR_PX = 8.4;
const MINOR_PX = 6.4;
const CLOCK_PX = 24;

/** A view from the day of `time` on; its days may have 23 or 25 hours. */
export function spanOf(view: ViewName, time: number): Span {
  return { from: midnight(time), to: midnight(time, VIEWS[view]) };
}

/** The view that has now in it. A day begins an hour before this one: what is past is of little use. */
export function spanNow(view: ViewName, now: number): Span {
  if (view !== "day") return spanOf(view, now);
  const from = snapped(now, HOUR, "down") - HOUR;
  return { from, to: from + DAY };
}

/** Which view a window is; null: it was zoomed to something between. A day may begin with any hour. */
export function viewOf(span: Span): ViewName | null {
  if (span.to - span.from === DAY && snapped(span.from, HOUR) === span.from) return "day";
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
  const view = midnight(span.from) === span.from ? viewOf(span) : null;
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
  /** Where there is little room. */
  short?: string;
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
      majors: days.map((at) => ({ at, text: dayText(at), short: dayText(at).split(" ", 2).join(" ") })),
      minors: days.flatMap((day) => hoursOf(day, hours)).filter(({ at }) => at >= span.from && at < span.to),
      weekends,
    };
  }
  const every = Math.max(1, Math.ceil(26 / dayWidth));
  // The first of a month has its label, and the last one before it keeps its distance.
  const isMarked = (at: number) => (new Date(at * 1000).getDate() - 1) % every === 0 && (every === 1 || daysLeft(at) >= every);
  return {
    majors: days.filter((at, place) => place === 0 || new Date(at * 1000).getDate() === 1).map((at) => ({ at, text: monthText(at), short: monthText(at).slice(0, 3) })),
    minors: days
      .filter(isMarked)
      .map((at) => ({ at, text: dayWidth >= 84 ? dayText(at) : String(new Date(at * 1000).getDate()) })),
    weekends,
  };
}

export interface Label {
  x: number;
  text: string;
}

/** What of the axis is written, where: only what has room, beside each other and beside the clock of now. A name that has
 *  too little is shorter, or goes. */
export function labelsOf(axis: Axis, span: Span, width: number, now: number): { majors: Label[]; minors: Label[]; clock: number | null } {
  const nowX = xOf(now, span, width);
  const clock = nowX < 0 || nowX > width ? null : Math.max(CLOCK_PX, Math.min(width - CLOCK_PX, nowX));
  const majors = axis.majors.flatMap(({ at, text, short = "" }, place) => {
    const x = Math.max(0, xOf(at, span, width));
    const next = place + 1 < axis.majors.length ? xOf(axis.majors[place + 1].at, span, width) : width;
    const fitting = [text, short].find((one) => x + GAP_PX + one.length * MAJOR_PX <= next) ?? "";
    return fitting === "" ? [] : [{ x, text: fitting }];
  });
  const minors: Label[] = [];
  let free = 0;
  for (const { at, text } of axis.minors) {
    const x = xOf(at, span, width);
    const [left, right] = [x + GAP_PX, x + GAP_PX + text.length * MINOR_PX];
    const covered = clock !== null && right > clock - CLOCK_PX && left < clock + CLOCK_PX;
    if (left < free || right > width || covered) continue;
    minors.push({ x, text });
    free = right + GAP_PX;
  }
  return { majors, minors, clock };
}

/** How many days until the next month. */
function daysLeft(day: number): number {
  const at = new Date(day * 1000);
  return new Date(at.getFullYear(), at.getMonth() + 1, 0).getDate() - at.getDate() + 1;
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

/** No hub is asked for what was before there were any, nor for what no calendar has. */
function within(year: number): number {
  return Math.min(LAST_YEAR, Math.max(FIRST_YEAR, year));
}

/** The window as it is in the address; without one the week that begins today. */
export function readSpan(query: Record<string, string>, now: number): Span {
  const match = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d))?$/.exec(query.from ?? "");
  const [year, month, day, hour, minute] = (match ?? []).slice(1).map((part) => Number(part ?? 0));
  const from = match === null ? midnight(now) : new Date(within(year), month - 1, day, hour, minute).getTime() / 1000;
  const hours = Number(query.hours ?? Number.NaN);
  if (Number.isFinite(hours) && Number.isFinite(from)) return { from, to: from + Math.min(LONGEST, Math.max(SHORTEST, hours * HOUR)) };
  const view = query.view !== undefined && Object.hasOwn(VIEWS, query.view) ? (query.view as ViewName) : "week";
  return match !== null && Number.isFinite(from) ? spanOf(view, from) : spanNow(view, now);
}

/** What the address says of a window; today's week is no word at all. */
export function writeSpan(span: Span, now: number): { view: string | null; from: string | null; hours: string | null } {
  const view = viewOf(span);
  const at = new Date(span.from * 1000);
  const date = `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;
  const usual = view !== null && span.from === spanNow(view, now).from;
  if (usual || (view !== null && span.from === midnight(span.from))) {
    return { view: view === "week" ? null : view, from: usual ? null : date, hours: null };
  }
  const hours = String(Math.round(((span.to - span.from) / HOUR) * 100) / 100);
  return { view: null, from: `${date}T${clockTime(span.from)}`, hours };
}

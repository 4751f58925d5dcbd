/** Moments and spans as people read them, in the time zone of this computer. Times are seconds since 1970. */

export const MINUTE = 60;
export const HOUR = 3600;
export const DAY = 86_400;

const SHORT_DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
export const MONTHS = [
  "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
];
const two = (value: number) => String(value).padStart(2, "0");
const date = (time: number) => new Date(time * 1000);

/** The name of the zone: "Europe/Berlin". */
export function zone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** The begin of its day, which may be 23 or 25 hours long; `days` later or earlier. */
export function midnight(time: number, days = 0): number {
  const at = date(time);
  return new Date(at.getFullYear(), at.getMonth(), at.getDate() + days).getTime() / 1000;
}

/** "18:00" */
export function clockTime(time: number): string {
  const at = date(time);
  return `${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** "Mon 16 Nov"; where `now` is told, of another year "Mon 16 Nov 2027". */
export function dayText(time: number, now = time): string {
  const at = date(time);
  return `${SHORT_DAYS[at.getDay()]} ${at.getDate()} ${MONTHS[at.getMonth()].slice(0, 3)}${yearUnless(now, at)}`;
}

/** " 2027", unless it is the year of `now`. */
function yearUnless(now: number, at: Date): string {
  return at.getFullYear() === date(now).getFullYear() ? "" : ` ${at.getFullYear()}`;
}

/** As short as it stays clear: "18:00" today, "Fri 18:00" within six days, "1 Dec 18:00", "1 Jan 2028 18:00". */
export function shortMoment(time: number, now: number): string {
  const at = date(time);
  const days = Math.round((midnight(time) - midnight(now)) / DAY);
  if (days === 0) return clockTime(time);
  if (Math.abs(days) <= 6 && days > 0) return `${SHORT_DAYS[at.getDay()]} ${clockTime(time)}`;
  return `${at.getDate()} ${MONTHS[at.getMonth()].slice(0, 3)}${yearUnless(now, at)} ${clockTime(time)}`;
}

/** Nothing left to guess: "Friday 20 November 2026, 18:00 CET". */
export function fullMoment(time: number): string {
  const at = date(time);
  const weekday = at.toLocaleDateString("en", { weekday: "long" });
  return `${weekday} ${at.getDate()} ${MONTHS[at.getMonth()]} ${at.getFullYear()}, ${clockTime(time)} ${zoneName(at)}`.trim();
}

/** Each knows only the zones of its own part of the world by their letters, as the hub does all: "CET", "EST", "AEDT". */
const LOCALES = ["en-GB", "en-US", "en-AU", "en-NZ", "en-IN", "en-ZA"];
let namers: Intl.DateTimeFormat[] | null = null;

/** "CET"; of a zone without letters "GMT+4". */
function zoneName(at: Date): string {
  namers ??= LOCALES.map((locale) => new Intl.DateTimeFormat(locale, { timeZoneName: "short" }));
  let name = "";
  for (const namer of namers) {
    const told = namer.formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? "";
    if (!/\d/.test(told)) return told;
    name ||= told;
  }
  return name;
}

/** From when to when, without saying a day twice: "14:00–18:00", "Tue 17:00 – Wed 17:00". */
export function between(start: number, end: number, now: number): string {
  const first = shortMoment(start, now);
  if (midnight(start) === midnight(end)) return `${first}–${clockTime(end)}`;
  // The bare time of today beside a day reads as a time of that day.
  const from = midnight(start) === midnight(now) ? `today ${first}` : first;
  return `${from} – ${midnight(end) === midnight(now) ? "today " : ""}${shortMoment(end, now)}`;
}

/** How long, whole: "45 min", "4 h", "1 h 30 min", "2 d 4 h". */
export function spanText(seconds: number): string {
  const minutes = Math.max(0, Math.round(seconds / MINUTE));
  const [days, hours, rest] = [Math.floor(minutes / 1440), Math.floor((minutes % 1440) / 60), minutes % 60];
  const parts = [days > 0 ? `${days} d` : "", hours > 0 ? `${hours} h` : "", rest > 0 ? `${rest} min` : ""];
  return parts.filter((part) => part !== "").slice(0, 2).join(" ") || "0 min";
}

/** As it is written in a form, and read again by the hub: "2026-11-20 18:00"; of what comes twice, which: "… 02:30 +01:00". */
export function written(time: number): string {
  const at = date(time);
  const wall = (of: Date) => `${of.getFullYear()}-${two(of.getMonth() + 1)}-${two(of.getDate())} ${clockTime(of.getTime() / 1000)}`;
  const twice = CLOCKS_BACK.some((seconds) => [-seconds, seconds].some((by) => wall(date(time + by)) === wall(at)));
  return twice ? `${wall(at)} ${offset(at)}` : wall(at);
}

/** By how much clocks are set back. */
const CLOCKS_BACK = [HOUR, HOUR / 2];

/** "+01:00" */
function offset(at: Date): string {
  const minutes = -at.getTimezoneOffset();
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
}

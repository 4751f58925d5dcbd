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

/** "Mon 16 Nov" */
export function dayText(time: number): string {
  const at = date(time);
  return `${SHORT_DAYS[at.getDay()]} ${at.getDate()} ${MONTHS[at.getMonth()].slice(0, 3)}`;
}

/** As short as it stays clear: "18:00" today, "Fri 18:00" within six days, "1 Dec 18:00", "1 Jan 2028 18:00". */
export function shortMoment(time: number, now: number): string {
  const at = date(time);
  const days = Math.round((midnight(time) - midnight(now)) / DAY);
  if (days === 0) return clockTime(time);
  if (Math.abs(days) <= 6 && days > 0) return `${SHORT_DAYS[at.getDay()]} ${clockTime(time)}`;
  const year = at.getFullYear() === date(now).getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${MONTHS[at.getMonth()].slice(0, 3)}${year} ${clockTime(time)}`;
}

/** Nothing left to guess: "Friday 20 November 2026, 18:00 CET". */
export function fullMoment(time: number): string {
  const at = date(time);
  const weekday = at.toLocaleDateString("en", { weekday: "long" });
  const named = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(at);
  const zoneName = named.find((part) => part.type === "timeZoneName")?.value ?? "";
  return `${weekday} ${at.getDate()} ${MONTHS[at.getMonth()]} ${at.getFullYear()}, ${clockTime(time)} ${zoneName}`.trim();
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

/** As it is written in a form, and read again by the hub: "2026-11-20 18:00". */
export function written(time: number): string {
  const at = date(time);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clockTime(time)}`;
}

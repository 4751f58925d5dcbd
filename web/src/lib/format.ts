/** Figures as people read them, the same units as in the terminal. Unknown is "–". */

export const UNKNOWN = "–";
type Figure = number | null | undefined;

const GIB = 2 ** 30;
const known = (value: Figure): value is number => value !== null && value !== undefined && Number.isFinite(value);

/** 1,234,567 */
export function count(value: Figure): string {
  return known(value) ? Math.round(value).toLocaleString("en") : UNKNOWN;
}

/** Bytes with their unit: "512 MiB", "79.6 GiB", "1.2 TiB". */
export function bytes(value: Figure): string {
  if (!known(value)) return UNKNOWN;
  for (const [unit, size] of [["PiB", 2 ** 50], ["TiB", 2 ** 40], ["GiB", GIB], ["MiB", 2 ** 20], ["KiB", 1024]] as const) {
    if (Math.abs(value) >= size) return `${digits(value / size)} ${unit}`;
  }
  return `${Math.round(value)} B`;
}

/** The figure alone, for columns with the unit in the head: "79.6". */
export function gib(value: Figure, decimals = 1): string {
  return known(value) ? (value / GIB).toFixed(decimals) : UNKNOWN;
}

/** Bytes a second: "1.2 GiB/s". */
export function rate(value: Figure): string {
  return known(value) ? `${bytes(value)}/s` : UNKNOWN;
}

/** A share of 0 to 1: "93 %". */
export function percent(ratio: Figure): string {
  return known(ratio) ? `${percentFigure(ratio)} %` : UNKNOWN;
}

/** The figure alone: "93". Not 100 before all of it is used, and not 0 while some is. */
export function percentFigure(ratio: Figure): string {
  if (!known(ratio)) return UNKNOWN;
  const value = ratio * 100;
  if (value > 99 && value < 100) return "99";
  if (value > 0 && value < 1) return "1";
  return String(Math.round(value));
}

/** "305 W", "41.2 kW", "1.8 MW". */
export function watts(value: Figure): string {
  if (!known(value)) return UNKNOWN;
  if (Math.abs(value) >= 1e6) return `${(value / 1e6).toFixed(1)} MW`;
  if (Math.abs(value) >= 1e4) return `${(value / 1e3).toFixed(1)} kW`;
  return `${Math.round(value)} W`;
}

/** "61 °C" */
export function celsius(value: Figure): string {
  return known(value) ? `${Math.round(value)} °C` : UNKNOWN;
}

/** "1,980 MHz" */
export function megahertz(hertz: Figure): string {
  return known(hertz) ? `${count(hertz / 1e6)} MHz` : UNKNOWN;
}

/** How long, in its two largest units: "45s", "12m 05s", "3h 12m", "4d 06h". */
export function duration(seconds: Figure): string {
  if (!known(seconds)) return UNKNOWN;
  const whole = Math.max(0, Math.floor(seconds));
  const two = (value: number) => String(value).padStart(2, "0");
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)}h ${two(Math.floor((whole % 3600) / 60))}m`;
  return `${Math.floor(whole / 86_400)}d ${two(Math.floor((whole % 86_400) / 3600))}h`;
}

/** How old, in one unit: "0.8 s", "14 s", "3 min", "2 h", "5 d". */
export function age(seconds: Figure): string {
  if (!known(seconds)) return UNKNOWN;
  if (seconds < 9.95) return `${Math.max(0, seconds).toFixed(1)} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  if (seconds < 5970) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** The time of day, "14:02:11"; of another day with its date. Takes seconds since 1970. */
export function timeOfDay(time: Figure, now: number = Date.now() / 1000): string {
  if (!known(time)) return UNKNOWN;
  const then = new Date(time * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const text = `${two(then.getHours())}:${two(then.getMinutes())}:${two(then.getSeconds())}`;
  if (then.toDateString() === new Date(now * 1000).toDateString()) return text;
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ${text}`;
}

/** Numbers as ranges: [0, 1, 2, 5] is "0–2, 5". */
export function ranges(numbers: readonly number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let at = 0; at < sorted.length; at++) {
    const first = sorted[at];
    while (at + 1 < sorted.length && sorted[at + 1] === sorted[at] + 1) at++;
    parts.push(first === sorted[at] ? `${first}` : `${first}–${sorted[at]}`);
  }
  return parts.join(", ");
}

/** Sorts gpu2 before gpu10. */
export const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;

function digits(value: number): string {
  return Math.abs(value) >= 1000 ? count(value) : value.toFixed(1);
}

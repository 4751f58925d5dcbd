/**
 * Colours of cells that are too small for shapes.
 *
 * There the lightness tells the states apart, also for eyes that do not tell red from green: each state keeps the hue
 * its theme gives it and gets a lightness of its own (in Oklab, where equal steps look equal).
 */
import { GPU_STATES, type GpuState } from "../../../lib/state";

/** Red, green, blue, each 0 to 255. */
export type Rgb = readonly [number, number, number];
export type StateColours = Record<GpuState, Rgb>;

type Alone = Exclude<GpuState, "busy">;
const ON_LIGHT: Record<Alone, number> = { free: 0.52, reserved: 0.26, idle: 0.78, unhealthy: 0.33, unknown: 0.12, stale: 0.9, down: 0.64 };
const ON_DARK: Record<Alone, number> = { free: 0.76, reserved: 0.77, idle: 0.4, unhealthy: 0.57, unknown: 0.66, stale: 0.32, down: 0.88 };
/** How much of the full colour a busy GPU has, with nothing to do and with all it can. */
const LEAST_BUSY = 0.3;
const MOST_BUSY = 0.9;
export const BUSY_LEVELS = 17;

export interface SmallColours {
  states: StateColours;
  /** By load. */
  busy: Rgb[];
}

export function smallColours(shapes: StateColours, busySoft: Rgb, surface: Rgb): SmallColours {
  const lightness = oklab(surface)[0] > 0.5 ? ON_LIGHT : ON_DARK;
  const busy = Array.from({ length: BUSY_LEVELS }, (_, level) => {
    const strength = LEAST_BUSY + ((MOST_BUSY - LEAST_BUSY) * level) / (BUSY_LEVELS - 1);
    return mixed(busySoft, shapes.busy, strength);
  });
  const states = Object.fromEntries(
    GPU_STATES.map((state) => [state, state === "busy" ? busy[BUSY_LEVELS - 1] : withLightness(shapes[state], lightness[state])]),
  ) as StateColours;
  return { states, busy };
}

export function mixed(from: Rgb, to: Rgb, share: number): Rgb {
  const part = (at: 0 | 1 | 2) => Math.round(from[at] + (to[at] - from[at]) * share);
  return [part(0), part(1), part(2)];
}

/** A ramp of so many steps through some colours. */
export function ramp(stops: readonly Rgb[], steps: number): Rgb[] {
  return Array.from({ length: steps }, (_, step) => {
    const at = (step / (steps - 1)) * (stops.length - 1);
    const before = Math.min(Math.floor(at), stops.length - 2);
    return mixed(stops[before], stops[before + 1], at - before);
  });
}

/** The same hue, lighter or darker; as strong in colour as a screen can show it. */
function withLightness(colour: Rgb, lightness: number): Rgb {
  const [, a, b] = oklab(colour);
  for (let strength = 1; strength > 0; strength -= 0.02) {
    const linear = linearRgb([lightness, a * strength, b * strength]);
    if (linear.every((part) => part >= -0.001 && part <= 1.001)) return encoded(linear);
  }
  return encoded(linearRgb([lightness, 0, 0]));
}

export function oklab(colour: Rgb): [number, number, number] {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const l = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
  const m = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
  const s = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function linearRgb([lightness, a, b]: readonly [number, number, number]): [number, number, number] {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

function encoded(linear: readonly [number, number, number]): Rgb {
  const part = (value: number) => {
    const share = Math.min(1, Math.max(0, value));
    return Math.round(255 * (share <= 0.0031308 ? 12.92 * share : 1.055 * share ** (1 / 2.4) - 0.055));
  };
  return [part(linear[0]), part(linear[1]), part(linear[2])];
}

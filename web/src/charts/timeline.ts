/** Figures over the last ten minutes: what the hub has kept, and what has come since. */
import type { components } from "../lib/api/types";

export const SPAN_SECONDS = 600;
export type Value = number | null;

/** What /api/v1/history answers. Shares are half percents; 255, and for power 65535, is unknown. */
export type History = components["schemas"]["HistoryView"];

export type Measure = "utilization" | "memory" | "temperature" | "power";

export const key = (measure: string, of = "") => `${measure} ${of}`;

/** These jump about: a step tells their mean, as the hub does. Of the others it tells the newest. */
const MEANS = new Set(["utilization", "power"]);

/** Rows of figures over one row of times; a figure that is not known is null, a gap in a chart. */
export class Timeline {
  times: number[] = [];
  #rows = new Map<string, Value[]>();
  #stepBegan = -Infinity;
  #sums = new Map<string, { sum: number; count: number }>();

  constructor(readonly stepSeconds: number) {}

  row(name: string): Value[] {
    return this.#rows.get(name) ?? this.times.map(() => null);
  }

  /** Begins anew with what the hub has kept. What it does not know, as it was started since, stays as we saw it. */
  begin(history: History): void {
    const { end, step_seconds: step } = history;
    const steps = Math.max(0, ...history.gpus.map((gpu) => gpu.utilization.length));
    const times = Array.from({ length: steps }, (_, at) => end - (steps - 1 - at) * step);
    const seen = times.map((time) => this.place(time));
    const rows = new Map<string, Value[]>();
    const keep = (name: string, told: number[], unknown: number, scale: number) => {
      const before = this.#rows.get(name);
      rows.set(name, told.map((value, at) => (value === unknown ? (before?.[seen[at]] ?? null) : value / scale)));
    };
    for (const gpu of history.gpus) {
      keep(key("utilization", gpu.id), gpu.utilization, 255, 200);
      keep(key("memory", gpu.id), gpu.memory, 255, 200);
      keep(key("temperature", gpu.id), gpu.temperature, 255, 1);
      keep(key("power", gpu.id), gpu.power, 65535, 1);
    }
    this.times = times;
    this.#rows = rows;
    this.#sums.clear();
    // What comes next begins a step of its own, so that the hub's last one stays as it is.
    this.#stepBegan = -Infinity;
  }

  /** Adds figures of one moment. Steps follow each other; the last one is still running. */
  add(time: number, figures: Iterable<readonly [string, Value]>): void {
    const last = this.times.at(-1);
    if (last !== undefined && time < last - this.stepSeconds) this.#clear();
    // Nobody looked for a while, or the hub was away: a gap says so.
    else if (last !== undefined && time - last > 3 * this.stepSeconds) this.#push(last + this.stepSeconds);
    if (this.times.length === 0 || time - this.#stepBegan >= this.stepSeconds) {
      this.#stepBegan = time;
      this.#sums.clear();
      this.#push(time);
    }
    const place = this.times.length - 1;
    this.times[place] = Math.max(time, this.times[place]);
    for (const [name, value] of figures) this.#rowToFill(name)[place] = this.#settled(name, value);
    while (this.times.length > 0 && this.times[0] < time - SPAN_SECONDS - this.stepSeconds) {
      this.times.shift();
      for (const row of this.#rows.values()) row.shift();
    }
  }

  /** Where in the rows a time is; -1: there is nothing near it. */
  place(time: number): number {
    let best = -1;
    for (let at = 0; at < this.times.length; at++) {
      if (best < 0 || Math.abs(this.times[at] - time) <= Math.abs(this.times[best] - time)) best = at;
    }
    return best >= 0 && Math.abs(this.times[best] - time) <= 2 * this.stepSeconds ? best : -1;
  }

  #settled(name: string, value: Value): Value {
    if (!MEANS.has(name.slice(0, name.indexOf(" ")))) return value;
    const total = this.#sums.get(name) ?? { sum: 0, count: 0 };
    if (value !== null) {
      total.sum += value;
      total.count++;
      this.#sums.set(name, total);
    }
    return total.count === 0 ? null : total.sum / total.count;
  }

  #rowToFill(name: string): Value[] {
    const row = this.#rows.get(name) ?? this.times.map(() => null);
    this.#rows.set(name, row);
    return row;
  }

  #push(time: number): void {
    this.times.push(time);
    for (const row of this.#rows.values()) row.push(null);
  }

  #clear(): void {
    this.times = [];
    this.#rows.clear();
    this.#sums.clear();
    this.#stepBegan = -Infinity;
  }
}

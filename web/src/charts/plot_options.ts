/** What all charts have in common, in uPlot's words. */
import type uPlot from "uplot";
import { themeColour } from "./colours";

const two = (value: number) => String(value).padStart(2, "0");

function clockTime(seconds: number): string {
  const time = new Date(seconds * 1000);
  return `${two(time.getHours())}:${two(time.getMinutes())}`;
}

const font = () => `11px ${themeColour("--font") || "system-ui, sans-serif"}`;

export const TIME_AXIS_HEIGHT = 22;
const HALF_LABEL = 16;

/** Half of a label must have room on both sides, or it is cut off. */
function fits(plot: uPlot, time: number): boolean {
  const place = plot.valToPos(time, "x");
  return place >= HALF_LABEL && place <= plot.over.clientWidth - HALF_LABEL;
}

export function timeAxis(): uPlot.Axis {
  return {
    stroke: () => themeColour("--text-3"),
    font: font(),
    size: TIME_AXIS_HEIGHT,
    gap: 4,
    space: 76,
    incrs: [60, 120, 300],
    grid: { show: false },
    ticks: { show: false },
    filter: (plot, splits) => splits.map((time) => (fits(plot, time) ? time : null)),
    values: (_, splits) => splits.map((time: number | null) => (time === null ? "" : clockTime(time))),
  };
}

/** Steps of a scale of bytes: 1, 2, 4 … 512 of each unit. */
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

export function valueAxis(write: (value: number) => string, bytes: boolean): uPlot.Axis {
  return {
    ...(bytes ? { incrs: BYTE_STEPS } : {}),
    stroke: () => themeColour("--text-3"),
    font: font(),
    size: 50,
    gap: 6,
    space: 36,
    grid: { stroke: () => themeColour("--border"), width: 1 },
    ticks: { show: false },
    values: (_, splits) => splits.map(write),
  };
}

/** Ten minutes that end now; the picture moves, its frame does not. */
export function timeScale(span: () => [number, number]): uPlot.Scale {
  return { time: true, range: span };
}

export const quiet: Pick<uPlot.Options, "legend" | "cursor" | "select"> = {
  legend: { show: false },
  cursor: { y: false, points: { show: false }, drag: { x: false, y: false, setScale: false } },
  select: { show: false, left: 0, top: 0, width: 0, height: 0 },
};

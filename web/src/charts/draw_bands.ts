/** Draws bands on the canvas of a chart, behind its lines: a calm tint, and an edge above it that says whose it is. */
import type uPlot from "uplot";
import { paint } from "../lib/person";
import type { Band } from "./bands";
import { faded, themeColour } from "./colours";

const EDGE_PX = 3;
const TINT = { mine: 13, others: 8 };

/** Between these heights, in pixels of the canvas; the edge lies above, where no figure is drawn. */
export function drawBands(plot: uPlot, bands: readonly Band[], top: number, bottom: number): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio || 1;
  const edge = Math.round(EDGE_PX * ratio);
  const place = (time: number) => Math.round(Math.min(bbox.left + bbox.width, Math.max(bbox.left, plot.valToPos(time, "x", true))));
  for (const band of bands) {
    const [left, right] = [place(band.start), place(band.end)];
    if (right <= left) continue;
    const colour = band.mine ? themeColour("--reserved") : paint(band.name);
    ctx.fillStyle = faded(colour, band.mine ? TINT.mine : TINT.others);
    ctx.fillRect(left, top, right - left, bottom - top);
    ctx.fillStyle = colour;
    // One that begins when another ends is seen to be another.
    ctx.fillRect(left, top - edge, Math.max(ratio, right - left - ratio), edge);
  }
}

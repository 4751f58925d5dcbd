/** The words on the map: names of fields and nodes, and a frame around the cell one points at. */
import { count } from "../../../lib/format";
import type { Places } from "./geometry";

export interface LabelStyle {
  font: string;
  text: string;
  dim: string;
  surface: string;
}

interface Window {
  width: number;
  height: number;
  left: number;
  top: number;
  ratio: number;
  cursor: number;
}

export function labelStyle(): LabelStyle {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(name).trim();
  return { font: token("--font"), text: token("--text"), dim: token("--text-3"), surface: token("--surface") };
}

export function drawLabels(
  context: CanvasRenderingContext2D,
  window: Window,
  places: Places,
  { style, free }: { style: LabelStyle; free: Uint32Array },
): void {
  const { ratio } = window;
  context.textBaseline = "alphabetic";
  if (places.labelled) {
    places.fields.forEach((field, at) => {
      const x = field.x - window.left;
      const y = field.y - window.top + 12 * ratio;
      if (y < 0 || y > window.height + 12 * ratio || x > window.width || x + field.width < 0) return;
      context.font = `500 ${12 * ratio}px ${style.font}`;
      context.fillStyle = style.text;
      // A field may be narrower than its name; the next one begins after a space.
      const room = Math.max(field.width, 60 * ratio);
      const name = fitting(context, field.name, room);
      context.fillText(name, x, y);
      const after = context.measureText(name).width + 8 * ratio;
      context.font = `${11 * ratio}px ${style.font}`;
      const words = `${count(free[at])} free`;
      if (after + context.measureText(words).width > room) return;
      context.fillStyle = style.dim;
      context.fillText(words, x + after, y);
    });
  }
  context.font = `${11 * ratio}px ${style.font}`;
  context.fillStyle = style.dim;
  for (const node of places.nodes) {
    const x = node.x - window.left;
    const y = node.y - window.top + 10 * ratio;
    if (y < 0 || y > window.height + 10 * ratio || x > window.width || x + node.width < 0) continue;
    context.fillText(fitting(context, node.name, node.width), x, y);
  }
}

const cut = new Map<string, string>();
const MOST_KEPT = 5000;

/** The text, or as much of it as there is room for. Of names the end tells most: "…0472". */
function fitting(context: CanvasRenderingContext2D, text: string, room: number): string {
  const key = `${context.font}|${Math.floor(room)}|${text}`;
  const known = cut.get(key);
  if (known !== undefined) return known;
  let shown = text;
  for (let from = 1; shown !== "" && context.measureText(shown).width > room; from++) {
    shown = from < text.length ? `…${text.slice(from)}` : "";
  }
  if (cut.size >= MOST_KEPT) cut.clear();
  cut.set(key, shown);
  return shown;
}

/** Two lines, one of which is seen on any colour. */
export function drawCursor(context: CanvasRenderingContext2D, window: Window, places: Places, style: LabelStyle): void {
  const { side } = places;
  const x = places.x[window.cursor] - window.left;
  const y = places.y[window.cursor] - window.top;
  const thick = Math.max(1, Math.round(1.5 * window.ratio));
  context.lineWidth = thick;
  context.strokeStyle = style.surface;
  context.strokeRect(x - thick / 2, y - thick / 2, side + thick, side + thick);
  context.strokeStyle = style.text;
  context.strokeRect(x - 1.5 * thick, y - 1.5 * thick, side + 3 * thick, side + 3 * thick);
}

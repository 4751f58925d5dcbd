/** One function that draws a state, at every size; StateMark.svelte shows the same shapes. */
import { GPU_STATES, type GpuState } from "./state";

/** The shapes in a box of 12 by 12. `soft` is filled with the state's tint, `line` is stroked, `solid` is filled. */
export interface Shape {
  soft?: string;
  line?: string;
  solid?: string;
  dashed?: boolean;
}

const BOX = "M2.75.75h6.5a2 2 0 0 1 2 2v6.5a2 2 0 0 1-2 2h-6.5a2 2 0 0 1-2-2v-6.5a2 2 0 0 1 2-2z";

/** Colour is never alone: each state has a form of its own, and only free is round. */
export const SHAPES: Record<GpuState, Shape> = {
  free: { solid: "M6 .5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11z" },
  // Its load is drawn over it, see load().
  busy: { soft: "M2.5.5h7a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2h-7a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2z" },
  reserved: { line: `${BOX}M3.5 6h5` },
  idle: { soft: BOX, line: `${BOX}M1.5 6.5l5-5M1.5 10.5l9-9M5.5 10.5l5-5` },
  unhealthy: { soft: BOX, line: BOX, solid: "M3.5.5h6a2 2 0 0 1 2 2v6z" },
  // A question mark on a tile.
  unknown: { soft: BOX, line: "M4.1 4.4a2 2 0 1 1 3 1.75c-.75.4-1.1.8-1.1 1.5", solid: "M5.1 8.7h1.8v1.8h-1.8z" },
  stale: { line: BOX, dashed: true },
  down: { line: "M2 2l8 8M10 2l-8 8" },
};

/** How much of a busy GPU is filled, from below: never nothing, or it would look free. */
export function load(utilization: number | null): string {
  const height = Math.max(2, Math.round((utilization ?? 1) * 11));
  return `M.5 ${11.5 - height}h11v${height - 2}a2 2 0 0 1-2 2h-7a2 2 0 0 1-2-2z`;
}

/** The colours of the theme, read once until it changes. */
export interface Palette {
  shape: Record<GpuState, string>;
  soft: Record<GpuState, string>;
  surface: string;
  border: string;
  text: string;
  dim: string;
  /** From little to much, for figures. */
  ramp: string[];
}

export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const each = (end: string) =>
    Object.fromEntries(GPU_STATES.map((state) => [state, token(state + end)])) as Record<GpuState, string>;
  return {
    shape: each(""),
    soft: each("-soft"),
    surface: token("surface"),
    border: token("border"),
    text: token("text"),
    dim: token("text-3"),
    ramp: token("ramp").split(/\s+/),
  };
}

const paths = new Map<string, Path2D>();

function path(shape: string): Path2D {
  let made = paths.get(shape);
  if (made === undefined) paths.set(shape, (made = new Path2D(shape)));
  return made;
}

/** Draws a GPU's state into the square at (x, y) of `size` pixels; 10 or more, or the shapes are lost. */
export function drawState(
  context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D,
  state: GpuState,
  utilization: number | null,
  x: number,
  y: number,
  size: number,
  colours: Palette,
): void {
  const shape = SHAPES[state];
  context.save();
  context.translate(x, y);
  context.scale(size / 12, size / 12);
  context.lineWidth = 1.5;
  context.lineCap = "round";
  if (shape.soft) {
    context.fillStyle = colours.soft[state];
    context.fill(path(shape.soft));
  }
  context.fillStyle = context.strokeStyle = colours.shape[state];
  if (shape.line) {
    context.setLineDash(shape.dashed ? [2, 2] : []);
    context.stroke(path(shape.line));
  }
  if (shape.solid) context.fill(path(shape.solid));
  if (state === "busy") context.fill(path(load(utilization)));
  context.restore();
}

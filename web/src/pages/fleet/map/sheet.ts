/** Every look a cell can have, painted once for a theme, a size of cells and a way to colour; the map copies from it. */
import { drawState, palette } from "../../../lib/draw";
import { paints } from "../../../lib/person";
import { GPU_STATES } from "../../../lib/state";
import { BLANK, BUSY_CODE, type Colouring, STATE_CODES, STEPS } from "./codes";
import { BUSY_LEVELS, type Rgb, type StateColours, mixed, ramp, smallColours } from "./colours";

/** From this side on (in CSS pixels) a cell has a shape. */
export const SHAPES_FROM = 10;
/** How much is left of what is old, and of what a filter leaves out. */
const OLD = 0.45;
const LEFT_OUT = 0.14;

/** Three looks of each code: as it is, old, left out by the filter. */
export const LOOKS = 3;

export interface Sheet {
  side: number;
  /** How much of the side is painted; the rest keeps cells apart. */
  painted: number;
  /** One pixel for each code and look, code after code; for cells of one colour. */
  colours: Uint32Array;
  /** side × side pixels for each code and look; null: cells are of one colour. */
  shapes: Uint32Array | null;
  surface: number;
}

export function makeSheet(by: Colouring, people: readonly string[], side: number, ratio: number): Sheet {
  const theme = palette();
  const surface = parsed([theme.surface])[0];
  const plain = by === "state" ? stateColours() : by === "person" ? personColours(people) : figureColours();
  return {
    side,
    painted: side >= 4 ? side - Math.max(1, Math.round(side / 12)) : side,
    colours: looks(plain.map(packed), surface),
    shapes: by === "state" && side >= SHAPES_FROM * ratio ? shapes(side, surface) : null,
    surface: packed(surface),
  };
}

function stateColours(): Rgb[] {
  const theme = palette();
  const given = parsed(GPU_STATES.map((state) => theme.shape[state]));
  const [busySoft, surface] = parsed([theme.soft.busy, theme.surface]);
  const shapes = Object.fromEntries(GPU_STATES.map((state, at) => [state, given[at]])) as StateColours;
  const small = smallColours(shapes, busySoft, surface);
  return [...GPU_STATES.map((state) => small.states[state]), surface, ...small.busy];
}

function figureColours(): Rgb[] {
  const theme = palette();
  const [unknown, down] = parsed([theme.border, theme.soft.down]);
  return [...ramp(parsed(theme.ramp), STEPS), unknown, down];
}

function personColours(people: readonly string[]): Rgb[] {
  const theme = palette();
  const [nobody, ...others] = parsed([theme.border, ...paints(people.slice(1)), theme.soft.down]);
  return [nobody, ...others];
}

/** Paints all states of this size once, by the one function that draws states everywhere. */
function shapes(side: number, surface: Rgb): Uint32Array {
  const theme = palette();
  const canvas = new OffscreenCanvas(side, side * STATE_CODES);
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, side, side * STATE_CODES);
  const room = Math.max(1, Math.round(side / 12));
  for (let code = 0; code < STATE_CODES; code++) {
    if (code === BLANK) continue;
    const state = code >= BUSY_CODE ? "busy" : GPU_STATES[code];
    const load = code >= BUSY_CODE ? (code - BUSY_CODE) / (BUSY_LEVELS - 1) : null;
    drawState(context, state, load, room, code * side + room, side - 2 * room, theme);
  }
  const pixels = new Uint32Array(context.getImageData(0, 0, side, side * STATE_CODES).data.buffer);
  const all = new Uint32Array(LOOKS * pixels.length);
  const size = side * side;
  for (let code = 0; code < STATE_CODES; code++) {
    const from = pixels.subarray(code * size, (code + 1) * size);
    [1, OLD, LEFT_OUT].forEach((share, look) => {
      all.set(share === 1 ? from : from.map((pixel) => faded(pixel, surface, share)), (code * LOOKS + look) * size);
    });
  }
  return all;
}

function looks(colours: readonly number[], surface: Rgb): Uint32Array {
  return Uint32Array.from(colours.flatMap((pixel) => [pixel, faded(pixel, surface, OLD), faded(pixel, surface, LEFT_OUT)]));
}

function faded(pixel: number, surface: Rgb, share: number): number {
  return packed(mixed(surface, [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255], share));
}

/** A pixel as a canvas keeps it. */
function packed([red, green, blue]: Rgb): number {
  return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
}

/** Any colours a style sheet can have, as the browser shows them. */
function parsed(colours: readonly string[]): Rgb[] {
  const canvas = new OffscreenCanvas(colours.length, 1);
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  colours.forEach((colour, at) => {
    context.fillStyle = colour;
    context.fillRect(at, 0, 1, 1);
  });
  const { data } = context.getImageData(0, 0, colours.length, 1);
  return colours.map((_, at) => [data[at * 4], data[at * 4 + 1], data[at * 4 + 2]]);
}

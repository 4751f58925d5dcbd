/** Puts the cells of the map into pixels. */
import type { Codes } from "./codes";
import type { Places } from "./geometry";
import { LOOKS, type Sheet } from "./sheet";

const OLD = 1;
const LEFT_OUT = 2;

export interface Pixels {
  data: Uint32Array;
  width: number;
  height: number;
}

/** Paints what of the map lies in the window, whose corner is at (left, top) of the map. */
export function paint(
  pixels: Pixels,
  places: Places,
  codes: Codes,
  mask: Uint8Array | null,
  sheet: Sheet,
  left: number,
  top: number,
): void {
  const { data, width, height } = pixels;
  const { colours, shapes } = sheet;
  const { code, old } = codes;
  data.fill(sheet.surface);
  const reach = shapes === null ? sheet.painted : sheet.side;
  for (const { first, end, top: above, bottom } of places.rows) {
    if (above - top >= height || bottom <= top) continue;
    for (let cell = first; cell < end; cell++) {
      const x = places.x[cell] - left;
      const y = places.y[cell] - top;
      if (x <= -reach || y <= -reach || x >= width || y >= height) continue;
      const slot = places.slots[cell];
      let look = 0;
      if (mask !== null && mask[slot] === 0) look = LEFT_OUT;
      else if (old !== null && old[slot] === 1) look = OLD;
      const looks = code[slot] * LOOKS + look;
      const from = x < 0 ? 0 : x;
      const to = Math.min(width, x + reach);
      const lastRow = Math.min(height, y + reach);
      // Plain loops: fill() and set() cost more than the few pixels of a cell.
      if (shapes === null) {
        const colour = colours[looks];
        for (let row = y < 0 ? 0 : y; row < lastRow; row++) {
          for (let at = row * width + from, stop = row * width + to; at < stop; at++) data[at] = colour;
        }
      } else {
        const shape = looks * reach * reach - x;
        for (let row = y < 0 ? 0 : y; row < lastRow; row++) {
          let pixel = shape + (row - y) * reach + from;
          for (let at = row * width + from, stop = row * width + to; at < stop; at++) data[at] = shapes[pixel++];
        }
      }
    }
  }
}

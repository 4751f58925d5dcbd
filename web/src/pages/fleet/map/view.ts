/** The window onto the map: where it stands, how large cells are, and when it is painted again. */
import type { Codes } from "./codes";
import { type Places, type Structure, cellAt, cellNear, choose, place, sides } from "./geometry";
import type { MapGroup } from "./grouping";
import { drawCursor, drawLabels, type LabelStyle } from "./labels";
import { paint } from "./picture";
import type { Sheet } from "./sheet";

/** What is painted; all of it may change with each frame. */
export interface Scene {
  codes: Codes;
  mask: Uint8Array | null;
  sheet: (side: number) => Sheet;
  style: LabelStyle;
  /** How many are free in each field. */
  free: Uint32Array;
}

export class MapView {
  /** All in pixels of the screen, not of the style sheet. */
  width = 0;
  height = 0;
  ratio = 1;
  left = 0;
  top = 0;
  places: Places | null = null;
  /** The cell under the mouse or the keyboard; -1: none. */
  cursor = -1;
  /** Whether all of the map is shown, as large as it fits. */
  fitted = true;

  #structure: Structure | null = null;
  #groups: readonly MapGroup[] = [];
  #scene: Scene | null = null;
  #image: ImageData | null = null;
  #asked = 0;
  readonly #context: CanvasRenderingContext2D;

  constructor(
    readonly canvas: HTMLCanvasElement,
    /** Told after a change of the window or the size of cells. */
    readonly changed: () => void,
  ) {
    this.#context = canvas.getContext("2d", { alpha: false })!;
  }

  /** How high all of it is with these groups, in pixels of the screen, if it may be `most` high. */
  static heightFor(groups: readonly MapGroup[], width: number, most: number, ratio: number): number {
    const structure = choose(groups, width, most, ratio);
    return Math.min(most, place(structure, structure.side).height);
  }

  /** Lays everything out anew; somebody who has zoomed in stays where they are. */
  arrange(groups: readonly MapGroup[], width: number, height: number, ratio: number): void {
    if (groups === this.#groups && width === this.width && height === this.height && ratio === this.ratio) return;
    if (width !== this.width || height !== this.height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.#image = null;
    }
    [this.#groups, this.width, this.height, this.ratio] = [groups, width, height, ratio];
    if (width === 0 || height === 0 || groups.length === 0) {
      this.#structure = this.places = null;
      return;
    }
    const seen = this.fitted ? null : this.#slotInMiddle();
    const side = this.places?.side;
    const under = this.cursor < 0 ? -1 : (this.places?.slots[this.cursor] ?? -1);
    this.#structure = choose(groups, width, height, ratio);
    if (side === undefined || seen === null) this.fit();
    else {
      this.places = place(this.#structure, sides(ratio).includes(side) ? side : this.#structure.side);
      this.#bring(this.places.slots.indexOf(seen), width / 2, height / 2);
    }
    this.cursor = under < 0 ? -1 : this.places!.slots.indexOf(under);
    this.#moved();
  }

  show(scene: Scene): void {
    this.#scene = scene;
    this.request();
  }

  fit(): void {
    if (this.#structure === null) return;
    this.places = place(this.#structure, this.#structure.side);
    this.left = this.top = 0;
    this.fitted = true;
    this.#moved();
  }

  /** Larger or smaller cells; what is at (x, y) of the window stays there. False: there is no further step. */
  zoom(steps: number, x = this.width / 2, y = this.height / 2): boolean {
    if (this.#structure === null || this.places === null) return false;
    const all = sides(this.ratio).filter((side) => side >= this.#structure!.side);
    const at = all.indexOf(this.places.side);
    const next = all[Math.min(all.length - 1, Math.max(0, at + steps))];
    if (next === this.places.side) return false;
    if (next === this.#structure.side) {
      this.#keepCursor(() => this.fit());
      return true;
    }
    const cell = cellNear(this.places, x + this.left, y + this.top);
    this.#keepCursor(() => {
      this.places = place(this.#structure!, next);
      this.fitted = false;
      this.#bring(cell, x, y);
    });
    return true;
  }

  pan(x: number, y: number): void {
    this.left -= x;
    this.top -= y;
    this.#moved();
  }

  /** Moves the window as little as needed to show a cell. */
  reveal(cell: number): void {
    if (this.places === null) return;
    const { x, y, side } = this.places;
    this.left = Math.max(x[cell] + 2 * side - this.width, Math.min(this.left, x[cell] - side));
    this.top = Math.max(y[cell] + 2 * side - this.height, Math.min(this.top, y[cell] - 2 * side));
    this.#moved();
  }

  /** The cell at a point of the window; -1: none. */
  at(x: number, y: number): number {
    return this.places === null ? -1 : cellAt(this.places, x + this.left, y + this.top);
  }

  /** Whether there is more than the window shows. */
  get pannable(): boolean {
    return this.places !== null && (this.places.width > this.width || this.places.height > this.height);
  }

  /** Left, top and side of a cell in the window, in CSS pixels. */
  box(cell: number): { left: number; top: number; side: number } {
    const { x, y, side } = this.places!;
    return { left: (x[cell] - this.left) / this.ratio, top: (y[cell] - this.top) / this.ratio, side: side / this.ratio };
  }

  /** Paints before the screen is drawn next, once. */
  request(): void {
    if (this.#asked === 0) this.#asked = requestAnimationFrame(() => this.#paint());
  }

  end(): void {
    cancelAnimationFrame(this.#asked);
    this.#asked = 0;
  }

  #paint(): void {
    this.#asked = 0;
    const [scene, places, context] = [this.#scene, this.places, this.#context];
    if (scene === null || places === null || this.width === 0) return;
    this.#image ??= context.createImageData(this.width, this.height);
    const pixels = { data: new Uint32Array(this.#image.data.buffer), width: this.width, height: this.height };
    paint(pixels, places, scene.codes, scene.mask, scene.sheet(places.side), this.left, this.top);
    context.putImageData(this.#image, 0, 0);
    drawLabels(context, this, places, scene);
    if (this.cursor >= 0) drawCursor(context, this, places, scene.style);
  }

  #slotInMiddle(): number | null {
    if (this.places === null) return null;
    const cell = cellNear(this.places, this.left + this.width / 2, this.top + this.height / 2);
    return cell < 0 ? null : this.places.slots[cell];
  }

  /** Cells keep their numbers as long as the groups are the same. */
  #keepCursor(change: () => void): void {
    const cursor = this.cursor;
    change();
    this.cursor = cursor;
    this.#moved();
  }

  /** Puts the middle of a cell at a point of the window. */
  #bring(cell: number, x: number, y: number): void {
    if (this.places === null || cell < 0) return;
    this.left = this.places.x[cell] + this.places.side / 2 - x;
    this.top = this.places.y[cell] + this.places.side / 2 - y;
  }

  #moved(): void {
    if (this.places === null) return;
    const bounded = (value: number, size: number, window: number) =>
      Math.round(Math.max(0, Math.min(value, size - window)));
    this.left = bounded(this.left, this.places.width, this.width);
    this.top = bounded(this.top, this.places.height, this.height);
    this.changed();
    this.request();
  }
}

/**
 * Where every GPU lies on the map, in whole pixels of the screen.
 *
 * A node is a block of two lines, a group a field of blocks. Which block stands in which line of which field is chosen
 * once for a window (`choose`), so that nothing changes its neighbours when one zooms; `place` says where that is at
 * some size of the cells.
 */
import type { MapGroup } from "./grouping";

/** Sides of a cell, in pixels of the screen. */
export const SIDES = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96] as const;
/** Larger than this (in CSS pixels) tells nothing more. */
const LARGEST = 32;
const MARGIN = 12;
/** From this side on (in CSS pixels) a block has room for the name of its node. */
const NAMED_FROM = 14;
/** Fields narrower than this (in CSS pixels) have no room for a label. */
const LABELLED_FROM = 96;
const MOST_LABELS = 150;

interface Block {
  name: string;
  slots: number[];
  columns: number;
}

interface Field {
  name: string;
  /** One line where no node has more than one GPU. */
  lines: number;
  blocks: Block[];
  /** How many columns each block has: all that is needed to try where they fit. */
  widths: Uint16Array;
  /** The first block of each row. */
  rows: number[];
  column: number;
}

export interface Structure {
  fields: Field[];
  columns: number;
  cells: number;
  ratio: number;
  /** The side at which everything fits the window; the smallest where nothing does. */
  side: number;
}

export interface Labelled {
  name: string;
  x: number;
  y: number;
  width: number;
}

/** Blocks beside each other: cells that follow each other, and what they take from top to bottom. */
export interface Row {
  first: number;
  end: number;
  top: number;
  bottom: number;
}

export interface Places {
  side: number;
  width: number;
  height: number;
  /** Slot, left and top of each cell. */
  slots: Uint32Array;
  x: Int32Array;
  y: Int32Array;
  rows: Row[];
  fields: Labelled[];
  /** Empty where there is no room for them. */
  nodes: Labelled[];
  labelled: boolean;
}

export function sides(ratio: number): number[] {
  return SIDES.filter((side) => side <= LARGEST * ratio);
}

/** Finds the largest cells with which all groups fit into so many pixels of the screen. */
export function choose(groups: readonly MapGroup[], width: number, height: number, ratio: number): Structure {
  const cells = groups.reduce((sum, group) => sum + group.nodes.reduce((of, node) => of + node.slots.length, 0), 0);
  const blocks = groups.map(described);
  const possible = sides(ratio).filter((side) => side * side * cells <= width * height);
  let best: { structure: Structure; rank: number } | null = null;
  for (const side of possible.length > 0 ? possible.reverse() : [SIDES[0]]) {
    for (const columns of columnsToTry(groups.length, width, ratio)) {
      const structure = arranged(blocks, columns, width, side, ratio, cells);
      const outer = extent(structure, side);
      const over = Math.max(outer.width / width, outer.height / height);
      const rank = over <= 1 ? shape(structure, outer) : 100 + over;
      if (best === null || rank < best.rank) best = { structure, rank };
    }
    if (best !== null && best.rank < 100) break;
  }
  return best!.structure;
}

function columnsToTry(groups: number, width: number, ratio: number): number[] {
  const narrowest = groups > MOST_LABELS ? 24 : LABELLED_FROM;
  const most = Math.max(1, Math.min(groups, Math.floor(width / (narrowest * ratio))));
  return Array.from({ length: most }, (_, at) => at + 1);
}

function described(group: MapGroup): Omit<Field, "rows" | "column"> {
  const lines = group.nodes.some((node) => node.slots.length > 1) ? 2 : 1;
  const blocks = group.nodes.map((node) => ({ ...node, columns: Math.ceil(node.slots.length / lines) }));
  return { name: group.name, lines, blocks, widths: Uint16Array.from(blocks, (block) => block.columns) };
}

const gap = (side: number) => Math.max(1, Math.round(side / 3));
const space = (side: number, ratio: number) => Math.round((side < 4 * ratio ? 8 : 16) * ratio);

function arranged(
  described: readonly Omit<Field, "rows" | "column">[],
  columns: number,
  width: number,
  side: number,
  ratio: number,
  cells: number,
): Structure {
  const room = Math.floor((width - 2 * MARGIN * ratio - (columns - 1) * space(side, ratio)) / columns);
  const heights = new Array<number>(columns).fill(0);
  const structure: Structure = { fields: [], columns, cells, ratio, side };
  for (const field of described) {
    const { widths } = field;
    const rows: number[] = [];
    const apart = gap(side);
    let left = Infinity;
    for (let at = 0; at < widths.length; at++) {
      const needed = widths[at] * side;
      if (left + needed > room) {
        rows.push(at);
        left = 0;
      }
      left += needed + apart;
    }
    // Into the shortest column: fields of the same size stand in rows.
    const column = heights.indexOf(Math.min(...heights));
    const made = { ...field, rows, column };
    heights[column] += fieldHeight(made, side, ratio, true) + space(side, ratio);
    structure.fields.push(made);
  }
  return structure;
}

function rowHeight(field: Field, side: number, ratio: number): number {
  return field.lines * side + gap(side) + nameHeight(side, ratio);
}

function nameHeight(side: number, ratio: number): number {
  return side >= NAMED_FROM * ratio ? Math.round(14 * ratio) : 0;
}

function labelHeight(labelled: boolean, ratio: number): number {
  return labelled ? Math.round(20 * ratio) : 0;
}

function fieldHeight(field: Field, side: number, ratio: number, labelled: boolean): number {
  return labelHeight(labelled, ratio) + field.rows.length * rowHeight(field, side, ratio);
}

function fieldWidth(field: Field, side: number): number {
  const { widths, rows } = field;
  const apart = gap(side);
  let widest = 0;
  for (let row = 0; row < rows.length; row++) {
    const end = row + 1 < rows.length ? rows[row + 1] : widths.length;
    let width = (end - rows[row] - 1) * apart;
    for (let block = rows[row]; block < end; block++) width += widths[block] * side;
    if (width > widest) widest = width;
  }
  return widest;
}

interface Extent {
  width: number;
  height: number;
  labelled: boolean;
  lefts: number[];
}

function extent(structure: Structure, side: number): Extent {
  const { fields, columns, ratio } = structure;
  const widths = new Array<number>(columns).fill(0);
  for (const field of fields) widths[field.column] = Math.max(widths[field.column], fieldWidth(field, side));
  const narrowest = Math.min(...widths);
  const labelled = fields.length <= MOST_LABELS || narrowest >= (LABELLED_FROM / 2) * ratio;
  const lefts: number[] = [];
  let left = Math.round(MARGIN * ratio);
  for (const width of widths) {
    lefts.push(left);
    left += width + space(side, ratio);
  }
  const heights = new Array<number>(columns).fill(0);
  for (const field of fields) heights[field.column] += fieldHeight(field, side, ratio, labelled) + space(side, ratio);
  const height = Math.max(...heights) - space(side, ratio) + Math.round(2 * MARGIN * ratio);
  return { width: left - space(side, ratio) + Math.round(MARGIN * ratio), height, labelled, lefts };
}

/** How far fields are from a shape that is good to look at. */
function shape(structure: Structure, { width, height }: Extent): number {
  const down = structure.fields.length / structure.columns;
  return Math.abs(Math.log(width / structure.columns / (height / down) / 1.8));
}

export function place(structure: Structure, side: number): Places {
  const { fields, ratio, cells } = structure;
  const outer = extent(structure, side);
  const places: Places = {
    side,
    width: outer.width,
    height: outer.height,
    slots: new Uint32Array(cells),
    x: new Int32Array(cells),
    y: new Int32Array(cells),
    rows: [],
    fields: [],
    nodes: [],
    labelled: outer.labelled,
  };
  const tops = new Array<number>(structure.columns).fill(Math.round(MARGIN * ratio));
  const named = nameHeight(side, ratio);
  let cell = 0;
  fields.forEach((field) => {
    const left = outer.lefts[field.column];
    const top = tops[field.column];
    places.fields.push({ name: field.name, x: left, y: top, width: fieldWidth(field, side) });
    field.rows.forEach((first, row) => {
      const end = field.rows[row + 1] ?? field.blocks.length;
      const y = top + labelHeight(outer.labelled, ratio) + row * rowHeight(field, side, ratio) + named;
      const firstCell = cell;
      let x = left;
      for (const block of field.blocks.slice(first, end)) {
        if (named > 0) places.nodes.push({ name: block.name, x, y: y - named, width: block.columns * side });
        block.slots.forEach((slot, at) => {
          places.slots[cell] = slot;
          places.x[cell] = x + (at % block.columns) * side;
          places.y[cell++] = y + Math.floor(at / block.columns) * side;
        });
        x += block.columns * side + gap(side);
      }
      places.rows.push({ first: firstCell, end: cell, top: y, bottom: y + field.lines * side });
    });
    tops[field.column] = top + fieldHeight(field, side, ratio, outer.labelled) + space(side, ratio);
  });
  return places;
}

/** The cell at a point of the map; -1: there is none. */
export function cellAt(places: Places, x: number, y: number): number {
  const { side } = places;
  for (const row of places.rows) {
    if (y < row.top || y >= row.bottom) continue;
    for (let cell = row.first; cell < row.end; cell++) {
      const dx = x - places.x[cell];
      const dy = y - places.y[cell];
      if (dx >= 0 && dx < side && dy >= 0 && dy < side) return cell;
    }
  }
  return -1;
}

/** The cell nearest to a point of the map; -1: the map is empty. */
export function cellNear(places: Places, x: number, y: number): number {
  let best = -1;
  let least = Infinity;
  for (let cell = 0; cell < places.slots.length; cell++) {
    const dx = x - places.x[cell] - places.side / 2;
    const dy = y - places.y[cell] - places.side / 2;
    const distance = dx * dx + dy * dy;
    if (distance < least) [best, least] = [cell, distance];
  }
  return best;
}

/** The next cell in a direction, for arrow keys; the same one where there is none. */
export function neighbour(places: Places, from: number, right: number, down: number): number {
  const step = Math.max(2, Math.floor(places.side / 2));
  const x = places.x[from] + places.side / 2;
  const y = places.y[from] + places.side / 2;
  let best = from;
  let least = Infinity;
  for (let cell = 0; cell < places.slots.length; cell++) {
    const dx = places.x[cell] + places.side / 2 - x;
    const dy = places.y[cell] + places.side / 2 - y;
    const along = dx * right + dy * down;
    if (along < step) continue;
    // What lies aside counts more than what lies far.
    const aside = Math.abs(dx * down) + Math.abs(dy * right);
    const distance = along + aside * 4;
    if (distance < least) [best, least] = [cell, distance];
  }
  return best;
}

import { describe, expect, test } from "vitest";
import { type Places, cellAt, choose, neighbour, place, sides } from "./geometry";
import type { MapGroup } from "./grouping";

/** Groups of so many nodes with so many GPUs each. */
function groups(...sizes: [nodes: number, gpus: number][]): MapGroup[] {
  let slot = 0;
  return sizes.map(([nodes, gpus], group) => ({
    name: `group ${group}`,
    nodes: Array.from({ length: nodes }, (_, node) => ({
      name: `n${node}`,
      slots: Array.from({ length: gpus }, () => slot++),
    })),
  }));
}

function overlaps({ x, y, side }: Places): boolean {
  const taken = new Set<string>();
  for (let cell = 0; cell < x.length; cell++) {
    for (const [dx, dy] of [[0, 0], [side - 1, 0], [0, side - 1], [side - 1, side - 1]]) {
      const corner = `${x[cell] + dx} ${y[cell] + dy}`;
      if (taken.has(corner)) return true;
      taken.add(corner);
    }
  }
  return false;
}

describe.each([
  ["one GPU", groups([1, 1]), 1440, 600],
  ["a lab", groups([10, 8], [24, 8], [6, 4]), 1440, 600],
  ["a lab on a phone", groups([10, 8], [24, 8], [6, 4]), 336, 560],
  ["a card in 56 parts", groups([3, 56], [40, 8]), 1440, 600],
  ["many racks", groups(...Array.from({ length: 400 }, () => [8, 8] as [number, number])), 1440, 600],
])("%s", (_, given, width, height) => {
  const structure = choose(given, width, height, 1);
  const places = place(structure, structure.side);

  test("fits the window, on whole pixels, and no cell covers another", () => {
    expect(places.width).toBeLessThanOrEqual(width);
    expect(places.height).toBeLessThanOrEqual(height);
    expect(overlaps(places)).toBe(false);
  });

  test("has each GPU once, and finds it where it lies", () => {
    const slots = given.flatMap((group) => group.nodes.flatMap((node) => node.slots));
    expect([...places.slots].sort((a, b) => a - b)).toEqual(slots);
    for (let cell = 0; cell < places.slots.length; cell += 7) {
      expect(cellAt(places, places.x[cell] + places.side - 1, places.y[cell])).toBe(cell);
    }
    expect(cellAt(places, 0, 0)).toBe(-1);
  });

  test("keeps its neighbours at every size of cells", () => {
    const rows = (of: Places) => [...of.y].map((top, cell) => cell > 0 && top === of.y[cell - 1]);
    for (const side of sides(1)) expect(rows(place(structure, side))).toEqual(rows(places));
  });
});

test("a fleet that fits at no size still has all its cells", () => {
  const given = groups([40_000, 8]);
  const structure = choose(given, 336, 400, 1);
  expect(structure.side).toBe(sides(1)[0]);
  expect(place(structure, structure.side).slots.length).toBe(320_000);
});

test("100,000 GPUs are laid out in no time", () => {
  const given = groups([2500, 8], [2500, 8], [7500, 8]);
  const began = performance.now();
  const structure = choose(given, 1440, 600, 1);
  place(structure, structure.side);
  expect(performance.now() - began).toBeLessThan(500);
  expect(structure.side).toBeGreaterThanOrEqual(2);
});

test("arrow keys go to the next cell, over gaps, and stop at the edges", () => {
  const structure = choose(groups([2, 8], [2, 8]), 1440, 600, 1);
  const places = place(structure, structure.side);
  expect(neighbour(places, 0, 1, 0)).toBe(1);
  expect(neighbour(places, 3, 1, 0)).toBe(8);
  expect(neighbour(places, 0, 0, 1)).toBe(4);
  expect(neighbour(places, 0, -1, 0)).toBe(0);
  expect(neighbour(places, 0, 0, -1)).toBe(0);
  const reached = new Set<number>();
  const open = [0];
  for (let cell = open.pop(); cell !== undefined; cell = open.pop()) {
    if (reached.has(cell)) continue;
    reached.add(cell);
    for (const [right, down] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) open.push(neighbour(places, cell, right, down));
  }
  expect(reached.size).toBe(32);
});

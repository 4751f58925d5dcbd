import { expect, test } from "vitest";
import { FleetNode } from "../../../lib/fleet.svelte";
import type { LayoutGpu } from "../../../lib/live/frame";
import { GPU_STATES, NOT_COUNTED } from "../../../lib/state";
import { firstGrouping, grouped, slotsOf, usefulGroupings } from "./grouping";

const [BUSY, FREE] = [GPU_STATES.indexOf("busy"), GPU_STATES.indexOf("free")];

function fleet(...described: [name: string, group: string | null, rack: string | null, gpus: number][]): FleetNode[] {
  let first = 0;
  return described.map(([name, group, rack, count], place) => {
    const gpus = Array.from({ length: count }, (_, at): LayoutGpu => [`${name}/${at}`, at, null, null, null, null]);
    const node = new FleetNode({ name, display_name: name, group, rack, gpus }, place, first);
    first += count;
    return node;
  });
}

test("nodes lie with their kind, in natural order; split cards and nodes without GPUs have no cell", () => {
  const nodes = fleet(["a1", "g10", "r1", 2], ["a2", "g2", "r1", 2], ["a3", null, null, 1], ["a4", "g2", "r2", 0]);
  const groups = grouped(nodes, "group", Uint8Array.of(FREE, BUSY, NOT_COUNTED, BUSY, FREE));
  expect(groups.map((group) => group.name)).toEqual(["g2", "g10", "No group"]);
  expect(slotsOf(groups).map((slots) => [...slots])).toEqual([[3], [0, 1], [4]]);
});

test("only groupings that tell nodes apart are offered, and the first has fields one can read", () => {
  const same = fleet(["gpu1", null, null, 1], ["gpu2", null, null, 1]);
  expect(usefulGroupings(same)).toEqual(["none"]);
  expect(firstGrouping(same)).toBe("none");
  const racks = fleet(...Array.from({ length: 100 }, (_, at) => [`${at % 2 ? "a" : "b"}${at}`, null, `r${at}`, 1] as [string, null, string, number]));
  expect(usefulGroupings(racks)).toEqual(["rack", "name", "none"]);
  expect(firstGrouping(racks)).toBe("name");
});

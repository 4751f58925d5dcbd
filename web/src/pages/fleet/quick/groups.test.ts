import { expect, test } from "vitest";
import { testFleet } from "../fleet_for_tests";
import { bestGrouping, counts, grouped, prefix } from "./groups";

const FLEET = testFleet({
  "r10-n1": [{ state: "free" }, { state: "busy" }],
  "r2-n1": [{ state: "free", model: 1 }, { state: "split", model: 1 }],
  login: [],
});

test("groups are in natural order, and say what finds them", () => {
  const by = grouped(FLEET.nodes, FLEET.frame.layout.models, "name");
  expect(by.names).toEqual(["login", "r2-n", "r10-n"]);
  expect(by.filters).toEqual(["node:login*", "node:r2-n*", "node:r10-n*"]);
  expect(counts(FLEET.frame, by).map((one) => [one.free, one.busy])).toEqual([[0, 0], [1, 0], [1, 1]]);
});

test("models are counted by GPU, and quoted where they have a blank", () => {
  const by = grouped(FLEET.nodes, FLEET.frame.layout.models, "model");
  expect(by.filters).toEqual(['model:"A100 40G"', 'model:"H100 80G"']);
  expect(counts(FLEET.frame, by).map((one) => one.free)).toEqual([1, 1]);
});

test("what has no group is there, but cannot be asked for", () => {
  const by = grouped(FLEET.nodes, FLEET.frame.layout.models, "rack");
  expect([by.names, by.filters]).toEqual([["none"], [null]]);
  expect(bestGrouping(FLEET.nodes, FLEET.frame.layout.models)).toBe("model");
  expect(["gpu07", "007"].map(prefix)).toEqual(["gpu", "007"]);
});

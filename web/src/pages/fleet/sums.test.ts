import { expect, test } from "vitest";
import { testFleet } from "./fleet_for_tests";
import { coverage, missing } from "./sums";

test("what is unknown is missing in a sum, what is down or an instance is not", () => {
  const { frame } = testFleet({
    a: [{ state: "free" }, { state: "unknown" }, { state: "busy" }, { state: "stale" }],
    b: [{ state: "down" }, { state: "split" }, { state: "idle", parent: "GPU-b-1" }],
  });
  frame.memory.set([0, 20, 255, 255, 255, 255, 100]);
  frame.power.set([50, 211, 65535, 80, 65535, 65535, 65535]);
  expect(missing(frame, Uint8Array.of(1, 1, 1, 1, 1, 1, 0))).toEqual({ memory: 2, power: 1 });
});

test("a sum says of how many it is only where it is not of all", () => {
  expect(coverage(16, 16, 0)).toEqual({ brief: "", full: "" });
  expect(coverage(14, 16, 2)).toEqual({ brief: " of 14/16", full: ", of 14 of 16 GPUs; the others are unknown" });
});

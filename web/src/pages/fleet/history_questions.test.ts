import { expect, test } from "vitest";
import { MOST_NODES, questions } from "./history_questions";

test("nodes are asked for together, as many as the hub tells at once", () => {
  const names = Array.from({ length: MOST_NODES + 5 }, (_, number) => `gpu${number}`);
  const asked = questions(names);
  expect(asked.length).toBe(2);
  expect(asked.flatMap((one) => ("nodes" in one ? one.nodes.split(",") : []))).toEqual(names);
  expect(asked.every((one) => one.only === "utilization")).toBe(true);
  expect(questions([])).toEqual([]);
});

test("a name that would mean something else in a set is asked for by itself", () => {
  expect(questions(["a[1-3]", "gpu-1.example.org", "b c", "<i>", "x_2"])).toEqual([
    { only: "utilization", node: "a[1-3]" },
    { only: "utilization", node: "b c" },
    { only: "utilization", node: "<i>" },
    { only: "utilization", nodes: "gpu-1.example.org,x_2" },
  ]);
});

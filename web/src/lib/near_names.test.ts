import { expect, test } from "vitest";
import { nearNames } from "./near_names";

const fleet = ["gpu1", "gpu2", "gpu10", "gpu29", "gpu39", "login"];

test.each([
  ["gpu3", ["gpu1", "gpu2", "gpu39"]],
  ["GPU29", ["gpu29", "gpu2", "gpu39"]],
  ["logn", ["login"]],
  ["printer", []],
  ["", []],
  ["x".repeat(5000), []],
])("%j may have been %j", (name, expected) => {
  expect(nearNames(name, fleet)).toEqual(expected);
});

test("among very many", () => {
  const names = Array.from({ length: 20_000 }, (_, number) => `gpu${String(number).padStart(5, "0")}`);
  expect(nearNames("gpu12345x", names)[0]).toBe("gpu12345");
});

import { expect, test } from "vitest";
import { NodeSetError, expand } from "./nodeset";

test.each([
  ["gpu7", ["gpu7"]],
  ["gpu[08-10]", ["gpu08", "gpu09", "gpu10"]],
  ["gpu[8-10]", ["gpu8", "gpu9", "gpu10"]],
  ["gpu[1,3-4]", ["gpu1", "gpu3", "gpu4"]],
  ["a1,b[2-6/2]", ["a1", "b2", "b4", "b6"]],
  ["r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]],
  ["gpu[1-4]!gpu2", ["gpu1", "gpu3", "gpu4"]],
  ["gpu[1-4]&gpu[3-9]", ["gpu3", "gpu4"]],
  ["gpu[1-3]^gpu[3-4]", ["gpu1", "gpu2", "gpu4"]],
  ["gpu[1-2]-ib", ["gpu1-ib", "gpu2-ib"]],
])("%s", (text, names) => {
  expect([...expand(text)]).toEqual(names);
});

test.each(["gpu[1-", "gpu]1[", "gpu[a-b]", "gpu[4-1]", "gpu[1-9/0]", "", ",", "@all", "gpu[0-999999999]", "a[0-999]b[0-999]"])(
  "%j is refused",
  (text) => {
    expect(() => expand(text)).toThrow(NodeSetError);
  },
);

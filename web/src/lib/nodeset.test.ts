import { expect, test } from "vitest";
import { MOST_PATTERNS, NodeSet, NodeSetError, expand } from "./nodeset";

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
  ["n[1-2][03-04]", ["n103", "n104", "n203", "n204"]],
  ["n[098-100]", ["n098", "n099", "n100"]],
  ["gpu[ 1 , 3 ]", ["gpu1", "gpu3"]],
])("%s", (text, names) => {
  expect([...expand(text)]).toEqual(names);
});

test.each(["gpu[1-", "gpu]1[", "gpu[a-b]", "gpu[4-1]", "gpu[1-9/0]", "", ",", "@all", "gpu[0-999999999]", "a[0-999]b[0-999]", "gpu[01-010]", "a,,b"])(
  "%j is refused",
  (text) => {
    expect(() => expand(text)).toThrow(NodeSetError);
  },
);

// The same as tests/fleet/test_node_sets.py.
test.each([
  ["n1[0-3]", ["n10", "n13"], ["n1", "n14", "n100", "n010"]],
  ["n[1-12]2", ["n12", "n112", "n122"], ["n2", "n132", "n012"]],
  ["n[0098-0101]", ["n0098", "n0101"], ["n98", "n101", "n0102"]],
  ["n[08-12]", ["n08", "n12"], ["n8", "n012"]],
  ["n[098-1001]", ["n098", "n999", "n1001"], ["n98", "n0998"]],
  ["gpu[1-999]!gpu7&gpu[1-9]", ["gpu1", "gpu9"], ["gpu7", "gpu10"]],
  ["r[1-2]c[1-2]s[1-3/2]", ["r1c2s3"], ["r1c2s2", "r3c1s1"]],
  ["a[1-99999]", ["a1", "a99999"], ["a0", "a100000", "a01"]],
])("%s is compared without being written out", (text, inside, outside) => {
  const nodes = new NodeSet(text);
  expect(inside.filter((name) => !nodes.has(name))).toEqual([]);
  expect(outside.filter((name) => nodes.has(name))).toEqual([]);
});

test("a set has a limit of patterns", () => {
  expect(() => new NodeSet(Array.from({ length: MOST_PATTERNS + 1 }, (_, n) => `a${n}x[1-2]`).join(","))).toThrow(/more than 100/);
});

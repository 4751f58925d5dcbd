import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type FilterGpu, type FilterNode, FilterError, asksHub, matches, parse } from "./filter";

// The same cases as of the hub: tests/fleet/test_filter.py.
const cases = JSON.parse(readFileSync(new URL("../../../tests/fleet/filter_cases.json", import.meta.url), "utf8")) as {
  matches: [string, boolean][];
  mistakes: [string, string[]][];
};

const GIB = 2 ** 30;
const gpu: FilterGpu = {
  id: "GPU-1",
  model: "H100 80G",
  memoryBytes: 80 * GIB,
  counted: true,
  state: "busy",
  utilization: 0.07,
  memoryUsed: 0.75,
  temperature: 81,
  power: 301,
  person: "Alice L.",
};
const node: FilterNode = { name: "gpu03", displayName: "Big One", group: "lab", rack: "R 7", state: "up" };

test.each(cases.matches)("%j matches: %j", (text, expected) => {
  const filter = parse(text);
  // What a frame cannot tell, the hub does.
  const found = new Set(expected ? [gpu.id] : []);
  expect(matches(filter, gpu, node, found)).toBe(expected);
  if (!asksHub(filter, ["H100 80G"])) expect(matches(filter, gpu, node)).toBe(expected);
});

test.each(cases.mistakes)("%j is a mistake that is named", (text, words) => {
  expect(() => parse(text)).toThrow(FilterError);
  try {
    parse(text);
  } catch (error) {
    for (const word of words) expect((error as Error).message).toContain(word);
  }
});

test("a filter that is too long says so", () => {
  expect(() => parse("x".repeat(501))).toThrow(/501.*500/);
});

test("a term that is written twice is looked for once", () => {
  expect(parse(Array(31).fill("node:a[1-99999]").join(" ")).terms).toHaveLength(1);
  expect(() => parse(Array.from({ length: 33 }, (_, n) => `w${n}`).join(" "))).toThrow(/33 terms; at most 32/);
});

test("patterns are read in linear time", () => {
  const long: FilterNode = { ...node, name: "a".repeat(250) };
  const began = performance.now();
  expect(matches(parse(`node:${"*a".repeat(40)}*b`), null, long)).toBe(false);
  expect(matches(parse(`node:${"*a".repeat(40)}*`), null, long)).toBe(true);
  // With backtracking it would take longer than anybody waits.
  expect(performance.now() - began).toBeLessThan(5000);
});

test("mine is who looks at the page", () => {
  expect(matches(parse("mine", "alice l."), gpu, node)).toBe(true);
  expect(matches(parse("mine", "bob"), gpu, node)).toBe(false);
  expect(() => parse("mine")).toThrow(/your name/);
});

test("who has reserved is the hub's to tell, of oneself too", () => {
  const filter = parse("reserved:me", "bob");
  expect(asksHub(filter, [])).toBe(true);
  expect(matches(filter, gpu, node)).toBe(false);
  expect(matches(filter, gpu, node, new Set([gpu.id]))).toBe(true);
  expect(() => parse("reserved:me")).toThrow(/your name/);
  expect(asksHub(parse("reserved"), [])).toBe(false);
});

describe("without the hub's answer", () => {
  test.each([
    ["gpu03", true],
    ["alice", true],
    ["h100", true],
    ["train.py", false],
    ["-train.py", true],
    ["busy train.py", false],
    ["user:alice", false],
    ["job:1234", false],
  ])("%j: the frame's best guess is %j", (text, expected) => {
    expect(matches(parse(text), gpu, node)).toBe(expected);
  });

  test("a model the fleet has is not asked for", () => {
    expect(asksHub(parse("free model:H100 mem>40G"), ["H100 80G"])).toBe(false);
    expect(asksHub(parse("model:hbm3"), ["H100 80G"])).toBe(true);
    expect(asksHub(parse("free alice"), [])).toBe(true);
  });
});

test("what is live is not the hub's to tell: it answered seconds ago", () => {
  expect(matches(parse("free train.py"), gpu, node, new Set([gpu.id]))).toBe(false);
});

test("unknown figures do not compare", () => {
  const bare = { ...gpu, utilization: null, memoryBytes: null, memoryUsed: null };
  for (const text of ["util<10", "mem>0", "free_mem>=0"]) expect(matches(parse(text), bare, node)).toBe(false);
});

test("a card split into instances has no state of its own", () => {
  const parent = { ...gpu, counted: false };
  for (const text of ["free", "-free", "-state:busy"]) expect(matches(parse(text), parent, node)).toBe(false);
  expect(matches(parse("gpu03"), parent, node)).toBe(true);
});

test("a node without GPUs is found by its own words", () => {
  const down: FilterNode = { ...node, name: "gpu09", state: "down" };
  expect(matches(parse("down"), null, down)).toBe(true);
  expect(matches(parse("gpu09"), null, down)).toBe(true);
  expect(matches(parse("free"), null, down)).toBe(false);
  expect(matches(parse("mem>1G"), null, down)).toBe(false);
});

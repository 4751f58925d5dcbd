import { expect, test } from "vitest";
import { type ByHand, type Written, boxesOf, isByHand, markedIn } from "./marked";

const HAND: ByHand = { ids: ["a4"], from: 100, to: 200, gpus: "gpu01:4", start: "2026-11-18 05:00", end: "2026-11-18 10:00" };
const draft = (more: Partial<Written> = {}): Written => ({
  way: "chosen", gpus: HAND.gpus, start: { text: HAND.start }, end: { text: HAND.end }, trial: null, ...more,
});
const trial = { gpus: [{ node: "gpu01", index: "6", id: "a6" }, { node: "gone", index: "0", id: null }], start: 300, end: 400 };

test("what is marked stays as long as the form says the same, also where somebody is in the way", () => {
  expect(markedIn(HAND, draft())).toBe(HAND);
  expect(markedIn(HAND, draft({ trial }))).toBe(HAND);
  expect(isByHand(HAND, draft())).toBe(true);
});

test("another offer, other GPUs or other times: what the hub would make of them, and nothing where it would not", () => {
  const taken = { ids: ["a6"], from: 300, to: 400 };
  for (const more of [{ gpus: "gpu01:6" }, { start: { text: "fri 8:00" } }, { end: { text: "2h" } }]) {
    expect(markedIn(HAND, draft({ ...more, trial }))).toEqual(taken);
    expect(markedIn(HAND, draft(more))).toBeNull();
    expect(isByHand(HAND, draft(more))).toBe(false);
  }
  expect(markedIn(null, draft({ trial }))).toEqual(taken);
});

test("nothing is marked where nothing is chosen", () => {
  expect(markedIn(HAND, draft({ gpus: "", trial }))).toBeNull();
  expect(markedIn(HAND, draft({ way: "any", trial }))).toBeNull();
});

test("it is drawn where its GPUs are now", () => {
  const rows = new Map([["a", [3]], ["b", [4]], ["c", [-1]], ["d", [7, 8]]]);
  const boxes = boxesOf({ ids: ["b", "a", "c", "d", "gone"], from: 1, to: 2 }, (id) => rows.get(id) ?? []);
  expect(boxes.map(({ first, last }) => [first, last])).toEqual([[3, 4], [7, 8]]);
});

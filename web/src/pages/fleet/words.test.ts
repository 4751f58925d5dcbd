import { expect, test } from "vitest";
import { densityOf } from "./density";
import { hasWord, narrowedToFree, term, toggleState, toggleWord } from "./words";

test("a state takes the place of another and leaves the other words", () => {
  expect(toggleState("", "free")).toBe("free");
  expect(toggleState('busy model:"RTX 3090" -mine', "free")).toBe('model:"RTX 3090" -mine free');
  expect(toggleState("free rack:r1", "free")).toBe("rack:r1");
});

test("words in quotes stay together", () => {
  expect(toggleWord('group:"my lab" free', 'group:"my lab"')).toBe("free");
  expect(hasWord('"is free"', "free")).toBe(false);
});

test("a term is in quotes where it needs them, and cannot break out of them", () => {
  expect(term("model", "H100")).toBe("model:H100");
  expect(term("model", "RTX 3090")).toBe('model:"RTX 3090"');
  expect(term("group", 'a" free "b')).toBe('group:"a free b"');
});

test("a filter is narrowed to what is free of a model", () => {
  expect(narrowedToFree("", null)).toBe("free");
  expect(narrowedToFree('free group:"my lab"', "model:H100")).toBe('group:"my lab" model:H100 free');
  expect(narrowedToFree("model:H100 free", "model:H100")).toBe("model:H100 free");
});

test("the density: the address, then the choice, then the size", () => {
  expect(densityOf("map", "cards", 5)).toBe("map");
  expect(densityOf("nonsense", "table", 5)).toBe("table");
  expect([1, 60, 61, 400, 401].map((nodes) => densityOf(undefined, null, nodes))).toEqual(["cards", "cards", "table", "table", "map"]);
});

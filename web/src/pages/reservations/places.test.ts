import { expect, test } from "vitest";
import { placesText } from "../../lib/reservations";
import { PlacesError, placesIn } from "./places";

const NODES: Record<string, string[]> = { gpu1: ["0", "1", "2", "3"], gpu2: ["0", "1", "1.0", "1.1"], mig: ["0", "1.0", "1.1"] };

function read(text: string): string[] {
  const found = placesIn(text, { indices: (node) => NODES[node], names: () => Object.keys(NODES) });
  if (found instanceof PlacesError) throw found;
  return found.map(({ node, index }) => `${node}:${index}`);
}

test("GPUs as people write them", () => {
  expect(read("gpu1:0-2")).toEqual(["gpu1:0", "gpu1:1", "gpu1:2"]);
  expect(read("gpu1:3,0 gpu2")).toEqual(["gpu1:3", "gpu1:0", "gpu2:0", "gpu2:1"]);
  expect(read("mig")).toEqual(["mig:0", "mig:1.0", "mig:1.1"]);
  expect(read("gpu1:0, gpu2:1.1")).toEqual(["gpu1:0", "gpu2:1.1"]);
  expect(read("gpu1:0,gpu2:0")).toEqual(["gpu1:0", "gpu2:0"]);
  expect(read("gpu1:0,2,gpu2:0")).toEqual(["gpu1:0", "gpu1:2", "gpu2:0"]);
  // As in the terminal: a set of nodes.
  expect(read("gpu1,gpu2:0")).toEqual(["gpu1:0", "gpu2:0"]);
  expect(read("gpu[1,2]:0,")).toEqual(["gpu1:0", "gpu2:0"]);
  expect(read("gpu[1-2]:0")).toEqual(["gpu1:0", "gpu2:0"]);
  expect(read("gpu1:0 gpu1:0")).toEqual(["gpu1:0"]);
  expect(read("  ")).toEqual([]);
});

test("GPUs that are gone are there for who had them, and are no part of the whole node", () => {
  const known = { indices: (node: string) => NODES[node], names: () => Object.keys(NODES) };
  const had = [{ node: "gpu1", index: "7" }, { node: "gone", index: "0" }];
  expect(placesIn("gpu1:3,7 gone:0", { ...known, had })).toEqual([{ node: "gpu1", index: "3" }, ...had]);
  expect(placesIn("gpu1", { ...known, had })).toHaveLength(4);
  for (const text of ["gpu1:8", "gone:1", "gone2:0"]) expect(placesIn(text, { ...known, had })).toBeInstanceOf(PlacesError);
  expect(placesIn("gpu1:7", known)).toBeInstanceOf(PlacesError);
});

test("GPUs as the page writes them", () => {
  expect(read("gpu1: 0–2")).toEqual(["gpu1:0", "gpu1:1", "gpu1:2"]);
  expect(read("gpu1: 0, gpu2: 0")).toEqual(["gpu1:0", "gpu2:0"]);
  const places = ["0", "1", "3"].map((index) => ({ node: "gpu1", index })).concat(["0", "1.1"].map((index) => ({ node: "gpu2", index })));
  expect(placesText(places)).toBe("gpu1: 0–1, 3 · gpu2: 0, 1.1");
  expect(read(placesText(places))).toEqual(["gpu1:0", "gpu1:1", "gpu1:3", "gpu2:0", "gpu2:1.1"]);
});

test.each([
  ["GPU1:0", 'there is no node "GPU1"; did you mean gpu1?'],
  ["gpu9", 'there is no node "gpu9"; did you mean gpu1 or gpu2?'],
  ["elsewhere", 'there is no node "elsewhere"'],
  ["gpu1:7", "gpu1 has no GPU 7; it has 0, 1, 2, 3"],
  ["gpu1:3-1", '"3-1" in "gpu1:3-1" is no range'],
  ["gpu1:x", '"x" in "gpu1:x" is no GPU; write gpu03:0-3 or gpu03:0.2'],
  ["gpu[1:0", '"gpu[1": a bracket is not closed'],
])("%s is refused in words", (text, words) => {
  expect(() => read(text)).toThrow(new PlacesError(words));
});

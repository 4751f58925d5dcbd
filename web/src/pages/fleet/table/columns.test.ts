import { expect, test } from "vitest";
import { GPU_COLUMNS, NODE_COLUMNS, clicked, readSort, roomOf, shownColumns, writeSort } from "./columns";

test("a small screen keeps what people look for", () => {
  const keys = (width: number) => shownColumns(GPU_COLUMNS, roomOf(width)).map((column) => column.key);
  expect(keys(336)).toEqual(["node", "gpu", "state", "utilization", "memory", "person"]);
  expect(keys(1400)).toEqual(GPU_COLUMNS.map((column) => column.key));
});

test.each([GPU_COLUMNS, NODE_COLUMNS])("fixed columns leave room on a phone", (...columns) => {
  const shown = shownColumns(columns, "little");
  const least = shown.map((column) => Number(/\d+/.exec(column.tracks.little!)![0])).reduce((sum, width) => sum + width, 0);
  expect(least + (shown.length - 1) * 8 + 24).toBeLessThanOrEqual(320);
});

test("a sort is read from an address and written to it", () => {
  expect(readSort("-power", GPU_COLUMNS)).toEqual({ key: "power", descending: true });
  for (const text of [undefined, "", "nonsense", "-"]) expect(readSort(text, GPU_COLUMNS).key).toBe("node");
  expect(writeSort(readSort("-power", GPU_COLUMNS))).toBe("-power");
  expect(writeSort(readSort("", GPU_COLUMNS))).toBe("");
});

test("a click on another column begins with what people look for, on the same turns round", () => {
  const power = GPU_COLUMNS.find((column) => column.key === "power")!;
  const first = clicked({ key: "node", descending: false }, power);
  expect(first).toEqual({ key: "power", descending: true });
  expect(clicked(first, power)).toEqual({ key: "power", descending: false });
});

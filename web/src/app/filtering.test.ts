import { afterEach, expect, test, vi } from "vitest";
import { route } from "../lib/route.svelte";
import { filterBy, filtersHere } from "./filtering";

vi.mock("../lib/route.svelte", () => {
  const route = { page: "fleet", go: vi.fn() };
  const href = (_page: string, _name: null, { q }: { q: string | null }) => `#/?q=${q}`;
  return { route, href, setQuery: vi.fn((query: unknown) => Object.assign(route, { query })) };
});

const at = (page: string) => Object.assign(route, { page, query: undefined });
afterEach(() => vi.clearAllMocks());

test.each(["fleet", "reservations"])("a filter stays on the page that shows what it finds: %s", (page) => {
  at(page);
  expect(filtersHere()).toBe(true);
  filterBy("free");
  expect(route.query).toEqual({ q: "free" });
  filterBy("");
  expect(route.query).toEqual({ q: "" });
  expect(route.go).not.toHaveBeenCalled();
});

test("elsewhere it leads to the fleet", () => {
  at("people");
  expect(filtersHere()).toBe(false);
  filterBy("free");
  expect(route.go).toHaveBeenCalledWith("#/?q=free");
});

import { afterEach, expect, test, vi } from "vitest";
import { forget, keep, recall } from "./remember";

function storage(full = false): Map<string, string> {
  const items = new Map<string, string>();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, text: string) => {
      if (full) throw new DOMException("full", "QuotaExceededError");
      items.set(key, text);
    },
    removeItem: (key: string) => items.delete(key),
  });
  return items;
}

afterEach(() => vi.unstubAllGlobals());

test("what another tab has forgotten is not remembered here", () => {
  const items = storage();
  keep("colour", "blue");
  expect(recall("colour", "none")).toBe("blue");
  items.delete("gpulse.colour");
  expect(recall("colour", "none")).toBe("none");
});

test("what cannot be stored lasts as long as the page", () => {
  storage(true);
  keep("colour", "red");
  expect(recall("colour", "none")).toBe("red");
  forget("colour");
  expect(recall("colour", "none")).toBe("none");
  vi.unstubAllGlobals();
  keep("colour", "green");
  expect(recall("colour", "none")).toBe("green");
  forget("colour");
});

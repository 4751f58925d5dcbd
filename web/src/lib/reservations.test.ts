import { afterEach, expect, test, vi } from "vitest";
import { type BookedView, type FindingView, bookedSoon, findingWords, isMine, placesText, writePlaces } from "./reservations";

const places = [
  ...["0", "1", "2", "5"].map((index) => ({ node: "gpu10", index })),
  { node: "gpu2", index: "0.2" },
  { node: "gpu2", index: "0.2" },
  { node: "gpu2", index: "3" },
];

afterEach(() => {
  vi.useRealTimers();
});

test("places as people write them", () => {
  expect(writePlaces(places)).toBe("gpu2:3,0.2 gpu10:0-2,5");
  expect(placesText(places)).toBe("gpu2: 3, 0.2 · gpu10: 0–2, 5");
  expect(placesText(places, 1)).toBe("gpu2: 3, 0.2 and 1 more");
  expect(writePlaces([])).toBe("");
});

test("a finding names both", () => {
  const finding: FindingView = {
    kind: "squatter", reservation: "a", node: "gpu1", index: "0", gpu: null, person: "ann", name: "Ann", other: "bob",
    other_name: "Bob", since: 1, pids: [], message: "", release_at: null,
  };
  expect(findingWords(finding)).toBe("Bob computes on what Ann has reserved");
  expect(findingWords(finding, true)).toBe("Bob is on it");
  const unused: FindingView = { ...finding, kind: "no_show", other: null, other_name: null };
  expect(findingWords(unused)).toBe("Ann's reservation is not used");
  // The clock stands still: else the day may end between two looks at it.
  vi.useFakeTimers({ now: new Date(2026, 10, 16, 9) });
  const noon = new Date(2026, 10, 16, 12).getTime() / 1000;
  expect(findingWords({ ...unused, release_at: noon })).toBe("Ann's reservation is not used, and is released at 12:00");
  expect(findingWords({ ...unused, release_at: noon }, true)).toBe("unused, ends 12:00");
});

test("whose it is", () => {
  expect(isMine({ person: "Ann" }, "ann")).toBe(true);
  expect(isMine({ person: "ann" }, "")).toBe(false);
});

test("a badge is about what is so now, or within a day", () => {
  const booked = (start: number) => ({ start }) as BookedView;
  const [now, soon, later] = [booked(50), booked(1000), booked(100_000)];
  expect(bookedSoon(now, soon, 100)).toBe(now);
  expect(bookedSoon(null, soon, 100)).toBe(soon);
  expect(bookedSoon(null, later, 100)).toBeNull();
  expect(bookedSoon(undefined, undefined, 100)).toBeNull();
});

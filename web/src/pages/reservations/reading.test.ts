import { expect, test } from "vitest";
import type { get } from "../../lib/api/api";
import { DAY } from "../../lib/moments";
import { aroundOf, wholeAnswer } from "./reading.svelte";

const { signal } = new AbortController();

/** A hub with so many reservations, numbered from the last to start on. */
function hubWith(count: number, limit: number, asked: unknown[]): typeof get {
  return (async (_path: string, query: { before?: string }) => {
    asked.push(query);
    const first = query.before === undefined ? 0 : Number(query.before) + 1;
    const ids = Array.from({ length: Math.max(0, Math.min(limit, count - first)) }, (_, at) => String(first + at));
    return { reservations: ids.map((id) => ({ id })), next: first + limit < count ? ids.at(-1) : null };
  }) as unknown as typeof get;
}

test("what begins soon is on the hub's last page", async () => {
  const asked: unknown[] = [];
  const whole = await wholeAnswer({ path: "/r", query: { from: 1 } }, signal, hubWith(7, 3, asked));
  expect(whole.reservations.map((one) => one.id)).toEqual(["0", "1", "2", "3", "4", "5", "6"]);
  expect(whole.next).toBeNull();
  expect(asked).toEqual([{ from: 1 }, { from: 1, before: "2" }, { from: 1, before: "5" }]);
});

test("it does not go on for ever, and says that there are more", async () => {
  const asked: unknown[] = [];
  const whole = await wholeAnswer({ path: "/r" }, signal, hubWith(1000, 1, asked));
  expect([whole.reservations.length, asked.length, whole.next]).toEqual([10, 10, "9"]);
});

test("a shorter time asks for less", () => {
  const length = (days: number) => {
    const { from, to } = aroundOf({ from: 20_000.5 * DAY, to: (20_000.5 + days) * DAY });
    expect(from).toBeLessThanOrEqual(19_999.5 * DAY);
    expect(to).toBeGreaterThanOrEqual((20_001.5 + days) * DAY);
    return (to - from) / DAY;
  };
  expect(length(1)).toBe(4);
  expect(length(7)).toBeLessThanOrEqual(28);
  expect(length(31)).toBeLessThanOrEqual(56);
});

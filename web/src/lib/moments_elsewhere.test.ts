import { expect, test } from "vitest";
import { fullMoment, written } from "./moments";

// Before the first Date.
process.env.TZ = "America/New_York";

const at = (text: string) => new Date(text).getTime() / 1000;

test("zones have the letters their people know, as the hub writes them", () => {
  expect(fullMoment(at("2026-11-20T18:00:00"))).toBe("Friday 20 November 2026, 18:00 EST");
  expect(fullMoment(at("2026-07-01T00:05:00"))).toBe("Wednesday 1 July 2026, 00:05 EDT");
  expect(written(at("2026-11-01T01:30:00-04:00"))).toBe("2026-11-01 01:30 -04:00");
});

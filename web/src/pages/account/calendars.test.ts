import { expect, test } from "vitest";
import { calendarWords } from "./calendars";

test.each([
  ["mine", "my reservations"],
  ["fleet", "the whole fleet"],
  ["node:node:x", "the node node:x"],
])("%s", (scope, words) => expect(calendarWords(scope)).toBe(words));

import { expect, test } from "vitest";
import { sentence } from "./sentence";

test("words become a sentence, names stay as they are", () => {
  expect(sentence("sign in first")).toBe("Sign in first.");
  expect(sentence("gpu01:0 is reserved at that time")).toBe("gpu01:0 is reserved at that time.");
  expect(sentence("what was that?")).toBe("What was that?");
  expect(sentence("  ")).toBe("");
});

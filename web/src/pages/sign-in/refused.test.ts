import { expect, test } from "vitest";
import { refusedWords } from "./refused";

test("nobody was refused", () => expect(refusedWords(undefined)).toBeNull());

test("a word of the hub's has words for people", () => expect(refusedWords("sso_denied")).toContain("broken off"));

test.each(["<b>call 555</b>", "constructor", ""])("%s in the address is not shown", (code) => {
  expect(refusedWords(code)).toBe("You were not signed in. Try again; if it stays so, tell an admin of this hub.");
});

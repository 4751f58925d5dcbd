import { expect, test } from "vitest";
import type { KeyView } from "../../lib/api/api";
import { keyEnd } from "./key_end";
import { passwordTrouble } from "./password";
import { browserWords } from "./words";

test.each([
  ["short", "short", /10 characters/],
  ["annannannann", "annannannann", /not be your name/],
  ["correct horse", "correct house", /not the same/],
  ["correct horse", "correct horse", null],
  // Ten characters for a person, twenty for JavaScript.
  ["🐎🐎🐎🐎🐎", "🐎🐎🐎🐎🐎", /10 characters/],
])("a new password %s, %s", (fresh, again, expected) => {
  const trouble = passwordTrouble(fresh, again, "AnnAnnAnnAnn");
  if (expected === null) expect(trouble).toBeNull();
  else expect(trouble).toMatch(expected);
});

const key = (more: Partial<KeyView>): KeyView => ({ id: "1", label: "x", scopes: ["read"], state: "live", created_at: 0, ...more });
test.each([
  [key({}), "never"],
  [key({ expires_at: 1000 + 90 * 86_400 }), "in 90 d"],
  [key({ expires_at: 940 }), "ended 60 s ago"],
  [key({ state: "revoked", ended_at: 880, expires_at: 5000 }), "revoked 2 min ago"],
])("%o ends %s", (one, expected) => {
  expect(keyEnd(one, 1000)).toBe(expected);
});

test.each([
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
  ["Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0", "Edge on Windows"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15", "Safari on macOS"],
  ["Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36", "Chrome on Android"],
  ["<script>alert(1)</script>", "<script>alert(1)</script>"],
  ["", "Unknown browser"],
])("%s is %s", (agent, expected) => {
  expect(browserWords(agent)).toBe(expected);
});

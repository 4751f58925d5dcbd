import { expect, test } from "vitest";
import type { MeView } from "./api/api";
import { afterSignIn, pageFor } from "./gate";
import type { PageName } from "./route.svelte";

const person = (name: string | null, role: MeView["role"]): MeView => ({
  name,
  display: "",
  role,
  way: name === null ? "anonymous" : "session",
  may_read: role !== null,
  sight: "names",
  has_password: false,
  needs_old_password: false,
  may_have_password: true,
  sign_in: ["password"],
  sso: null,
});
const nobody = person(null, null);
const reader = person(null, "viewer");
const viewer = person("ann", "viewer");
const admin = person("root", "admin");

test.each<[PageName, MeView | null, boolean, string]>([
  ["fleet", null, false, "fleet"],
  ["fleet", nobody, true, "sign-in"],
  ["node", nobody, true, "sign-in"],
  // What was shown before a session came to its end stays.
  ["node", nobody, false, "node"],
  ["fleet", reader, false, "fleet"],
  ["account", reader, false, "sign-in"],
  ["admin", reader, false, "sign-in"],
  ["account", viewer, false, "account"],
  ["admin", viewer, false, "forbidden"],
  ["admin", person("mo", "member"), false, "forbidden"],
  ["admin", admin, false, "admin"],
  ["sign-in", admin, false, "sign-in"],
])("%s for %o, locked %s: %s", (page, me, locked, expected) => {
  expect(pageFor(page, me, locked, false)).toBe(expected);
});

test.each<[PageName, string]>([
  ["fleet", "fleet"],
  ["people", "people"],
  ["sign-in", "missing"],
  ["account", "missing"],
  ["admin", "missing"],
])("an exported page has no accounts: %s", (page, expected) => {
  expect(pageFor(page, null, false, true)).toBe(expected);
});

test.each([
  [undefined, "#/"],
  ["/nodes/gpu07?q=free", "#/nodes/gpu07?q=free"],
  ["/sign-in", "#/"],
  ["https://evil.example", "#/"],
  ["javascript:alert(1)", "#/"],
  // Behind a # it is a page of ours that does not exist, not another site.
  ["//evil.example", "#//evil.example"],
])("after a sign-in that wanted %s", (to, expected) => {
  expect(afterSignIn(to)).toBe(expected);
});

import { expect, test } from "vitest";
import { href, read } from "./route.svelte";

test.each([
  ["", "fleet", {}, {}],
  ["#/", "fleet", {}, {}],
  ["#/?q=free+model%3AH100&view=map", "fleet", {}, { q: "free model:H100", view: "map" }],
  ["#/?kiosk", "fleet", {}, { kiosk: "" }],
  ["#/nodes/gpu07", "node", { node: "gpu07" }, {}],
  ["#/nodes/a%2Fb?q=x", "node", { node: "a/b" }, { q: "x" }],
  ["#/gpus/gpu07%2F3", "gpu", { gpu: "gpu07/3" }, {}],
  ["#/people", "people", {}, {}],
  ["#/people/alice%20l.", "people", { person: "alice l." }, {}],
  ["#/people/100%", "people", { person: "100%" }, {}],
  ["#/sign-in?to=%2Fpeople", "sign-in", {}, { to: "/people" }],
  ["#/sign-in/gpl_1_2", "sign-in", { code: "gpl_1_2" }, {}],
  ["#/signed-in/gpp_1_2", "fleet", { key: "gpp_1_2" }, {}],
  ["#/signed-in", "missing", {}, {}],
  ["#/account", "account", {}, {}],
  ["#/admin", "admin", {}, {}],
  ["#/admin/audit?find=ann", "admin", { part: "audit" }, { find: "ann" }],
  ["#/admin/nothing", "missing", {}, {}],
  ["#/nowhere", "missing", {}, {}],
  ["#/nodes/a/b", "missing", {}, {}],
])("%s", (hash, page, parameters, query) => {
  expect(read(hash)).toEqual({ page, parameters, query });
});

test.each([
  [href("fleet"), "#/"],
  [href("fleet", null, { q: "free model:H100", view: null }), "#/?q=free+model%3AH100"],
  [href("fleet", null, { kiosk: "", q: "a" }), "#/?kiosk&q=a"],
  [href("gpu", "gpu07/3"), "#/gpus/gpu07%2F3"],
  [href("people", "<script>"), "#/people/%3Cscript%3E"],
  [href("admin", "audit"), "#/admin/audit"],
  [href("sign-in", null, { to: "/nodes/a" }), "#/sign-in?to=%2Fnodes%2Fa"],
])("%s", (made, expected) => {
  expect(made).toBe(expected);
});

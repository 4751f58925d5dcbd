import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AccountView, AuditLine } from "../../lib/api/api";
import { found, linkAddress, signsInBy } from "./account_rows";
import { auditLines } from "./audit_download";
import { AuditReading, detailWords, isPeriod, matches, since } from "./audit_reading.svelte";

const entry = (id: number, more: object = {}): AuditLine => ({
  id,
  at: 1000 + id,
  who: "root",
  way: "session",
  address: "127.0.0.1",
  action: "account.add",
  target: `person${id}`,
  detail: {},
  ...more,
});
let log: AuditLine[] = [];
let asked: string[] = [];

beforeEach(() => {
  asked = [];
  log = Array.from({ length: 2500 }, (_, at) => entry(2500 - at));
  vi.stubGlobal("document", { baseURI: "http://hub.example/gpulse/" });
  vi.stubGlobal("fetch", async (url: URL, options: { headers?: Record<string, string> } = {}) => {
    asked.push(url.search);
    const limit = Number(url.searchParams.get("limit"));
    const before = Number(url.searchParams.get("before") ?? Infinity);
    const from = Number(url.searchParams.get("since") ?? 0);
    const items = log.filter((one) => one.id < before && one.at >= from).slice(0, limit);
    if (options.headers?.Accept === "application/x-ndjson") return new Response(items.map((one) => JSON.stringify(one) + "\n").join(""));
    return new Response(JSON.stringify({ items, next: items.length === limit ? items[items.length - 1].id : null }));
  });
});
afterEach(() => vi.unstubAllGlobals());

test("the log is read a page at a time, the newest first", async () => {
  const reading = new AuditReading("all", "");
  await reading.more();
  expect(reading.found.map((one) => one.id)).toEqual(log.slice(0, 50).map((one) => one.id));
  await reading.more();
  expect(reading.found.at(-1)?.id).toBe(2401);
  expect(asked).toEqual(["?limit=50", "?before=2451&limit=50"]);
  expect(reading.complete).toBe(false);
});

test("a word that few entries have is looked for until there are enough, or none is left", async () => {
  const reading = new AuditReading("all", "PERSON249 add");
  await reading.more();
  const wanted = log.filter((one) => one.target.startsWith("person249"));
  expect(reading.found).toEqual(wanted);
  expect([asked.length, reading.complete]).toEqual([3, true]);
  await reading.more();
  expect(asked.length).toBe(3);
});

test("nobody looks any more: the answer is left out", async () => {
  const reading = new AuditReading("all", "");
  const done = reading.more();
  reading.stop();
  await done;
  expect(reading.found).toEqual([]);
});

test("the file has all entries, in as many requests as it takes", async () => {
  const lines = (await auditLines(null)).join("").trim().split("\n");
  expect(lines.length).toBe(2500);
  expect(lines.map((line) => (JSON.parse(line) as AuditLine).id)).toEqual(log.map((one) => one.id));
  expect(asked).toEqual(["?limit=1000", "?before=1501&limit=1000", "?before=501&limit=1000"]);
  expect((await auditLines(3491)).join("").trim().split("\n").length).toBe(10);
});

test("how far back", () => {
  expect(since("all")).toBeNull();
  expect(since("day", 86_400_000 * 2)).toBe(86_400);
  expect([isPeriod("week"), isPeriod("toString"), isPeriod(undefined)]).toEqual([true, false, false]);
});

test("details in words, which can be found too", () => {
  const detail = { role_before: "viewer", scopes: ["read", "write"], sessions: 2 };
  expect(detailWords(detail)).toBe("role before viewer, scopes read write, sessions 2");
  const line = entry(1, { detail });
  expect([matches(line, "write root"), matches(line, "nothing"), matches(line, "")]).toEqual([true, false, true]);
});

const account = (more: Partial<AccountView>): AccountView => ({ id: "1", name: "ann", role: "viewer", created_at: 0, ...more });

test("accounts are found by either name", () => {
  const all = [account({}), account({ id: "2", name: "bob", display: "Robert Ann" }), account({ id: "3", name: "cy" })];
  expect(found(all, " ANN ").map((one) => one.id)).toEqual(["1", "2"]);
  expect(found(all, "").length).toBe(3);
});

test("how somebody signs in", () => {
  expect(signsInBy(account({}))).toBe("link");
  expect(signsInBy(account({ has_password: true }))).toBe("password");
  expect(signsInBy(account({ issuer: "https://id.example" }))).toBe("https://id.example");
});

test("a link leads to the page, under any path, with the code behind the #", () => {
  expect(linkAddress("gpl_1_2", "https://hub.example/gpulse/?kiosk#/admin")).toBe("https://hub.example/gpulse/#/sign-in/gpl_1_2");
});

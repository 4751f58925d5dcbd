import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError, type MeView } from "./api/api";
import { send } from "./api/send";
import { keepPageKey, liveProtocols, pageKey } from "./page_key";
import { session } from "./session.svelte";
import { settings } from "./settings.svelte";
import { Task } from "./task.svelte";

const nobody: MeView = {
  name: null,
  display: "",
  role: null,
  way: "anonymous",
  may_read: false,
  sight: "anonymous",
  has_password: false,
  needs_old_password: false,
  may_have_password: true,
  sign_in: ["password"],
  sso: null,
};
const ann: MeView = { ...nobody, name: "ann", role: "viewer", way: "session", may_read: true, sight: "names" };

const KEY = "gpp_0123456789ab_cafe";
const signedIn: MeView = { ...ann, page_key: KEY };

interface Asked {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: unknown;
}
let asked: Asked[] = [];
let answers: Response[] = [];
let changes = 0;
/** Called as by a browser when another tab has stored something. */
let stored: (event: { key: string | null; newValue: string | null }) => void = () => undefined;
const STORED_AS = "gpulse.key http://hub.example/gpulse/";
const answer = (body: unknown, status = 200, headers: Record<string, string> = {}) =>
  answers.push(new Response(JSON.stringify(body), { status, headers }));
const refuse = (status: number, code: string, headers: Record<string, string> = {}) =>
  answer({ error: { code, message: code, detail: "" } }, status, headers);

beforeEach(() => {
  [asked, answers, changes] = [[], [], 0];
  vi.stubGlobal("document", { baseURI: "http://hub.example/gpulse/" });
  vi.stubGlobal("window", { addEventListener: (_kind: string, listener: typeof stored) => (stored = listener) });
  vi.stubGlobal("fetch", async (url: URL, options: RequestInit = {}) => {
    const { method = "GET", headers = {}, body } = options;
    asked.push({ method, path: url.pathname + url.search, headers: headers as Record<string, string>, body });
    const next = answers.shift();
    if (next === undefined) throw new TypeError("nobody listens");
    return next;
  });
  keepPageKey(null);
  session.me = null;
  session.ended = null;
  session.changed = () => changes++;
});
afterEach(() => vi.unstubAllGlobals());

test("until it is known otherwise one may read, and a hub that is away changes nothing", async () => {
  await session.ask();
  expect([session.me, session.mayRead, changes]).toEqual([null, true, 0]);
});

test("a sign-in sends JSON and says that a page of the hub asks", async () => {
  answer(ann);
  await session.signIn("ann", "correct horse");
  expect(asked).toEqual([
    {
      method: "POST",
      path: "/gpulse/api/v1/session",
      headers: { "X-Gpulse": "1", "Content-Type": "application/json" },
      body: '{"name":"ann","password":"correct horse"}',
    },
  ]);
  expect([session.name, session.mayRead, session.isAdmin, changes]).toEqual(["ann", true, false, 1]);
});

test("what a sign-in tells once goes along with everything after it, and with nothing after signing out", async () => {
  answer(signedIn);
  await session.signIn("ann", "correct horse");
  expect(session.me).not.toHaveProperty("page_key");
  answer(ann);
  await session.ask();
  answer({});
  await send("POST", "/api/v1/me/keys");
  expect(asked.slice(1).map((one) => one.headers["X-Gpulse"])).toEqual([KEY, KEY]);
  expect(liveProtocols()).toEqual(["gpulse.live", `gpulse.key.${KEY}`]);
  answer(nobody);
  await session.signOut();
  answer(nobody);
  await session.ask();
  expect(asked.slice(-2).map((one) => one.headers["X-Gpulse"])).toEqual([KEY, undefined]);
  expect([pageKey(), liveProtocols()]).toEqual([null, ["gpulse.live"]]);
});

test("what is kept is for one hub and one port", () => {
  keepPageKey(KEY);
  vi.stubGlobal("document", { baseURI: "http://hub.example/other/#/signed-in" });
  expect(pageKey()).toBeNull();
  vi.stubGlobal("document", { baseURI: "http://hub.example:8080/gpulse/" });
  expect(pageKey()).toBeNull();
  vi.stubGlobal("document", { baseURI: "http://hub.example/gpulse/?kiosk#/people" });
  expect(pageKey()).toBe(KEY);
});

test("what single sign-on came back with is kept", async () => {
  answer(ann);
  await session.begin(KEY);
  expect([session.name, pageKey(), asked[0].headers["X-Gpulse"]]).toEqual(["ann", KEY, KEY]);
});

test("an address that anybody wrote signs nobody out", async () => {
  keepPageKey(KEY);
  answer(nobody);
  answer(ann);
  await session.begin("gpp_000000000000_beef");
  expect([session.name, pageKey()]).toEqual(["ann", KEY]);
  answer(ann);
  await session.begin("ü\r\nX: y");
  expect([session.name, pageKey(), asked.at(-1)?.headers["X-Gpulse"]]).toEqual(["ann", KEY, KEY]);
  keepPageKey(null);
  answer(nobody);
  await session.begin("gpp_000000000000_beef");
  expect(pageKey()).toBeNull();
});

test.each(["POST", "PATCH", "DELETE"] as const)("%s is marked as ours", async (method) => {
  answer({});
  await send(method, "/api/v1/me/keys");
  expect(asked[0].headers["X-Gpulse"]).toBe("1");
});

test("a session that comes to its end is told of, with the name", async () => {
  session.me = ann;
  answer(nobody);
  await session.ask();
  expect([session.ended, session.mayRead, changes]).toEqual(["ann", false, 1]);
  answer(ann);
  await session.signIn("ann", "correct horse");
  expect(session.ended).toBeNull();
});

test("who signs out knows it already, also where another tab was quicker", async () => {
  session.me = ann;
  answer(nobody);
  await session.signOut();
  expect([session.name, session.ended, changes]).toEqual([null, null, 1]);

  session.me = ann;
  refuse(401, "sign_in");
  answer(nobody);
  await session.signOut(true);
  expect(asked.at(-2)?.path).toBe("/gpulse/api/v1/session?everywhere=true");
  expect([session.name, session.ended]).toEqual([null, null]);
});

test("an end that was noticed before it was meant leaves nothing either", async () => {
  session.me = ann;
  answer(nobody);
  await session.ask();
  answer(nobody);
  await session.ask(true);
  expect([session.ended, changes]).toEqual([null, 2]);
});

test("another role or sight is a change, the same answer again is none", async () => {
  session.me = ann;
  answer(ann);
  await session.ask();
  expect(changes).toBe(0);
  answer({ ...ann, role: "admin", sight: "full" });
  await session.ask();
  expect([session.isAdmin, changes]).toEqual([true, 1]);
});

test("a refusal says how long to wait", async () => {
  refuse(429, "too_many_attempts", { "Retry-After": "40" });
  const task = new Task();
  expect(await task.run(() => session.signIn("ann", "wrong"))).toBe(false);
  expect([task.error?.status, task.error?.retrySeconds, task.busy]).toEqual([429, 40, false]);
  refuse(401, "wrong_password");
  await expect(session.signIn("ann", "wrong")).rejects.toMatchObject({ code: "wrong_password", retrySeconds: null });
});

test("a task that is refused because nobody is signed in asks who is", async () => {
  session.me = ann;
  answer(nobody);
  const task = new Task();
  await task.run(() => Promise.reject(new ApiError(401, "sign_in", "sign in first")));
  await vi.waitFor(() => expect(session.ended).toBe("ann"));
});

test("mine is the account, unless its person chose another name; each account has its own", () => {
  settings.me = "somebody";
  expect(settings.me).toBe("somebody");
  session.me = ann;
  expect(settings.me).toBe("ann");
  settings.me = "ann2";
  expect(settings.me).toBe("ann2");
  session.me = { ...ann, name: "bob" };
  expect(settings.me).toBe("bob");
  session.me = ann;
  settings.me = "";
  expect(settings.me).toBe("ann");
  session.me = null;
  expect(settings.me).toBe("somebody");
});

test("an answer that was overtaken changes nothing", async () => {
  const waiting: ((me: MeView) => void)[] = [];
  vi.stubGlobal("fetch", () => new Promise((resolve) => waiting.push((me) => resolve(new Response(JSON.stringify(me))))));
  const [early, late] = [session.ask(), session.ask()];
  waiting[1](ann);
  await late;
  waiting[0](nobody);
  await early;
  expect([session.name, session.ended, changes]).toEqual(["ann", null, 1]);
  // That somebody signed out stays known, whichever answer is the first.
  const [meant, other] = [session.ask(true), session.ask()];
  waiting[3](nobody);
  await other;
  expect([session.name, session.ended]).toEqual([null, null]);
  waiting[2](nobody);
  await meant;
  expect(session.ended).toBeNull();
  // And so it does when what was asked before comes after it.
  session.me = ann;
  const [before, out] = [session.ask(), session.ask(true)];
  waiting[4](ann);
  await before;
  waiting[5](nobody);
  await out;
  expect([session.name, session.ended]).toEqual([null, null]);
});

test("the key of another tab may come later than its words", async () => {
  answer(nobody);
  await session.begin();
  answer(ann);
  stored({ key: STORED_AS, newValue: `"${KEY}"` });
  await vi.waitFor(() => expect(session.name).toBe("ann"));
  const before = asked.length;
  stored({ key: STORED_AS, newValue: '"gpp_000000000000_beef"' });
  stored({ key: "gpulse.theme", newValue: null });
  expect(asked.length).toBe(before);
  answer(nobody);
  stored({ key: STORED_AS, newValue: null });
  await vi.waitFor(() => expect(session.name).toBeNull());
  expect(session.ended).toBeNull();
});

import { beforeEach, expect, test, vi } from "vitest";
import { send } from "../../lib/api/send";
import { live } from "../../lib/live/live.svelte";
import { Draft } from "./draft.svelte";

vi.mock("../../lib/api/send", () => ({ send: vi.fn(async () => ({ id: "a", gpus: [] })) }));
vi.mock("../../lib/api/api", async (original) => ({
  ...(await original<object>()),
  get: vi.fn(async (_path: string, { text, start }: { text: string; start: number }) =>
    text === "now" ? { at: 1_000_000.4, text: "in full", length_seconds: null } : text === "4h" ? { at: start + 14_400, text: "in full", length_seconds: 14_400 } : { at: 2e9, text: "in full", length_seconds: null }),
}));

beforeEach(() => {
  vi.mocked(send).mockClear();
});

test("who writes now means when it is saved, however long that takes", async () => {
  const draft = new Draft();
  draft.start.give("now");
  const now = vi.spyOn(live, "now", "get").mockReturnValue(1_000_000);
  await draft.start.settle();
  now.mockReturnValue(1_000_600);
  await draft.save();
  now.mockRestore();
  expect(vi.mocked(send).mock.lastCall?.[2]).not.toHaveProperty("start");
  draft.made = null;
  draft.start.give("friday 18:00");
  await draft.save();
  expect(vi.mocked(send).mock.lastCall?.[2]).toMatchObject({ start: 2e9 });
});

test("who clicks twice reserves once, and another when they ask for it", async () => {
  const draft = new Draft();
  await draft.save();
  await draft.save();
  expect(send).toHaveBeenCalledTimes(1);
  draft.made = null;
  await draft.save();
  expect(send).toHaveBeenCalledTimes(2);
});

test("four hours from now on are four hours, and a moment is the one that was shown", async () => {
  const draft = new Draft();
  await draft.save();
  expect(vi.mocked(send).mock.lastCall?.[2]).toMatchObject({ for: "14400s" });
  expect(vi.mocked(send).mock.lastCall?.[2]).not.toHaveProperty("end");
  draft.made = null;
  draft.end.give("friday 18:00");
  await draft.save();
  expect(vi.mocked(send).mock.lastCall?.[2]).toMatchObject({ end: 2e9 });
  expect(vi.mocked(send).mock.lastCall?.[2]).not.toHaveProperty("for");
});

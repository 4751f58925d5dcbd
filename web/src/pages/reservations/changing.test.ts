import { expect, test, vi } from "vitest";
import { ApiError } from "../../lib/api/api";
import { send } from "../../lib/api/send";
import { Changing } from "./changing.svelte";

vi.mock("../../lib/api/send", () => ({ send: vi.fn() }));

test("one's own change comes between nothing, that of others does", async () => {
  const changing = new Changing();
  changing.basis = 4;
  vi.mocked(send).mockResolvedValueOnce({ revision: 5 });
  await changing.change("a", { end: 1 }, 4);
  expect(changing.basis).toBe(5);
  // Seen as 7 meanwhile, and extended; what is written was written for 5.
  vi.mocked(send).mockResolvedValueOnce({ revision: 8 });
  await changing.change("a", { end: 2 }, 7);
  expect(changing.basis).toBe(5);
  vi.mocked(send).mockRejectedValueOnce(new ApiError(409, "changed_meanwhile", "somebody has changed it"));
  expect(await changing.change("a", { end: 3 }, 5)).toBeNull();
  expect([changing.basis, changing.task.error?.code]).toEqual([5, "changed_meanwhile"]);
});

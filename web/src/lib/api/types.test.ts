import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

test("the types are those the hub describes", { timeout: 60_000 }, () => {
  const web = new URL("../../../", import.meta.url).pathname;
  expect(() => execFileSync(process.execPath, ["types.mjs", "--check"], { cwd: web, stdio: "pipe" })).not.toThrow();
});

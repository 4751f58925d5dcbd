import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { command, cudaDevices, deviceNames, pasteable, quote } from "./shell";

const NASTY = ["GPU-2;id>/tmp/x;true ", "$(id)", "`id`", "a'b", "'", "a\"b", "a\\b", "a b", "*", "~", "", "é", "a\nb", "#a", "!a", "-rf"];

test("a word is read back by a shell as it is, whatever is in it", () => {
  for (const word of NASTY) {
    expect(execFileSync("sh", ["-c", `printf %s ${quote(word)}`], { encoding: "utf8" })).toBe(word);
  }
});

test("what needs no quotes has none", () => {
  for (const word of ["gpu01.example.org", "GPU-5a-b", "MIG-GPU-5a/1/0", "0,1,2", "fe80::1%eth0", "me@gpu1"]) {
    expect(quote(word)).toBe(word);
  }
});

test("commands and devices for CUDA", () => {
  expect(command("ssh", "gpu1")).toBe("ssh gpu1");
  expect(command("ssh", "x;id")).toBe("ssh 'x;id'");
  expect(command("kill", 12, 13)).toBe("kill 12 13");
  expect(cudaDevices([0, 2])).toBe("CUDA_VISIBLE_DEVICES=0,2");
  expect(deviceNames("n", [{ index: 1 }, { index: 0, uuid: "MIG-1", parent_uuid: "GPU-0" }])).toBe("CUDA_VISIBLE_DEVICES=1,MIG-1");
  expect(deviceNames("n", [{ index: 0, uuid: "n/0.1", parent_uuid: "GPU-0" }])).toBeNull();
  expect(deviceNames("n", [])).toBeNull();
  expect(cudaDevices(["GPU-2;id"])).toBe("CUDA_VISIBLE_DEVICES='GPU-2;id'");
});

test("what is pasted runs nothing and moves nothing", () => {
  expect(pasteable("ls\nrm -rf /\r\n\u001b[201~\u009b2J\u0085\u2028x")).toBe("ls rm -rf / [201~ 2J x");
  expect(pasteable("\u202eevil\u2066\u200b\ufeff")).toBe("evil");
  expect(pasteable("python 'Zoë 日本語' 🚀")).toBe("python 'Zoë 日本語' 🚀");
});

test("there is one way to the clipboard, and commands in markup are put together here", () => {
  const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((path) => /\.(ts|svelte)$/.test(path) && !path.endsWith(".test.ts"));
  expect(sources.length).toBeGreaterThan(100);
  for (const path of sources) {
    const text = readFileSync(`src/${path}`, "utf8");
    if (!path.endsWith("copy.ts")) expect(text, path).not.toMatch(/navigator\.clipboard|execCommand/);
    // text="ssh {name}" would be pasted without quotes.
    expect(text, path).not.toMatch(/<Copy(Button|Word)\b[^>]*\btext="[^"]*\{/);
  }
});

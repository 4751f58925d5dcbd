/** What roles, scopes and browsers are called on the page. */
import type { MeView } from "../../lib/api/api";
import type { components } from "../../lib/api/types";

export type Role = components["schemas"]["AccountView"]["role"];
export type Scope = components["schemas"]["NewKey"]["scopes"][number];

export const ROLES: readonly Role[] = ["viewer", "member", "admin"];
export const ROLE_WORDS: Record<Role, string> = {
  viewer: "may look",
  member: "may look, reserve and set watches",
  admin: "may do everything, also for others",
};

export const SIGHT_WORDS: Record<MeView["sight"], string> = {
  full: "You see the processes of others in full.",
  names: "Of others you see names and programs, not their arguments.",
  anonymous: "Of others you see what they use, not who they are.",
};

export const SCOPES: readonly { scope: Scope; words: string; role: Role }[] = [
  { scope: "read", words: "read what I may read", role: "viewer" },
  { scope: "metrics", words: "read /metrics, for Prometheus", role: "viewer" },
  { scope: "write", words: "change what I may change", role: "viewer" },
  { scope: "admin", words: "do what I may as an admin", role: "admin" },
];

// The first that fits: browsers call themselves after those that were there before them.
const BROWSERS = [
  ["Edge", /\bEdg(?:e|A|iOS)?\//],
  ["Opera", /\bOPR\//],
  ["Firefox", /\b(?:Firefox|FxiOS)\//],
  ["Chrome", /\b(?:Chrome|Chromium|HeadlessChrome|CriOS)\//],
  ["Safari", /\bSafari\//],
  ["curl", /^curl\//],
] as const;
const SYSTEMS = [
  ["Android", /\bAndroid\b/],
  ["iPhone", /\biPhone\b/],
  ["iPad", /\biPad\b/],
  ["Windows", /\bWindows\b/],
  ["macOS", /\bMac OS X\b|\bMacintosh\b/],
  ["ChromeOS", /\bCrOS\b/],
  ["Linux", /\bLinux\b/],
] as const;

/** "Firefox on Linux", of what a browser calls itself. */
export function browserWords(agent: string): string {
  const browser = BROWSERS.find(([, pattern]) => pattern.test(agent))?.[0];
  const system = SYSTEMS.find(([, pattern]) => pattern.test(agent))?.[0];
  if (browser === undefined) return agent.slice(0, 40) || "Unknown browser";
  return system === undefined ? browser : `${browser} on ${system}`;
}

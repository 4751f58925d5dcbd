/** When a key ends, or has ended, in words. */
import type { KeyView } from "../../lib/api/api";
import { age } from "../../lib/format";

/** `now` in seconds since 1970. */
export function keyEnd(key: KeyView, now: number): string {
  if (key.state === "revoked") return key.ended_at == null ? "revoked" : `revoked ${age(now - key.ended_at)} ago`;
  if (key.expires_at == null) return "never";
  const left = key.expires_at - now;
  return key.state === "expired" || left <= 0 ? `ended ${age(Math.max(0, -left))} ago` : `in ${age(left)}`;
}

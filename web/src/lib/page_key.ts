/** This page's half of a session: browsers send cookies to every port of a host, and what a page keeps to none. */
import { hubUrl } from "./hub";
import { forget, keep, recall, watch } from "./remember";

/** By the hub, as several may share an origin below paths of their own; the viewer at /api/docs reads it too. */
function name(): string {
  return `key ${new URL(hubUrl() || ".", document.baseURI).href}`;
}

export function pageKey(): string | null {
  return recall<string | null>(name(), null);
}

export function keepPageKey(key: string | null): void {
  if (key === null) forget(name());
  else keep(name(), key);
}

/** Calls back when another tab has another key, or none any more. */
export function watchPageKey(changed: (gone: boolean) => void): void {
  watch(name(), changed);
}

/** What goes along with a request: the key, where somebody has signed in. */
export function keyHeader(): Record<string, string> {
  const key = pageKey();
  return key === null ? {} : { "X-Gpulse": key };
}

/** What a WebSocket says that it speaks: it can send no headers. */
export function liveProtocols(): string[] {
  const key = pageKey();
  return key === null ? ["gpulse.live"] : ["gpulse.live", `gpulse.key.${key}`];
}

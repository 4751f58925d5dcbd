/** Asks the hub, or the exported data in its place. */
import { exported, hubUrl, isExport } from "../hub";
import { keyHeader } from "../page_key";
import { ApiError, noAnswer } from "./error";
import { type Query, answer } from "./exported";
import type { components } from "./types";

export { ApiError };
export type { Query };

export type NodeView = components["schemas"]["NodeView"];
export type GpuView = components["schemas"]["GpuView"];
export type ProcessView = components["schemas"]["ProcessView"];
export type PersonView = components["schemas"]["PersonView"];
export type PersonUse = components["schemas"]["PersonUse"];
export type Host = components["schemas"]["Host"];
export type Summary = components["schemas"]["Summary"];
export type HubView = components["schemas"]["HubView"];
export type LogEntry = components["schemas"]["LogEntry"];
export type NodePage = components["schemas"]["NodePage"];
export type GpuPage = components["schemas"]["GpuPage"];
export type PersonPage = components["schemas"]["PersonPage"];
export type NodeChecks = components["schemas"]["NodeChecks"];
export type LogPage = components["schemas"]["LogPage"];
export type MeView = components["schemas"]["MeView"];
export type SessionView = components["schemas"]["SessionView"];
export type OwnSessions = components["schemas"]["OwnSessions"];
export type KeyView = components["schemas"]["KeyView"];
export type OwnKeys = components["schemas"]["OwnKeys"];
export type OwnFeeds = components["schemas"]["OwnFeeds"];
export type AccountView = components["schemas"]["AccountView"];
export type AccountPage = components["schemas"]["AccountPage"];
export type AuditLine = components["schemas"]["AuditLine"];
export type AuditPage = components["schemas"]["AuditPage"];

/** Longer than this and the hub counts as gone. */
const PATIENCE_MS = 15_000;

/** The whole address of a path of the hub, as in "/api/v1/nodes"; works under any sub-path. */
export function address(path: string, query: Query = {}): URL {
  const url = new URL(hubUrl() + path.replace(/^\//, ""), document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url;
}

/** `get<NodeView>("/api/v1/nodes/gpu07")`. Throws ApiError, or what aborted `signal`. */
export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal, patienceMs = PATIENCE_MS): Promise<T> {
  if (isExport()) return answer(exported(), path, query) as T;
  const patience = AbortSignal.timeout(patienceMs);
  try {
    const either = signal ? AbortSignal.any([signal, patience]) : patience;
    const response = await fetch(address(path, query), { signal: either, headers: keyHeader() });
    if (!response.ok) throw await refusal(response);
    // Also what comes after the head may come too late, or not at all.
    return (await response.json()) as T;
  } catch (error) {
    if (signal?.aborted || error instanceof ApiError) throw error;
    throw noAnswer();
  }
}

/** What an answer that is none says. */
export async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text();
  const wait = Number(response.headers.get("Retry-After") ?? Number.NaN);
  try {
    const { error } = JSON.parse(text) as components["schemas"]["ErrorAnswer"];
    const { code, message, detail, conflicts, alternatives } = error;
    return new ApiError(response.status, code, message, detail || null, Number.isFinite(wait) ? wait : null, conflicts, alternatives);
  } catch {
    // A proxy in between may answer in its own words.
    return new ApiError(response.status, "not_the_hub", `${response.status} ${response.statusText}`.trim());
  }
}

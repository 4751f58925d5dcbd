/** Asks the hub for a change, in the name of who is signed in. */
import { isExport } from "../hub";
import { keyHeader } from "../page_key";
import { type Query, address, refusal } from "./api";
import { ApiError, noAnswer } from "./error";

/** Passwords take the hub a while to check, and many at once have to wait. */
const PATIENCE_MS = 30_000;

/** `send<MadeKey>("POST", "/api/v1/me/keys", {…})`. Throws ApiError. */
export async function send<T>(method: "POST" | "PATCH" | "DELETE", path: string, body?: unknown, query: Query = {}): Promise<T> {
  if (isExport()) throw new ApiError(404, "not_exported", "an exported page can change nothing");
  // No form of another site can send it: so the hub knows that a page of its own asks.
  const headers: Record<string, string> = { "X-Gpulse": "1", ...keyHeader() };
  if (method !== "DELETE") headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(address(path, query), {
      method,
      headers,
      body: method === "DELETE" ? undefined : JSON.stringify(body ?? {}),
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
  } catch {
    throw noAnswer();
  }
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as T;
}

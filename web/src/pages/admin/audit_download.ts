/** The audit log as a file with a line of JSON for each entry. */
import { address, refusal } from "../../lib/api/api";
import { noAnswer } from "../../lib/api/error";
import { keyHeader } from "../../lib/page_key";
import { type Period, since } from "./audit_reading.svelte";

const LINES = "application/x-ndjson";
const LIMIT = 1000;

/** Throws ApiError. */
export async function downloadAudit(period: Period): Promise<void> {
  const url = URL.createObjectURL(new Blob(await auditLines(since(period)), { type: LINES }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "gpulse-audit.jsonl";
  link.click();
  // Not at once: the browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** All pages of it, the newest entry first. */
export async function auditLines(from: number | null): Promise<string[]> {
  const pages: string[] = [];
  for (let before: number | null = null; ; ) {
    const text = await page(before, from);
    const lines = text.split("\n").filter((line) => line !== "");
    if (lines.length > 0) pages.push(text);
    if (lines.length < LIMIT) return pages;
    before = (JSON.parse(lines[lines.length - 1]) as { id: number }).id;
  }
}

async function page(before: number | null, from: number | null): Promise<string> {
  let response: Response;
  try {
    response = await fetch(address("/api/v1/audit", { before, since: from, limit: LIMIT }), { headers: { Accept: LINES, ...keyHeader() } });
  } catch {
    throw noAnswer();
  }
  if (!response.ok) throw await refusal(response);
  return response.text();
}

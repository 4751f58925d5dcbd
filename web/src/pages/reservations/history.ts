/** What has become of a reservation, in words. */
import { between, shortMoment } from "../../lib/moments";
import { type Change, placesText } from "../../lib/reservations";

const ACTIONS: Record<string, string> = {
  made: "reserved",
  changed: "changed",
  ended: "ended it",
  cancelled: "cancelled it",
  released: "released it: nobody came",
  imported: "imported it",
};

/** "alice: until Fri 20:00 instead of Fri 18:00" */
export function changeWords({ by, action, before, after }: Change, now: number): string {
  if (action !== "changed" || before === null) {
    const times = (action === "made" || action === "imported") ? ` ${placesText(after.gpus, 2)}, ${between(after.start, after.end, now)}` : "";
    return `${by} ${ACTIONS[action] ?? action}${times}`;
  }
  const news: string[] = [];
  if (before.start !== after.start) news.push(`from ${shortMoment(after.start, now)} instead of ${shortMoment(before.start, now)}`);
  if (before.end !== after.end) news.push(`until ${shortMoment(after.end, now)} instead of ${shortMoment(before.end, now)}`);
  if (placesText(before.gpus) !== placesText(after.gpus)) news.push(`${placesText(after.gpus, 2)} instead of ${placesText(before.gpus, 2)}`);
  if (before.person !== after.person) news.push(`for ${after.person} instead of ${before.person}`);
  if (before.comment !== after.comment) news.push(after.comment === "" ? "without a comment" : `“${after.comment}”`);
  return `${by} changed it: ${news.join(", ") || "nothing"}`;
}

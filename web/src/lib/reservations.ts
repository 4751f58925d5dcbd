/** Reservations as the page speaks of them. */
import type { components } from "./api/types";
import { natural, ranges } from "./format";
import { DAY, between, shortMoment } from "./moments";

export type ReservationView = components["schemas"]["ReservationView"];
export type ReservationDetail = components["schemas"]["ReservationDetail"];
export type ReservationPage = components["schemas"]["ReservationPage"];
export type Change = components["schemas"]["ChangeView"];
export type FindingView = components["schemas"]["FindingView"];
export type Alternative = components["schemas"]["AlternativeView"];
export type BookedView = components["schemas"]["BookedView"];
export type Understood = components["schemas"]["WhenView"];
export type FindingKind = FindingView["kind"];

/** Who does not say for how long has it so long. */
export const USUAL_HOURS = 4;

/** A GPU by its place, as in reservations: it stays booked when the card is another. */
export interface Place {
  node: string;
  /** "0"; of a MIG instance "0.2". */
  index: string;
}

/** What a whole node is: its cards, and of a card that is not told of its instances. Who has a card has its instances. */
export function wholeNode(indices: readonly string[]): string[] {
  const known = new Set(indices);
  return indices.filter((index) => !index.includes(".") || !known.has(index.split(".")[0]));
}

/** Places as people write them, and `placesIn` reads them: "gpu03:0-3 gpu04:1". */
export function writePlaces(places: readonly Place[]): string {
  return byNode(places).map(([node, indices]) => `${node}:${indexText(indices).replaceAll("–", "-").replaceAll(", ", ",")}`).join(" ");
}

/** The same for reading: "gpu03: 0–3 · gpu04: 1". */
export function placesText(places: readonly Place[], most = Infinity): string {
  const nodes = byNode(places);
  const shown = nodes.slice(0, most).map(([node, indices]) => `${node}: ${indexText(indices)}`);
  return shown.join(" · ") + (nodes.length > most ? ` and ${nodes.length - most} more` : "");
}

function byNode(places: readonly Place[]): [string, string[]][] {
  const nodes = new Map<string, string[]>();
  for (const { node, index } of places) {
    const indices = nodes.get(node);
    if (indices === undefined) nodes.set(node, [index]);
    else if (!indices.includes(index)) indices.push(index);
  }
  return [...nodes].sort((a, b) => natural(a[0], b[0]));
}

/** "0–2, 5, 6.1" */
export function indexText(indices: readonly string[]): string {
  const whole = indices.filter((index) => /^[0-9]+$/.test(index)).map(Number);
  const parts = indices.filter((index) => !/^[0-9]+$/.test(index)).sort(natural);
  return [...(whole.length > 0 ? [ranges(whole)] : []), ...parts].join(", ");
}

/** What is the matter, in a few words. `short` leaves out whose reservation it is. */
export function findingWords(finding: FindingView, short = false): string {
  const whose = short ? "" : `${finding.name}'s `;
  const other = finding.other_name ?? "somebody";
  switch (finding.kind) {
    case "squatter":
      return short ? `${other} is on it` : `${other} computes on what ${finding.name} has reserved`;
    case "no_show":
      return unusedWords(finding, short);
    case "overrun":
      return short ? "runs on after the end" : `${finding.name} computes on after the end`;
    case "blocked":
      return short ? `${other} is still on it` : `${whose}reservation begins soon, and ${other} is on it`;
  }
}

/** With when it is released, where it is: until then they can still come. */
function unusedWords({ name, release_at: at }: FindingView, short: boolean): string {
  if (at === null) return short ? "booked, not used" : `${name}'s reservation is not used`;
  const moment = shortMoment(at, Date.now() / 1000);
  return short ? `unused, ends ${moment}` : `${name}'s reservation is not used, and is released at ${moment}`;
}

export const FINDING_LABELS: Record<FindingKind, string> = {
  squatter: "Squatter",
  no_show: "Not used",
  overrun: "Overrun",
  blocked: "Blocked",
};

/** Nobody came, and it was given to others. */
export function isReleased(one: Pick<ReservationView, "ending">): boolean {
  return one.ending === "no_show";
}

/** Those that the hub does not see now: the cards are out, the node is not there any more. */
export function unseen(gpus: ReservationView["gpus"]): Place[] {
  return gpus.filter((gpu) => gpu.id === null);
}

/** "reserved by alice until Fri 18:00" */
export function bookedWords(booked: BookedView, now: number, mine: boolean): string {
  const who = mine ? "you" : booked.name;
  if (booked.start <= now) return `${booked.hold ? "held" : "reserved"} by ${who} until ${shortMoment(booked.end, now)}`;
  return `reserved from ${shortMoment(booked.start, now)} by ${who}`;
}

/** What a GPU's small badge is about; what is further away is for the timeline. */
export function bookedSoon(now: BookedView | null | undefined, next: BookedView | null | undefined, at: number): BookedView | null {
  return now ?? (next != null && next.start - at < DAY ? next : null);
}

/** Its comment and its times, for a tooltip. */
export function bookedTitle(booked: BookedView, now: number): string {
  return [between(booked.start, booked.end, now), booked.comment ?? ""].filter((part) => part !== "").join("\n");
}

/** `me`: the name of who looks; empty: not known. */
export function isMine(booked: Pick<BookedView, "person">, me: string): boolean {
  return me !== "" && booked.person.toLowerCase() === me.toLowerCase();
}

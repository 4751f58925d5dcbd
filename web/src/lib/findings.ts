/** Where reservations and what runs do not agree, by what it is about. Put together once for each answer of the hub. */
import { type FindingKind, type FindingView, type ReservationPage, findingWords, indexText } from "./reservations";

/** The worst first. */
const ORDER: readonly FindingKind[] = ["squatter", "blocked", "overrun", "no_show"];
const NONE: readonly FindingView[] = [];

export class Findings {
  readonly #ofGpu = new Map<string, FindingView[]>();
  readonly #ofReservation = new Map<string, FindingView[]>();
  readonly #onNode = new Map<string, FindingView[]>();

  constructor(page: Pick<ReservationPage, "findings" | "reservations"> | null) {
    if (page === null || page.findings.length === 0) return;
    const reservations = new Map(page.reservations.map((one) => [one.id, one]));
    for (const finding of [...page.findings].sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind))) {
      if (finding.node !== null) {
        put(this.#onNode, finding.node, finding);
        if (finding.gpu !== null) put(this.#ofGpu, finding.gpu, finding);
        continue;
      }
      // One of all GPUs of its reservation.
      put(this.#ofReservation, finding.reservation, finding);
      const gpus = reservations.get(finding.reservation)?.gpus ?? [];
      for (const { id } of gpus) if (id !== null) put(this.#ofGpu, id, finding);
      for (const node of new Set(gpus.map((gpu) => gpu.node))) put(this.#onNode, node, finding);
    }
  }

  /** `reservation`: that of now, where it is known; an answer may leave out reservations where there are very many. */
  of(gpu: string, reservation?: string | null): readonly FindingView[] {
    const found = this.#ofGpu.get(gpu) ?? NONE;
    const whole = (reservation == null ? undefined : this.#ofReservation.get(reservation)) ?? NONE;
    return whole.every((one) => found.includes(one)) ? found : [...found, ...whole];
  }

  on(node: string): readonly FindingView[] {
    return this.#onNode.get(node) ?? NONE;
  }
}

/** Findings of several GPUs that are one thing to people: one kind, reservation, node and person. */
export interface Trouble {
  readonly first: FindingView;
  /** How many GPUs. */
  count: number;
  /** "gpu01:0–3", "gpu01"; empty where it is about all of a reservation. */
  place: string;
  /** When the earliest of them began. */
  since: number;
}

export function together(findings: readonly FindingView[]): Trouble[] {
  const found = new Map<string, FindingView[]>();
  for (const one of findings) put(found, JSON.stringify([one.kind, one.reservation, one.node, one.other]), one);
  return [...found.values()].map((same) => ({ first: same[0], count: same.length, place: placeOf(same), since: Math.min(...same.map((one) => one.since)) }));
}

/** With the place before it, where there is one. */
export function troubleWords({ first, place }: Trouble): string {
  return place === "" ? findingWords(first) : `${place}: ${findingWords(first)}`;
}

function placeOf(same: readonly FindingView[]): string {
  const [{ node }] = same;
  const indices = same.map((one) => one.index).filter((index) => index !== null);
  return node === null ? "" : indices.length === 0 ? node : `${node}:${indexText(indices).replaceAll(", ", ",")}`;
}

function put(map: Map<string, FindingView[]>, key: string, finding: FindingView): void {
  const there = map.get(key);
  if (there === undefined) map.set(key, [finding]);
  else there.push(finding);
}

/** Where reservations and what runs do not agree, by what it is about. Put together once for each answer of the hub. */
import type { FindingKind, FindingView, ReservationPage } from "./reservations";

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

function put(map: Map<string, FindingView[]>, key: string, finding: FindingView): void {
  const there = map.get(key);
  if (there === undefined) map.set(key, [finding]);
  else there.push(finding);
}

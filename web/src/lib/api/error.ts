import type { Alternative, ReservationView } from "../reservations";

/** What the hub has to say against a request. Status 0: it did not answer. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly detail: string | null = null,
    /** After how long another try makes sense; null: not told. */
    readonly retrySeconds: number | null = null,
    /** Of a reservation: what is in the way, and what could be had instead. */
    readonly conflicts: readonly ReservationView[] = [],
    readonly alternatives: readonly Alternative[] = [],
  ) {
    super(message);
    this.name = "ApiError";
  }

  /** What is wrong and what helps, in one sentence. */
  get words(): string {
    return this.detail ? `${this.message}; ${this.detail}` : this.message;
  }
}

/** The hub cannot be reached, or is too slow. */
export function noAnswer(): ApiError {
  return new ApiError(0, "no_answer", "the hub does not answer", "try again when it is back");
}

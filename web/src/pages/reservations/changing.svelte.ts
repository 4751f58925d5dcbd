/** Changes to a reservation that is there: other times, other GPUs, another comment, its end. */
import { get } from "../../lib/api/api";
import { send } from "../../lib/api/send";
import { zone } from "../../lib/moments";
import type { Place, ReservationDetail, ReservationView } from "../../lib/reservations";
import { Task } from "../../lib/task.svelte";

const path = (id: string) => `/api/v1/reservations/${encodeURIComponent(id)}`;

export interface Changes {
  start?: number;
  /** As text a length, from now or from a start that is still to come: "7200s". */
  end?: number | string;
  gpus?: Place[];
  comment?: string;
}

export class Changing {
  readonly task = new Task();
  /** The revision that was seen by who began to write; null: nothing is written. What others save meanwhile is not in it. */
  basis: number | null = null;

  /** As it is then; null: it was refused. `revision`: what it was made from; if somebody was quicker, the hub says so. */
  async change(id: string, changes: Changes, revision: number): Promise<ReservationView | null> {
    const changed = await this.#send("PATCH", path(id), { ...changes, zone: zone(), revision });
    // One's own change comes between nothing.
    if (changed !== null && this.basis === revision) this.basis = changed.revision;
    return changed;
  }

  /** Now, where it has begun; else it is as if it had never been made. */
  async end(one: Pick<ReservationView, "id" | "state">): Promise<ReservationView | null> {
    if (one.state === "coming") return this.#send("DELETE", path(one.id));
    return this.#send("POST", `${path(one.id)}/end`);
  }

  async #send(method: "PATCH" | "POST" | "DELETE", to: string, body?: unknown): Promise<ReservationView | null> {
    let changed: ReservationView | null = null;
    await this.task.run(async () => (changed = await send<ReservationView>(method, to, body)));
    return changed;
  }
}

export async function withHistory(id: string): Promise<ReservationDetail> {
  return get<ReservationDetail>(path(id));
}

/** Changes to a reservation that is there: other times, another comment, its end. */
import { get } from "../../lib/api/api";
import { send } from "../../lib/api/send";
import { zone } from "../../lib/moments";
import type { ReservationDetail, ReservationView } from "../../lib/reservations";
import { Task } from "../../lib/task.svelte";

const path = (id: string) => `/api/v1/reservations/${encodeURIComponent(id)}`;

export interface Changes {
  start?: number;
  end?: number;
  extend?: string;
  comment?: string;
}

export class Changing {
  readonly task = new Task();

  /** `revision`: what it was made from; if somebody was quicker, the hub says so. */
  async change(id: string, changes: Changes, revision?: number): Promise<boolean> {
    return this.task.run(() => send<ReservationView>("PATCH", path(id), { ...changes, zone: zone(), revision }));
  }

  /** Now, where it has begun; else it is as if it had never been made. */
  async end(one: Pick<ReservationView, "id" | "state">): Promise<boolean> {
    if (one.state === "coming") return this.task.run(() => send<ReservationView>("DELETE", path(one.id)));
    return this.task.run(() => send<ReservationView>("POST", `${path(one.id)}/end`));
  }
}

export async function withHistory(id: string): Promise<ReservationDetail> {
  return get<ReservationDetail>(path(id));
}

/** What somebody has reserved, and what they lost as they did not come. */
import { DAY } from "../../lib/moments";
import { type ReservationView, isReleased } from "../../lib/reservations";

export interface Own {
  standing: ReservationView[];
  /** For a day: who comes after all is told where it went. */
  released: ReservationView[];
}

/** By their start. Our clock may be a moment behind the hub's: what was released is not among what stands, too. */
export function ownOf(reservations: readonly ReservationView[], now: number): Own {
  const own = reservations.filter((one) => one.mine).sort((a, b) => a.start - b.start);
  return {
    standing: own.filter((one) => one.last > now && one.state !== "cancelled" && !isReleased(one)),
    released: own.filter((one) => isReleased(one) && now - one.last < DAY),
  };
}

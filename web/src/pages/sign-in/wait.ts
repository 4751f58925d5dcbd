/** How many whole seconds are left until then, both in milliseconds; 0: none, or nothing is waited for. */
export function secondsLeft(until: number | null, now: number): number {
  return until === null ? 0 : Math.max(0, Math.ceil((until - now) / 1000));
}

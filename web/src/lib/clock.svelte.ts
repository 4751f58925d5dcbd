/** One second that ticks for the whole page, while somebody looks. */

class Clock {
  /** Milliseconds since 1970, to the second. */
  now = $state(Date.now());

  constructor() {
    if (typeof document === "undefined") return;
    const tick = () => {
      if (!document.hidden) this.now = Date.now();
    };
    setInterval(tick, 1000);
    document.addEventListener("visibilitychange", tick);
  }
}

export const clock = new Clock();

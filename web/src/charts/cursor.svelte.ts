/** The time that is pointed at: one for all charts of the page. */

class Cursor {
  /** Seconds since 1970; null: nothing is pointed at, and charts tell the newest. */
  time = $state<number | null>(null);
}

export const cursor = new Cursor();

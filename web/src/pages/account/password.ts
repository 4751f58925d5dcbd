/** What the page can say of a new password before the hub is asked, which has the last word. */

export const SHORTEST = 10;

/** null: nothing. */
export function passwordTrouble(fresh: string, again: string, name: string): string | null {
  if ([...fresh].length < SHORTEST) return `It needs ${SHORTEST} characters or more.`;
  if (fresh.toLowerCase() === name.toLowerCase()) return "It must not be your name.";
  return fresh === again ? null : "The two are not the same.";
}

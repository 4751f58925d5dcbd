/** Where somebody goes on who comes back from single sign-on, which leaves the page and its address. */

export const CAME_FROM = "gpulse.came-from";

/** The hash to go to, once; null: nobody was away, or the address says where to go. */
export function cameBack(hash: string, signedIn: boolean): string | null {
  let kept: string | null;
  try {
    kept = sessionStorage.getItem(CAME_FROM);
    sessionStorage.removeItem(CAME_FROM);
  } catch {
    // Without storage nothing was kept.
    return null;
  }
  return signedIn && (hash === "" || hash === "#/") && kept?.startsWith("#/") ? kept : null;
}

/** The address of the page to sign in at, which knows where to go on afterwards. */
import { href, route } from "./route.svelte";

export function signInHref(): string {
  const here = location.hash.replace(/^#/, "");
  // Read, so that a link is made anew when the page becomes another.
  return href("sign-in", null, { to: route.page === "sign-in" || here === "" || here === "/" ? null : here });
}

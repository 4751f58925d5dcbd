/** Where somebody was who goes to the site's single sign-on: it sends everybody back to the first page. */
import { afterSignIn } from "../../lib/gate";
import { CAME_FROM } from "../../lib/came_back";
import { route } from "../../lib/route.svelte";

export function remember(): void {
  const here = route.page === "sign-in" ? afterSignIn(route.query.to) : location.hash;
  try {
    sessionStorage.setItem(CAME_FROM, here);
  } catch {
    // Without storage they begin at the first page.
  }
}

/** Which page somebody gets who asks for one. */
import type { MeView } from "./api/api";
import type { PageName } from "./route.svelte";

/** Of these each needs somebody who is signed in; they need no data of the fleet. */
const PERSONAL: readonly PageName[] = ["account", "admin"];

export function isPersonal(page: PageName): boolean {
  return PERSONAL.includes(page);
}

/** `locked`: there is nothing to show to who has not signed in. `me` null: it is not known who looks. */
export function pageFor(page: PageName, me: MeView | null, locked: boolean, exported: boolean): PageName | "forbidden" {
  if (exported) return isPersonal(page) || page === "sign-in" || page === "reservations" ? "missing" : page;
  if (locked) return "sign-in";
  if (isPersonal(page) && me !== null && me.name === null) return "sign-in";
  if (page === "admin" && me?.role !== "admin") return "forbidden";
  return page;
}

/** Where somebody goes on who has signed in: `to` of the address, which is never another site. */
export function afterSignIn(to: string | undefined): string {
  return to?.startsWith("/") && !to.startsWith("/sign-in") ? `#${to}` : "#/";
}

/** Where a filter is applied: on the page one is on, where that shows what it finds; else in the fleet. */
import { type PageName, href, route, setQuery } from "../lib/route.svelte";

const FILTERED: readonly PageName[] = ["fleet", "reservations"];

/** Whether this page shows what a filter finds, at once. */
export const filtersHere = () => FILTERED.includes(route.page);

export function filterBy(text: string): void {
  if (filtersHere()) setQuery({ q: text });
  else route.go(href("fleet", null, { q: text || null }));
}

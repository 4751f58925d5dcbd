/** What calendars show, in words. */

export const SCOPE_OF_NODE = "node:";

export function calendarWords(scope: string): string {
  if (scope.startsWith(SCOPE_OF_NODE)) return `the node ${scope.slice(SCOPE_OF_NODE.length)}`;
  return scope === "mine" ? "my reservations" : "the whole fleet";
}

/** People as rows of a table, and their order. */
import type { PersonView } from "../../lib/api/api";
import { sorted } from "../node/process_rows";

export type PersonColumn = "person" | "gpus" | "busy" | "memory" | "processes" | "nodes";

const VALUES: Record<PersonColumn, (person: PersonView) => string | number | null> = {
  person: (one) => one.person,
  gpus: (one) => one.gpus,
  busy: (one) => (one.gpus === 0 ? 0 : one.busy_gpus / one.gpus),
  memory: (one) => one.memory_bytes,
  processes: (one) => one.processes,
  nodes: (one) => one.nodes.length,
};

export function sortPeople(people: readonly PersonView[], column: PersonColumn, down: boolean): PersonView[] {
  return sorted(people, VALUES[column], down);
}

/** Those whose name has the word in it. */
export function findPeople(people: readonly PersonView[], word: string): PersonView[] {
  const wanted = word.trim().toLowerCase();
  return wanted === "" ? [...people] : people.filter((one) => one.person.toLowerCase().includes(wanted));
}

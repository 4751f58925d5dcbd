/** How dense the fleet is shown: what the address says, then what the person chose last, then by its size. */
import { DENSITIES, type Density } from "../../lib/settings.svelte";

/** A lab fits in cards, a cluster in a table; what is larger is a map. */
const MOST_CARDS = 60;
const MOST_ROWS = 400;

export function densityOf(asked: string | undefined, chosen: Density | null, nodes: number): Density {
  if (DENSITIES.includes(asked as Density)) return asked as Density;
  if (chosen !== null) return chosen;
  if (nodes <= MOST_CARDS) return "cards";
  return nodes <= MOST_ROWS ? "table" : "map";
}

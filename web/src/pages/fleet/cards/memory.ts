/** The memory of a GPU in the colours of those who hold it. */
import type { Part } from "../../../components/Bar.svelte";
import type { GpuView } from "../../../lib/api/api";
import { colour } from "../../../lib/person";

/**
 * `used` is 0 to 1 by the newest frame. What the people hold is older and does not add up to it: the driver takes some,
 * and some do not tell. So their parts are scaled down to fit, and the rest is grey.
 */
export function memoryParts(used: number | null, view: GpuView | undefined, person: string | null): Part[] {
  if (used === null || used === 0) return [];
  const total = view?.memory_total_bytes ?? 0;
  const held = (view?.people ?? [])
    .filter((use) => (use.memory_bytes ?? 0) > 0)
    .map((use) => ({ person: use.person, share: total > 0 ? (use.memory_bytes ?? 0) / total : 0 }))
    .sort((a, b) => b.share - a.share);
  if (held.length === 0) return [{ share: used, colour: person === null ? "var(--stale)" : colour(person) }];
  const sum = held.reduce((all, one) => all + one.share, 0);
  const fit = sum > used ? used / sum : 1;
  const parts: Part[] = held.map((one) => ({ share: one.share * fit, colour: colour(one.person) }));
  const rest = used - sum;
  // Less than a pixel is not drawn.
  return rest > 0.02 ? [...parts, { share: rest, colour: "var(--stale)" }] : parts;
}

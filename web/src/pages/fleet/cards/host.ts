/** The machine around the GPUs, in short words. */
import type { Host, NodeView } from "../../../lib/api/api";

type Disk = NonNullable<Host["disks"]>[number];

/** "2×32C/128T": sockets, cores of each, threads of all. */
export function cpuShape(host: Host): string | null {
  const { cpu_sockets: sockets, cpu_cores: cores, cpu_threads: threads } = host;
  if (!cores) return threads ? `${threads}T` : null;
  const each = sockets && sockets > 1 ? `${sockets}×${Math.round(cores / sockets)}C` : `${cores}C`;
  return threads ? `${each}/${threads}T` : each;
}

/** Without what every one of them has: "Xeon Platinum 8480+". */
export function cpuModel(host: Host): string {
  return (host.cpu_model ?? "")
    .replace(/\((R|TM|r|tm)\)/g, "")
    .replace(/\b(Intel|AMD|CPU|Processor|[0-9]+-Core)\b/g, "")
    .replace(/@.*$/, "")
    .replace(/\s+/g, " ")
    .trim();
}

const KINDS: Record<string, string> = { nvme: "NVMe", ssd: "SSD", hdd: "HDD", network: "net", memory: "RAM" };

export interface DiskUse {
  mount: string;
  /** "NVMe", "HDD"; empty: unknown. */
  kind: string;
  /** 0 to 1, of what people can use; null: unknown. */
  used: number | null;
  usedBytes: number | null;
  totalBytes: number | null;
}

export function diskUse(disk: Disk): DiskUse {
  const [used, available] = [disk.used_bytes ?? null, disk.available_bytes ?? null];
  // As df does it: what is kept for root is neither used nor there for people.
  const share = used === null || available === null || used + available === 0 ? null : used / (used + available);
  return {
    mount: disk.mount ?? "?",
    kind: KINDS[disk.kind ?? ""] ?? disk.kind ?? "",
    used: share,
    usedBytes: used,
    totalBytes: disk.total_bytes ?? null,
  };
}

export interface Address {
  interface: string;
  address: string;
}

/** Of what is up, IPv4 first. */
export function addresses(host: Host): Address[] {
  const all = (host.networks ?? [])
    .filter((network) => network.up !== false)
    .flatMap((network) =>
      (network.addresses ?? []).map((address) => ({ interface: network.interface ?? "?", address })),
    );
  return all.sort((a, b) => Number(a.address.includes(":")) - Number(b.address.includes(":")));
}

/** Models of its cards with how many there are of each: "8× H100 80G"; of those that have told one. */
export function models(view: readonly { model: string | null; parent: string | null }[]): string {
  const counts = new Map<string, number>();
  for (const { model, parent } of view) {
    if (parent === null && model !== null) counts.set(model, (counts.get(model) ?? 0) + 1);
  }
  return [...counts].map(([model, count]) => `${count}× ${model}`).join(", ");
}

/** The full name of its cards, where it is one. */
export function fullModel(view: NodeView | undefined): string | undefined {
  const names = new Set(view?.gpus.filter((gpu) => !gpu.parent_uuid).map((gpu) => gpu.name ?? ""));
  return names.size === 1 ? [...names][0] : undefined;
}

/** A machine's smaller facts in words. */
import type { Host, NodeView } from "../../lib/api/api";
import { UNKNOWN } from "../../lib/format";

/** "100 Gbit/s"; empty: unknown. */
export function linkSpeed(bits: number | null | undefined): string {
  if (!bits) return "";
  return bits >= 1e9 ? `${trimmed(bits / 1e9)} Gbit/s` : `${trimmed(bits / 1e6)} Mbit/s`;
}

/** The node's clock beside the hub's. */
export function clockWords(seconds: number | null | undefined): string {
  if (seconds == null) return UNKNOWN;
  if (Math.abs(seconds) < 0.5) return "as the hub's";
  return `${Math.abs(seconds).toFixed(1)} s ${seconds > 0 ? "ahead of" : "behind"} the hub's`;
}

/** What reads the node: "probe 0.3.0, GPUs by nvml, every 1 s". */
export function probeWords(view: NodeView): string {
  const parts = [
    view.probe_version ? `probe ${view.probe_version}` : "",
    view.gpu_source ? `GPUs by ${view.gpu_source}` : "",
    `every ${trimmed(view.interval_seconds ?? 1)} s`,
  ];
  return parts.filter(Boolean).join(", ");
}

type Port = NonNullable<Host["infiniband"]>[number];

/** Ports that say the same in one row: a node may have eight of them. */
export function portGroups(ports: readonly Port[]): { name: string; port: Port }[] {
  const groups = new Map<string, Port[]>();
  for (const port of ports) {
    const said = JSON.stringify([port.link, port.state, port.speed_bits_per_second, port.errors_total, port.link_downed_total]);
    groups.set(said, [...(groups.get(said) ?? []), port]);
  }
  const name = (port: Port) => `${port.device ?? "?"}:${port.port ?? "?"}`;
  return [...groups.values()].map((alike) => ({
    name: alike.length === 1 ? name(alike[0]) : `${name(alike[0])} to ${name(alike[alike.length - 1])}`,
    port: alike[0],
  }));
}

function trimmed(value: number): string {
  return String(Math.round(value * 10) / 10);
}

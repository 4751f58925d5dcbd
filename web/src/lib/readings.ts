/** What is known of a GPU and since when: why its use is unknown, who can be seen on it, how old its values are. */
import type { GpuView, NodeView } from "./api/api";
import { age } from "./format";

/** Younger values need no words. */
const FEW_SECONDS = 3;
/** Values are read a moment before they are sent. */
const MOMENT_SECONDS = 2;

const FIELD_WORDS: Record<string, string> = {
  memory_used_bytes: "memory",
  utilization_ratio: "utilization",
  sm_active_ratio: "activity",
  processes: "processes",
};

/** Why nobody can say whether a GPU is in use: "Unknown Error from nvmlDeviceGetUtilizationRates". */
export function whyUnknown(gpu: GpuView): string {
  if (gpu.failed_reason) return gpu.failed_reason[0].toUpperCase() + gpu.failed_reason.slice(1);
  const failed = (gpu.failed_fields ?? []).map((field) => FIELD_WORDS[field] ?? field.replaceAll("_", " "));
  return failed.length > 0 ? `Can't read ${failed.join(", ")}` : "The driver reports too little to tell";
}

/** Why nobody can say which processes are on a GPU; null: that is known. */
export function processesUnknown(node: Pick<NodeView, "processes"> | undefined, gpu: GpuView): string | null {
  if (gpu.processes_listed === false) return "This driver lists no processes";
  if (gpu.failed_fields?.includes("processes")) return `Processes unknown: ${whyUnknown(gpu)}`;
  return node !== undefined && node.processes == null ? "Processes unknown" : null;
}

/** The same of all GPUs of a node: "Processes unknown on GPU 2, 3"; null: all are known. */
export function unknownOnNode(node: NodeView, index: (gpu: GpuView) => string): string | null {
  const cards = node.gpus.filter((gpu) => gpu.state !== null || gpu.mig_enabled !== true);
  const unlisted = cards.filter((gpu) => gpu.processes_listed === false);
  if (cards.length > 0 && unlisted.length === cards.length) return "This driver lists no processes";
  if (node.processes == null) return "Processes unknown";
  const unknown = cards.filter((gpu) => processesUnknown(node, gpu) !== null);
  return unknown.length === 0 ? null : `Processes unknown on GPU ${unknown.map(index).join(", ")}`;
}

/**
 * How old values are where that must be said: "6 s". `known` is an age that is shown already, as that of the node's newest data.
 */
export function oldValues(seconds: number | null | undefined, known: number | null | undefined): string | null {
  if (seconds == null || seconds < FEW_SECONDS || seconds - (known ?? 0) < MOMENT_SECONDS) return null;
  return seconds < 9.5 ? `${Math.round(seconds)} s` : age(seconds);
}

const WAITING = /^waiting for the driver/i;

/** What a node's probe waits for: "Waiting for the driver (nvmlDeviceGetPowerUsage, GPU 2), 3 s"; null: nothing. */
export function driverWait(node: Pick<NodeView, "reports"> | undefined): string | null {
  return node?.reports?.find((report) => WAITING.test(report.message ?? ""))?.message ?? null;
}

/** What could not be read, without what is only waited for. */
export function lastingReports(node: Pick<NodeView, "reports">): NonNullable<NodeView["reports"]> {
  return (node.reports ?? []).filter((report) => !WAITING.test(report.message ?? ""));
}

/** "Same machine as gpu01, counted once"; null: it has one name. */
export function sameMachine(node: Pick<NodeView, "same_machine_as"> | undefined): string | null {
  return node?.same_machine_as ? `Same machine as ${node.same_machine_as}, counted once` : null;
}

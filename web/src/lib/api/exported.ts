/** Answers requests from exported data, so that pages need not know whether there is a hub. */
import type { ExportData } from "../hub";
import type { GpuView } from "./api";
import { ApiError } from "./error";

export type Query = Record<string, string | number | boolean | null | undefined>;

export function answer(data: ExportData, path: string, query: Query): unknown {
  const [resource, name, part] = path.replace(/^\/?api\/v1\//, "").split("/").map(decodeURIComponent);
  if (resource === "nodes" && name !== undefined) {
    const node = data.nodes.find((one) => one.name === name);
    if (node === undefined) throw new ApiError(404, "unknown_node", `there is no node "${name}"`);
    return part === "log" ? whole(data.logs?.[name] ?? []) : node;
  }
  if (resource === "nodes") return whole(data.nodes.filter((node) => !query.state || node.state === query.state));
  if (resource === "gpus") {
    const gpus = data.nodes.flatMap((node) => node.gpus);
    if (name === undefined) return whole(sorted(gpus.filter((gpu) => isAskedFor(gpu, query)), query.sort));
    const id = path.slice(path.indexOf("gpus/") + 5).split("/").map(decodeURIComponent).join("/");
    const gpu = gpus.find((one) => one.id === id);
    if (gpu === undefined) throw new ApiError(404, "unknown_gpu", `there is no GPU "${id}"`);
    return gpu;
  }
  if (resource === "users") {
    const part = String(query.q ?? "").toLowerCase();
    return { ...whole(data.people.filter((one) => one.person.toLowerCase().includes(part))), others: data.others };
  }
  if (resource === "history" && data.history) {
    const nodes = new Set(String(query.node ?? query.nodes ?? "").split(query.node ? "\n" : ","));
    return { ...data.history, node: query.node ?? null, gpus: data.history.gpus.filter((gpu) => nodes.has(gpu.node)) };
  }
  if (resource === "summary") return data.summary;
  if (resource === "hub") return { title: data.title, version: "", generation: 0, notices: [] };
  throw new ApiError(404, "not_exported", "an exported page does not have this");
}

function whole<T>(items: T[]): { items: T[]; total: number; next: null } {
  return { items, total: items.length, next: null };
}

/** Of the filter language what the page's own panels ask for: a state, none of this state, flags. */
function isAskedFor(gpu: GpuView, { state, q }: Query): boolean {
  if (state && (gpu.state !== state || gpu.counted === false)) return false;
  return String(q ?? "").split(" ").every((word) => {
    if (word === `-${gpu.state}`) return false;
    const flags = word.startsWith("flag:") ? word.slice("flag:".length).split(",") : null;
    return flags === null || (gpu.flags ?? []).some((flag) => flags.includes(flag));
  });
}

const FIGURES: Record<string, (gpu: GpuView) => number | null | undefined> = {
  "-temperature": (gpu) => gpu.temperature_celsius,
  "-idle": (gpu) => gpu.idle_seconds,
};

function sorted(gpus: GpuView[], sort: Query[string]): GpuView[] {
  const figure = FIGURES[String(sort ?? "")];
  return figure === undefined ? gpus : gpus.sort((a, b) => (figure(b) ?? -Infinity) - (figure(a) ?? -Infinity));
}

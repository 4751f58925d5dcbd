/** Answers requests from exported data, so that pages need not know whether there is a hub. */
import type { ExportData } from "../hub";
import { ApiError } from "./error";

export type Query = Record<string, string | number | boolean | null | undefined>;

export function answer(data: ExportData, path: string, query: Query): unknown {
  const [resource, name, part] = path.replace(/^\/?api\/v1\//, "").split("/").map(decodeURIComponent);
  if (resource === "nodes" && name !== undefined && part === undefined) {
    const node = data.nodes.find((one) => one.name === name);
    if (node === undefined) throw new ApiError(404, "unknown_node", `there is no node "${name}"`);
    return node;
  }
  if (resource === "nodes" && name === undefined) return whole(data.nodes);
  if (resource === "gpus") {
    const gpus = data.nodes.flatMap((node) => node.gpus);
    if (name === undefined) return whole(gpus);
    const id = path.slice(path.indexOf("gpus/") + 5).split("/").map(decodeURIComponent).join("/");
    const gpu = gpus.find((one) => one.id === id);
    if (gpu === undefined) throw new ApiError(404, "unknown_gpu", `there is no GPU "${id}"`);
    return gpu;
  }
  if (resource === "users") {
    const part = String(query.q ?? "").toLowerCase();
    return whole(data.people.filter((one) => one.person.toLowerCase().includes(part)));
  }
  if (resource === "summary") return data.summary;
  if (resource === "hub") return { title: data.title, version: "", generation: 0, notices: [] };
  throw new ApiError(404, "not_exported", "an exported page does not have this");
}

function whole<T>(items: T[]): { items: T[]; total: number; next: null } {
  return { items, total: items.length, next: null };
}

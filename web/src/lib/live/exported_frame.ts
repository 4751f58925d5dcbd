/** Makes a frame of exported nodes, so that an exported page draws as a live one does. */
import type { GpuView } from "../api/api";
import type { ExportData } from "../hub";
import { GPU_STATES, NODE_STATES, NOT_COUNTED } from "../state";
import { type Frame, type Layout, UNKNOWN_BYTE, UNKNOWN_WORD, arrange } from "./frame";

export function exportedFrame(data: ExportData): Frame {
  const models: string[] = [];
  const people = [""];
  const numberOf = (list: string[], name: string) => {
    const at = list.indexOf(name);
    return at >= 0 ? at : list.push(name) - 1;
  };
  const layout: Layout = {
    models,
    nodes: data.nodes.map((node) => ({
      name: node.name,
      display_name: node.display_name,
      group: node.group ?? null,
      rack: node.rack ?? null,
      gpus: node.gpus.map((gpu) => [
        gpu.id,
        gpu.index ?? null,
        gpu.model ? numberOf(models, gpu.model) : null,
        gpu.memory_total_bytes ?? null,
        gpu.power_limit_watts ?? null,
        gpu.parent_uuid ?? null,
      ]),
    })),
  };
  const gpus = data.nodes.flatMap((node) => node.gpus);
  const planes = new Uint8Array(gpus.length * 8 + data.nodes.length);
  const frame = arrange({ generation: 0, time: data.made, summary: data.summary }, people, layout, planes);
  gpus.forEach((gpu, slot) => {
    frame.state[slot] = gpu.state === null ? NOT_COUNTED : GPU_STATES.indexOf(gpu.state);
    frame.utilization[slot] = byte(gpu.utilization_ratio, 200);
    frame.memory[slot] = byte(memoryRatio(gpu), 200);
    frame.temperature[slot] = byte(gpu.temperature_celsius, 1);
    frame.power[slot] = gpu.power_watts == null ? UNKNOWN_WORD : Math.min(UNKNOWN_WORD - 1, gpu.power_watts);
    frame.person[slot] = numberOf(people, holder(gpu));
  });
  data.nodes.forEach((node, place) => (frame.nodeState[place] = NODE_STATES.indexOf(node.state)));
  return frame;
}

function byte(value: number | null | undefined, times: number): number {
  return value == null ? UNKNOWN_BYTE : Math.max(0, Math.min(UNKNOWN_BYTE - 1, value * times));
}

function memoryRatio(gpu: GpuView): number | null {
  return gpu.memory_used_bytes == null || !gpu.memory_total_bytes ? null : gpu.memory_used_bytes / gpu.memory_total_bytes;
}

/** Who has most memory on it. */
function holder(gpu: GpuView): string {
  const people = [...(gpu.people ?? [])].sort((a, b) => (b.memory_bytes ?? 0) - (a.memory_bytes ?? 0));
  return people[0]?.person ?? "";
}

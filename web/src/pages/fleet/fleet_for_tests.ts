/** A small fleet for tests, made the way frames are. */
import type { Summary } from "../../lib/api/api";
import type { FleetNode } from "../../lib/fleet.svelte";
import { type Frame, type LayoutGpu, type LayoutNode, arrange } from "../../lib/live/frame";
import { GPU_STATES, type GpuState, NOT_COUNTED } from "../../lib/state";

export interface TestGpu {
  state: GpuState | "split";
  model?: number | null;
  memory?: number;
  person?: number;
  temperature?: number;
  parent?: string;
  id?: string;
}

const SUMMARY: Summary = {
  nodes: 0, nodes_up: 0, gpus: 0, states: {},
  memory_total_bytes: 0, memory_total_known_gpus: 0, memory_free_bytes: 0, memory_free_known_gpus: 0,
  power_watts: 0, power_known_gpus: 0, same_machine_nodes: 0,
};

export function testFleet(
  nodes: Record<string, TestGpu[]>,
  models: string[] = ["H100 80G", "A100 40G", "A100 40G 3g.20gb"],
  people: string[] = [""],
  described: Partial<LayoutNode> = {},
): { frame: Frame; nodes: FleetNode[] } {
  const layout = {
    models,
    nodes: Object.entries(nodes).map(([name, gpus]) => ({
      name,
      display_name: name,
      group: null,
      rack: null,
      ...described,
      gpus: gpus.map(
        (gpu, at): LayoutGpu => [
          gpu.id ?? `GPU-${name}-${at}`,
          at,
          gpu.model === undefined ? 0 : gpu.model,
          gpu.memory ?? 80e9,
          700,
          gpu.parent ?? null,
        ],
      ),
    })),
  };
  const all = Object.values(nodes).flat();
  const frame = arrange({ generation: 1, time: 1000, summary: SUMMARY }, people, layout, new Uint8Array(all.length * 8 + layout.nodes.length));
  all.forEach((gpu, slot) => {
    frame.state[slot] = gpu.state === "split" ? NOT_COUNTED : GPU_STATES.indexOf(gpu.state);
    frame.person[slot] = gpu.person ?? 0;
    frame.temperature[slot] = gpu.temperature ?? 255;
  });
  let first = 0;
  const made = layout.nodes.map((node, place) => {
    const one = { name: node.name, displayName: node.name, group: node.group, rack: node.rack, described: node, place, first, count: node.gpus.length };
    first += node.gpus.length;
    // What these modules read of a node; its live state comes from the page's one stream.
    return one as unknown as FleetNode;
  });
  return { frame, nodes: made };
}

import { expect, test } from "vitest";
import type { GpuView } from "../api/api";
import type { ExportData } from "../hub";
import { GPU_STATES, NOT_COUNTED } from "../state";
import { exportedFrame } from "./exported_frame";

const gpu = (view: Partial<GpuView>): GpuView => ({ node: "n1", id: "A", state: "free", ...view });

test("an exported page draws from a frame as a live one does", () => {
  const data: ExportData = {
    title: "gpulse",
    made: 1000,
    summary: {
      nodes: 1, nodes_up: 1, gpus: 2, states: {},
      memory_total_bytes: 0, memory_total_known_gpus: 0, memory_free_bytes: 0, memory_free_known_gpus: 0,
      power_watts: 0, power_known_gpus: 0, same_machine_nodes: 0,
    },
    people: [],
    nodes: [
      {
        name: "n1",
        display_name: "One",
        state: "up",
        reason: "",
        age_seconds: 1,
        gpus: [
          gpu({ state: "busy", model: "H100 80G", utilization_ratio: 0.5, memory_used_bytes: 20, memory_total_bytes: 80 }),
          gpu({ id: "B", state: null, counted: false, power_watts: 99_999, people: [{ person: "a", memory_bytes: 1 }, { person: "b", memory_bytes: 2 }] }),
          gpu({ id: "C", state: "unknown", failed_fields: ["utilization_ratio"] }),
        ],
      },
    ],
  };
  const frame = exportedFrame(data);
  expect([...frame.state]).toEqual([GPU_STATES.indexOf("busy"), NOT_COUNTED, GPU_STATES.indexOf("unknown")]);
  expect([...frame.utilization]).toEqual([100, 255, 255]);
  expect([...frame.memory]).toEqual([50, 255, 255]);
  expect([...frame.power]).toEqual([65535, 65534, 65535]);
  expect([...frame.person].map((number) => frame.people[number])).toEqual(["", "b", ""]);
  expect([...frame.nodeState]).toEqual([1]);
  expect(frame.layout.nodes[0].gpus[0]).toEqual(["A", null, 0, 80, null, null]);
});

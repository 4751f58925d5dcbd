import { expect, test } from "vitest";
import { type Frame, type LayoutGpu, arrange } from "../../../lib/live/frame";
import { GPU_STATES, NOT_COUNTED } from "../../../lib/state";
import { gpuKeys, nodeKeys } from "./keys";
import { nodeFigures } from "./node_figures";
import { UNKNOWN_KEY } from "./order";

const GIB = 2 ** 30;
const [BUSY, FREE] = [GPU_STATES.indexOf("busy"), GPU_STATES.indexOf("free")];
// A split card with its two instances, then a card; then a node that has told nothing yet.
const GPUS: LayoutGpu[] = [
  ["GPU-a", 0, 1, 40 * GIB, 400, null],
  ["MIG-a1", 0, 0, 20 * GIB, null, "GPU-a"],
  ["MIG-a2", 0, 0, 20 * GIB, null, "GPU-a"],
  ["GPU-b", 1, 1, 80 * GIB, 400, null],
];

function frameOf(): Frame {
  const node = { group: null, rack: null };
  const layout = {
    models: ["A100 40G 3g.20gb", "A100 40G"],
    nodes: [
      { ...node, name: "n1", display_name: "n1", gpus: GPUS },
      { ...node, name: "n2", display_name: "n2", gpus: [] },
    ],
  };
  const head = { generation: 1, time: 0, summary: {} as Frame["summary"] };
  const frame = arrange(head, ["", "zoe", "adam"], layout, new Uint8Array(4 * 8 + 2));
  frame.state.set([NOT_COUNTED, FREE, BUSY, BUSY]);
  frame.utilization.set([100, 255, 255, 200]);
  frame.memory.set([100, 0, 200, 50]);
  frame.temperature.set([60, 255, 255, 71]);
  frame.power.set([200, 65535, 65535, 350]);
  frame.person.set([0, 0, 1, 2]);
  return frame;
}

test("GPUs have keys that sort as people read", () => {
  const frame = frameOf();
  const keys = (column: Parameters<typeof gpuKeys>[1]) => [...gpuKeys(frame, column)];
  expect(keys("state")).toEqual([UNKNOWN_KEY, 0, 1, 1]);
  expect(keys("utilization")).toEqual([100, UNKNOWN_KEY, UNKNOWN_KEY, 200]);
  expect(keys("memory")).toEqual([20 * 1024, 0, 20 * 1024, 20 * 1024]);
  expect(keys("power")).toEqual([200, UNKNOWN_KEY, UNKNOWN_KEY, 350]);
  expect(keys("person")).toEqual([UNKNOWN_KEY, UNKNOWN_KEY, 1, 0]);
  expect(keys("model")).toEqual([0, 1, 1, 0]);
  expect(keys("gpu")).toEqual([0, 0, 0, 1]);
  expect(keys("node")).toEqual([0, 1, 2, 3]);
});

test("a node sums up its cards, and counts what can be had", () => {
  const figures = nodeFigures(frameOf());
  expect([...figures.gpus]).toEqual([3, 0]);
  expect([...figures.free]).toEqual([1, 0]);
  expect(figures.utilization[0]).toBe(0.75);
  expect(figures.memoryUsed[0]).toBe(40 * GIB);
  expect(figures.memoryTotal[0]).toBe(120 * GIB);
  expect(figures.temperature[0]).toBe(71);
  expect(figures.power[0]).toBe(550);
  expect([figures.memoryMissing[0], figures.powerMissing[0]]).toEqual([0, 0]);
  for (const plane of [figures.utilization, figures.memoryUsed, figures.power]) expect(plane[1]).toBeNaN();
});

test("a sum over GPUs of which some are unknown says of how many", () => {
  const frame = frameOf();
  frame.state[3] = GPU_STATES.indexOf("unknown");
  frame.memory[3] = 255;
  frame.power[3] = 65535;
  const figures = nodeFigures(frame);
  expect([figures.memoryUsed[0], figures.memoryMissing[0]]).toEqual([20 * GIB, 1]);
  expect([figures.power[0], figures.powerMissing[0]]).toEqual([200, 1]);
});

test("nodes have keys, and what is unknown comes last", () => {
  const frame = frameOf();
  const keys = (column: Parameters<typeof nodeKeys>[2]) => [...nodeKeys(frame, nodeFigures(frame), column)];
  expect(keys("power")).toEqual([550, UNKNOWN_KEY]);
  expect(keys("person")).toEqual([1, UNKNOWN_KEY]);
  expect(keys("state")).toEqual([1, 0]);
  expect(keys("node")).toEqual([0, 1]);
});

import { expect, test } from "vitest";
import type { GpuView, NodeView } from "./api/api";
import { driverWait, lastingReports, oldValues, processesUnknown, sameMachine, unknownOnNode, whyUnknown } from "./readings";

const gpu = (view: Partial<GpuView> = {}): GpuView => ({ node: "n1", id: "A", index: 0, state: "free", ...view });
const node = (view: Partial<NodeView> = {}): NodeView => ({
  name: "n1", display_name: "n1", state: "up", reason: "", age_seconds: 0.5, gpus: [gpu()], processes: [], ...view,
});

test("why a GPU is unknown: the driver's words first, then what failed", () => {
  expect(whyUnknown(gpu({ failed_reason: "waiting for the driver (nvmlDeviceGetPowerUsage), 12 s" }))).toBe("Waiting for the driver (nvmlDeviceGetPowerUsage), 12 s");
  expect(whyUnknown(gpu({ failed_fields: ["memory_used_bytes", "processes"] }))).toBe("Can't read memory, processes");
  expect(whyUnknown(gpu())).toBe("The driver reports too little to tell");
});

test("no processes, processes nobody could read, and a driver that never lists them are three things", () => {
  expect(processesUnknown(node(), gpu())).toBeNull();
  expect(processesUnknown(node({ processes: null }), gpu())).toBe("Processes unknown");
  expect(processesUnknown(node(), gpu({ failed_fields: ["processes"], failed_reason: "Unknown Error" }))).toBe("Processes unknown: Unknown Error");
  expect(processesUnknown(node(), gpu({ failed_fields: ["power_watts"] }))).toBeNull();
  expect(processesUnknown(node({ processes: null }), gpu({ processes_listed: false }))).toBe("This driver lists no processes");
});

test("a node names the GPUs whose processes are unknown", () => {
  const index = (one: GpuView) => String(one.index);
  const failed = gpu({ index: 2, failed_fields: ["processes"] });
  expect(unknownOnNode(node(), index)).toBeNull();
  expect(unknownOnNode(node({ gpus: [gpu(), failed] }), index)).toBe("Processes unknown on GPU 2");
  expect(unknownOnNode(node({ processes: null }), index)).toBe("Processes unknown");
  expect(unknownOnNode(node({ processes: null, gpus: [gpu({ processes_listed: false })] }), index)).toBe("This driver lists no processes");
});

test("values older than the data they came with say so, those of a slow node don't", () => {
  expect(oldValues(6.2, 0.4)).toBe("6 s");
  expect(oldValues(90, 0.4)).toBe("90 s");
  expect(oldValues(1.9, 0.1)).toBeNull();
  expect(oldValues(9.5, 9.4)).toBeNull();
  expect(oldValues(null, 1)).toBeNull();
});

test("a wait for the driver is told apart from what could not be read", () => {
  const wait = { collector: "nvml", message: "Waiting for the driver (nvmlDeviceGetPowerUsage, GPU 2), 3 s" };
  const broken = { collector: "disks", message: "/scratch does not answer" };
  expect(driverWait(node({ reports: [broken, wait] }))).toBe(wait.message);
  expect(lastingReports(node({ reports: [broken, wait] }))).toEqual([broken]);
  expect(driverWait(node({ reports: [broken] }))).toBeNull();
  expect(driverWait(undefined)).toBeNull();
});

test("a machine under two names", () => {
  expect(sameMachine(node({ same_machine_as: "gpu01" }))).toBe("Same machine as gpu01, counted once");
  expect(sameMachine(node())).toBeNull();
});

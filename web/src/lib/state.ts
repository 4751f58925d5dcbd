/** The states of GPUs and nodes: exactly one each, so that the numbers add up. */

/** In the order of the live frames, which is their precedence. */
export const GPU_STATES = ["down", "stale", "unhealthy", "unknown", "busy", "idle", "reserved", "free"] as const;
export type GpuState = (typeof GPU_STATES)[number];

export const NODE_STATES = ["new", "up", "stale", "down"] as const;
export type NodeState = (typeof NODE_STATES)[number];

/** The state number of a card that is split into MIG instances: they are counted, it is not. */
export const NOT_COUNTED = GPU_STATES.length;

/** As people look for them: what they can have first, what is broken last. */
export const SHOWN_STATES: readonly GpuState[] = ["free", "busy", "reserved", "idle", "unhealthy", "unknown", "stale", "down"];

export const STATE_LABELS: Record<GpuState, string> = {
  free: "Free",
  busy: "Busy",
  reserved: "Reserved",
  idle: "Idle but held",
  unhealthy: "Unhealthy",
  unknown: "Unknown",
  stale: "Stale",
  down: "Down",
};

export const STATE_MEANINGS: Record<GpuState, string> = {
  free: "nobody holds it and nobody has booked it",
  busy: "it works for somebody",
  reserved: "booked, and nobody is on it",
  idle: "somebody holds its memory, and it does nothing",
  unhealthy: "it reports errors, or it is too hot",
  unknown: "the driver can't say whether it is in use",
  stale: "its node has been silent for some seconds",
  down: "its node cannot be reached",
};

export const NODE_STATE_LABELS: Record<NodeState, string> = {
  new: "New",
  up: "Up",
  stale: "Stale",
  down: "Down",
};

/** What the flags of a GPU mean, in two words; the first five make it unhealthy. */
export const FLAG_LABELS: Record<string, string> = {
  fault: "Does not answer",
  rows_failed: "Row remap failed",
  ecc_uncorrected: "ECC errors",
  xid: "XID error",
  fabric_failed: "Fabric failed",
  xid_program: "Program error",
  hot: "Hot",
  throttled: "Throttled",
  rows_pending: "Row remap pending",
  pages_pending: "Page retirement pending",
  nvlink_down: "NVLink down",
  fabric: "Fabric fault",
  prohibited: "Compute prohibited",
  vanished: "Process vanished",
};

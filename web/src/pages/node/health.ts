/** A card's health in words: "–" where it has told nothing. */
import type { GpuView } from "../../lib/api/api";
import { UNKNOWN, celsius, count } from "../../lib/format";

const THROTTLES: Record<string, string> = {
  gpu_idle: "nothing to do",
  applications_clocks_setting: "clocks set by hand",
  sw_power_cap: "at its power limit",
  hw_slowdown: "slowed down by the hardware",
  sync_boost: "kept at the pace of its group",
  sw_thermal_slowdown: "hot: slowed down by the driver",
  hw_thermal_slowdown: "hot: slowed down by the hardware",
  hw_power_brake_slowdown: "slowed down by the power supply",
  display_clock_setting: "clocks set for a display",
  board_limit: "at a limit of its board",
  reliability: "at its voltage limit",
};

/** These cost speed that somebody wanted; the others are how a card should behave. */
const SLOWED = new Set(["hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown"]);

/** Something told, and whether somebody should look at it. */
export interface Told {
  words: string;
  bad: boolean;
}

const fine = (words: string): Told => ({ words, bad: false });

export function throttling(gpu: GpuView): Told {
  const reasons = gpu.throttle_reasons;
  if (reasons == null) return fine(UNKNOWN);
  const words = reasons.map((reason) => THROTTLES[reason] ?? reason.replaceAll("_", " ")).join(", ");
  return { words: words || "at full clocks", bad: reasons.some((reason) => SLOWED.has(reason)) };
}

export function ecc(gpu: GpuView): Told {
  if (gpu.ecc_enabled === false) return fine("off");
  const now = gpu.ecc_uncorrected_volatile_total;
  const life = gpu.ecc_uncorrected_aggregate_total;
  if (now == null && life == null) return fine(gpu.ecc_enabled ? "on" : UNKNOWN);
  return { words: `${count(now)} uncorrected, ${count(gpu.ecc_corrected_volatile_total)} corrected`, bad: (now ?? 0) > 0 };
}

/** The same over the card's whole life. */
export function eccLife(gpu: GpuView): Told {
  const uncorrected = gpu.ecc_uncorrected_aggregate_total;
  if (uncorrected == null) return fine(UNKNOWN);
  return fine(`${count(uncorrected)} uncorrected, ${count(gpu.ecc_corrected_aggregate_total)} corrected`);
}

/** Memory that was replaced: rows since Ampere, pages before. */
export function replaced(gpu: GpuView): Told {
  const rows = sum(gpu.remapped_rows_corrected_total, gpu.remapped_rows_uncorrected_total);
  if (rows !== null) {
    const after = [gpu.remapped_rows_failed ? "failed" : "", gpu.remapped_rows_pending ? "reset needed" : ""];
    return { words: [many(rows, "row"), ...after.filter(Boolean)].join(", "), bad: after.some(Boolean) };
  }
  const pages = sum(gpu.retired_pages_corrected_total, gpu.retired_pages_uncorrected_total);
  if (pages === null) return fine(UNKNOWN);
  const pending = gpu.retired_pages_pending === true;
  return { words: many(pages, "page") + (pending ? ", reset needed" : ""), bad: pending };
}

/** An idle card lowers the generation by itself; lost lanes are a fault. */
export function pcie(gpu: GpuView): Told {
  const { pcie_generation: generation, pcie_width: width, pcie_generation_max: best, pcie_width_max: widest } = gpu;
  if (generation == null && width == null) return fine(UNKNOWN);
  const lost = width != null && widest != null && width < widest;
  const speed = generation == null ? "" : best != null && generation < best ? `gen ${generation} of ${best}` : `gen ${generation}`;
  const lanes = width == null ? "" : lost ? `×${width} of ×${widest}` : `×${width}`;
  return { words: [speed, lanes].filter(Boolean).join(" "), bad: lost };
}

export function nvlink(gpu: GpuView): Told {
  if (gpu.nvlink_links == null) return fine(UNKNOWN);
  if (gpu.nvlink_links === 0) return fine("none");
  const active = gpu.nvlink_links_active;
  return { words: `${count(active)} of ${gpu.nvlink_links} up`, bad: active != null && active < gpu.nvlink_links };
}

const FABRIC_FAULTS: Record<string, string> = {
  degraded_bandwidth: "reduced bandwidth",
  route_recovery: "routes are being repaired",
  route_unhealthy: "routes broken",
  access_timeout_recovery: "recovering from an access timeout",
  incorrect_configuration: "wrong configuration",
};
const FABRIC_WELL = new Set(["", "success", "n/a"]);

/** The NVSwitch fabric: whether the card has joined it, and what is wrong with it. */
export function fabric(gpu: GpuView): Told {
  const { fabric_state: state, fabric_status: status, fabric_faults: faults } = gpu;
  if (state == null && status == null && faults == null) return fine(UNKNOWN);
  const joined = state === "completed" ? "joined" : state?.replaceAll("_", " ");
  const failed = status != null && !FABRIC_WELL.has(status.trim().toLowerCase()) ? status : null;
  const wrong = (faults ?? []).map((fault) => FABRIC_FAULTS[fault] ?? fault.replaceAll("_", " "));
  const words = [failed === null ? joined : `failed: ${failed}`, ...wrong].filter(Boolean).join(", ");
  return { words: words || "well", bad: failed !== null || wrong.length > 0 };
}

/** How much cooler it is than where it slows itself down. */
export function heat(gpu: GpuView): Told {
  const now = gpu.temperature_celsius;
  const limit = gpu.temperature_slowdown_celsius;
  if (now == null) return fine(UNKNOWN);
  return { words: limit ? `${now} of ${celsius(limit)}` : celsius(now), bad: (gpu.flags ?? []).includes("hot") };
}

export interface XidLine {
  gpu: GpuView;
  time: number | null;
  xid: number;
}

/** Of all cards, the newest first. */
export function xidLines(gpus: readonly GpuView[]): XidLine[] {
  return gpus
    .flatMap((gpu) =>
      (gpu.xid_events ?? []).flatMap((event) => (event.xid == null ? [] : [{ gpu, time: event.time ?? null, xid: event.xid }])),
    )
    .sort((a, b) => (b.time ?? 0) - (a.time ?? 0));
}

function sum(a: number | null | undefined, b: number | null | undefined): number | null {
  return a == null && b == null ? null : (a ?? 0) + (b ?? 0);
}

function many(number: number, thing: string): string {
  return number === 0 ? "none" : `${count(number)} ${thing}${number === 1 ? "" : "s"}`;
}

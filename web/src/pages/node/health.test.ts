import { describe, expect, it } from "vitest";
import type { GpuView } from "../../lib/api/api";
import { ecc, fabric, heat, nvlink, pcie, replaced, throttling, xidLines } from "./health";
import { isHardware, xidMeaning } from "./xid";

const gpu = (told: Partial<GpuView>): GpuView => ({ node: "gpu07", id: "a", state: "busy", ...told }) as GpuView;

describe("health in words", () => {
  it("says – of a card that has told nothing", () => {
    for (const about of [throttling, ecc, replaced, pcie, nvlink, fabric, heat]) {
      expect(about(gpu({}))).toEqual({ words: "–", bad: false });
    }
  });

  it("tells what slows a card down, and whether it should not", () => {
    expect(throttling(gpu({ throttle_reasons: [] }))).toEqual({ words: "at full clocks", bad: false });
    expect(throttling(gpu({ throttle_reasons: ["gpu_idle"] }))).toEqual({ words: "nothing to do", bad: false });
    expect(throttling(gpu({ throttle_reasons: ["sw_power_cap", "hw_thermal_slowdown"] }))).toEqual({
      words: "at its power limit, hot: slowed down by the hardware",
      bad: true,
    });
    expect(throttling(gpu({ throttle_reasons: ["some_new_reason"] })).words).toBe("some new reason");
  });

  it("tells of the fabric, and what is wrong with it", () => {
    expect(fabric(gpu({ fabric_state: "completed", fabric_status: "Success", fabric_faults: [] }))).toEqual({ words: "joined", bad: false });
    expect(fabric(gpu({ fabric_state: "completed", fabric_faults: ["route_unhealthy", "new_fault"] }))).toEqual({ words: "joined, routes broken, new fault", bad: true });
    expect(fabric(gpu({ fabric_state: "completed", fabric_status: "Insufficient Resources" }))).toEqual({ words: "failed: Insufficient Resources", bad: true });
    expect(fabric(gpu({ fabric_state: "in_progress" }))).toEqual({ words: "in progress", bad: false });
    expect(fabric(gpu({ fabric_faults: [] }))).toEqual({ words: "well", bad: false });
  });

  it("tells of memory errors", () => {
    expect(ecc(gpu({ ecc_enabled: false }))).toEqual({ words: "off", bad: false });
    const told = { ecc_enabled: true, ecc_uncorrected_volatile_total: 2, ecc_corrected_volatile_total: 1214 };
    expect(ecc(gpu(told))).toEqual({ words: "2 uncorrected, 1,214 corrected", bad: true });
  });

  it("tells of memory that was replaced, rows or pages", () => {
    expect(replaced(gpu({ remapped_rows_corrected_total: 0, remapped_rows_uncorrected_total: 0 })).words).toBe("none");
    expect(replaced(gpu({ remapped_rows_uncorrected_total: 1, remapped_rows_pending: true }))).toEqual({
      words: "1 row, reset needed",
      bad: true,
    });
    expect(replaced(gpu({ retired_pages_corrected_total: 3 })).words).toBe("3 pages");
  });

  it("takes a lower PCIe generation as saving, lost lanes as a fault", () => {
    const full = { pcie_generation: 4, pcie_generation_max: 4, pcie_width: 16, pcie_width_max: 16 };
    expect(pcie(gpu(full))).toEqual({ words: "gen 4 ×16", bad: false });
    expect(pcie(gpu({ ...full, pcie_generation: 1 }))).toEqual({ words: "gen 1 of 4 ×16", bad: false });
    expect(pcie(gpu({ ...full, pcie_width: 8 }))).toEqual({ words: "gen 4 ×8 of ×16", bad: true });
  });

  it("tells of NVLink", () => {
    expect(nvlink(gpu({ nvlink_links: 12, nvlink_links_active: 12 }))).toEqual({ words: "12 of 12 up", bad: false });
    expect(nvlink(gpu({ nvlink_links: 12, nvlink_links_active: 11 }))).toEqual({ words: "11 of 12 up", bad: true });
    expect(nvlink(gpu({ nvlink_links: 0 })).words).toBe("none");
  });

  it("lists errors of the driver, the newest first, with their meaning", () => {
    const cards = [gpu({ xid_events: [{ time: 10, xid: 48 }] }), gpu({ id: "b", xid_events: [{ time: 20, xid: 94 }, { time: 5 }] })];
    expect(xidLines(cards).map((line) => [line.gpu.id, line.xid])).toEqual([["b", 94], ["a", 48]]);
    expect(isHardware(48)).toBe(true);
    expect(isHardware(94)).toBe(false);
    expect(xidMeaning(79)).toContain("off the bus");
    expect(xidMeaning(145)).toContain("NVLink");
    expect(xidMeaning(9999)).toContain("NVIDIA");
  });
});

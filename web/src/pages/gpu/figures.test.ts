import { expect, it } from "vitest";
import type { GpuView } from "../../lib/api/api";
import { furtherFigures } from "./figures";

it("lists only what a card has told", () => {
  expect(furtherFigures({} as GpuView)).toEqual([]);
  const told = { clock_sm_hertz: 1.41e9, clock_sm_max_hertz: 1.98e9, fan_ratio: 0.3, energy_joules_total: 7.2e6 } as GpuView;
  expect(furtherFigures(told).map(({ words, value }) => [words, value])).toEqual([
    ["Fan", "30 %"],
    ["SM clock", "1,410 / 1,980 MHz"],
    ["Energy", "2.0 kWh"],
  ]);
});

it("tells both ways of a link", () => {
  const told = { pcie_received_rate_bytes_per_second: 2 ** 30, pcie_sent_rate_bytes_per_second: 0 } as GpuView;
  expect(furtherFigures(told)[0].value).toBe("1.0 GiB/s in, 0 B/s out");
});

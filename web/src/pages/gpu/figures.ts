/** The figures a card tells besides those everybody looks at; only what it has told. */
import type { GpuView } from "../../lib/api/api";
import { megahertz, percent, rate } from "../../lib/format";

export interface Figure {
  words: string;
  value: string;
  title?: string;
}

export function furtherFigures(gpu: GpuView): Figure[] {
  const share = (words: string, ratio: number | null | undefined, title?: string) =>
    ratio == null ? [] : [{ words, value: percent(ratio), title }];
  const clock = (words: string, now: number | null | undefined, most: number | null | undefined) =>
    now == null ? [] : [{ words, value: most ? `${megahertz(now).replace(" MHz", "")} / ${megahertz(most)}` : megahertz(now) }];
  const flow = (words: string, a: number | null | undefined, b: number | null | undefined) =>
    a == null && b == null ? [] : [{ words, value: `${rate(a)} in, ${rate(b)} out` }];
  return [
    ...share("Memory bus", gpu.memory_utilization_ratio, "Share of the time in which memory was read or written"),
    ...share("SM active", gpu.sm_active_ratio, "Share of the multiprocessors at work"),
    ...share("SM occupancy", gpu.sm_occupancy_ratio),
    ...share("Tensor cores", gpu.tensor_active_ratio),
    ...share("DRAM active", gpu.dram_active_ratio),
    ...share("FP64", gpu.fp64_active_ratio),
    ...share("FP32", gpu.fp32_active_ratio),
    ...share("FP16", gpu.fp16_active_ratio),
    ...share("Encoder", gpu.encoder_utilization_ratio),
    ...share("Decoder", gpu.decoder_utilization_ratio),
    ...share("Fan", gpu.fan_ratio),
    ...clock("SM clock", gpu.clock_sm_hertz, gpu.clock_sm_max_hertz),
    ...clock("Graphics clock", gpu.clock_graphics_hertz, gpu.clock_graphics_max_hertz),
    ...clock("Memory clock", gpu.clock_memory_hertz, gpu.clock_memory_max_hertz),
    ...clock("Video clock", gpu.clock_video_hertz, gpu.clock_video_max_hertz),
    ...flow("PCIe", gpu.pcie_received_rate_bytes_per_second ?? gpu.pcie_received_bytes_per_second, gpu.pcie_sent_rate_bytes_per_second ?? gpu.pcie_sent_bytes_per_second),
    ...flow("NVLink", gpu.nvlink_received_rate_bytes_per_second, gpu.nvlink_sent_rate_bytes_per_second),
    ...(gpu.performance_state ? [{ words: "Performance state", value: gpu.performance_state, title: "P0 is the fastest" }] : []),
    ...(gpu.energy_joules_total == null
      ? []
      : [{ words: "Energy", value: `${(gpu.energy_joules_total / 3.6e6).toFixed(1)} kWh`, title: "Since the driver was loaded" }]),
  ];
}

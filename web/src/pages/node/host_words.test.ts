import { describe, expect, it } from "vitest";
import type { NodeView } from "../../lib/api/api";
import { clockWords, linkSpeed, portGroups, probeWords } from "./host_words";

describe("a machine in words", () => {
  it("writes the speed of a link", () => {
    expect(linkSpeed(100e9)).toBe("100 Gbit/s");
    expect(linkSpeed(2.5e9)).toBe("2.5 Gbit/s");
    expect(linkSpeed(100e6)).toBe("100 Mbit/s");
    expect(linkSpeed(null)).toBe("");
  });

  it("compares clocks", () => {
    expect(clockWords(null)).toBe("–");
    expect(clockWords(-0.1)).toBe("as the hub's");
    expect(clockWords(3.24)).toBe("3.2 s ahead of the hub's");
    expect(clockWords(-61)).toBe("61.0 s behind the hub's");
  });

  it("tells ports that say the same in one row", () => {
    const port = (device: string, state: string) => ({ device, port: 1, state });
    const told = [port("mlx5_0", "ACTIVE"), port("mlx5_1", "ACTIVE"), port("mlx5_2", "DOWN")];
    expect(portGroups(told).map(({ name, port }) => [name, port.state])).toEqual([
      ["mlx5_0:1 to mlx5_1:1", "ACTIVE"],
      ["mlx5_2:1", "DOWN"],
    ]);
  });

  it("says what reads the node", () => {
    expect(probeWords({ probe_version: "1.0", gpu_source: "nvml", interval_seconds: 1 } as NodeView)).toBe(
      "probe 1.0, GPUs by nvml, every 1 s",
    );
    expect(probeWords({} as NodeView)).toBe("every 1 s");
  });
});

import { describe, expect, it } from "vitest";
import { type History, SPAN_SECONDS, Timeline, key } from "./timeline";

const history: History = {
  node: "gpu07",
  step_seconds: 10,
  end: 1000,
  gpus: [{ node: "gpu01", id: "a", utilization: [255, 100, 200], memory: [0, 50, 255], temperature: [255, 40, 41], power: [65535, 300, 310] }],
};

describe("a timeline", () => {
  it("begins with what the hub has kept; unknown is a gap", () => {
    const timeline = new Timeline(10);
    timeline.begin(history);
    expect(timeline.times.slice(0, 3)).toEqual([980, 990, 1000]);
    expect(timeline.row(key("utilization", "a")).slice(0, 3)).toEqual([null, 0.5, 1]);
    expect(timeline.row(key("memory", "a")).slice(0, 3)).toEqual([0, 0.25, null]);
    expect(timeline.row(key("temperature", "a")).slice(0, 3)).toEqual([null, 40, 41]);
    expect(timeline.row(key("power", "a")).slice(0, 3)).toEqual([null, 300, 310]);
  });

  it("goes on where the hub's steps end, and leaves them as they are", () => {
    const timeline = new Timeline(10);
    timeline.begin(history);
    timeline.add(1001, [[key("utilization", "a"), 0.2]]);
    timeline.add(1002, [[key("utilization", "a"), 0.4]]);
    expect(timeline.times).toEqual([980, 990, 1000, 1002]);
    expect(timeline.row(key("utilization", "a"))[2]).toBe(1);
    expect(timeline.row(key("utilization", "a"))[3]).toBeCloseTo(0.3);
    timeline.add(1011, [[key("utilization", "a"), 0.9]]);
    expect(timeline.times).toEqual([980, 990, 1000, 1002, 1011]);
    expect(timeline.row(key("utilization", "a"))[4]).toBe(0.9);
  });

  it("keeps what it saw itself where the hub was started since and knows nothing", () => {
    const timeline = new Timeline(10);
    timeline.add(980, [[key("utilization", "a"), 0.7]]);
    timeline.add(990, [[key("utilization", "a"), 0.1]]);
    timeline.begin(history);
    expect(timeline.row(key("utilization", "a")).slice(0, 3)).toEqual([0.7, 0.5, 1]);
  });

  it("takes the mean of utilisation and power, and the newest of the rest", () => {
    const timeline = new Timeline(10);
    for (const [time, value] of [[0, 100], [1, 200], [2, null]] as const) {
      timeline.add(time, [[key("power", "a"), value], [key("temperature", "a"), value]]);
    }
    expect(timeline.row(key("power", "a"))).toEqual([150]);
    expect(timeline.row(key("temperature", "a"))).toEqual([null]);
  });

  it("shows a pause as a gap", () => {
    const timeline = new Timeline(10);
    timeline.add(0, [[key("memory", "a"), 0.5]]);
    timeline.add(100, [[key("memory", "a"), 0.6]]);
    expect(timeline.row(key("memory", "a"))).toEqual([0.5, null, 0.6]);
  });

  it("gives a GPU that is new unknown figures before it came", () => {
    const timeline = new Timeline(1);
    timeline.add(0, [[key("memory", "a"), 0.5]]);
    timeline.add(1, [[key("memory", "a"), 0.5], [key("memory", "b"), 0.1]]);
    expect(timeline.row(key("memory", "b"))).toEqual([null, 0.1]);
    expect(timeline.row(key("memory", "c"))).toEqual([null, null]);
  });

  it("keeps ten minutes and no more", () => {
    const timeline = new Timeline(10);
    for (let time = 0; time < 3 * SPAN_SECONDS; time++) timeline.add(time, [[key("memory", "a"), 0.5]]);
    expect(timeline.times.length).toBeLessThanOrEqual(63);
    expect(timeline.row(key("memory", "a")).length).toBe(timeline.times.length);
  });

  it("begins anew when the hub's clock was put back", () => {
    const timeline = new Timeline(10);
    timeline.add(5000, [[key("memory", "a"), 0.5]]);
    timeline.add(100, [[key("memory", "a"), 0.1]]);
    expect(timeline.times).toEqual([100]);
    expect(timeline.row(key("memory", "a"))).toEqual([0.1]);
  });

  it("finds the place of a time", () => {
    const timeline = new Timeline(10);
    timeline.begin(history);
    expect(timeline.place(988)).toBe(1);
    expect(timeline.place(100)).toBe(-1);
    expect(new Timeline(10).place(0)).toBe(-1);
  });
});

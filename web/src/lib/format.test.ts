import { expect, test } from "vitest";
import { age, bytes, celsius, count, duration, gib, natural, percent, percentFigure, ranges, rate, timeOfDay, watts } from "./format";

test("unknown is a dash", () => {
  for (const format of [age, bytes, celsius, count, duration, gib, percent, rate, timeOfDay, watts]) {
    expect(format(null)).toBe("–");
    expect(format(undefined)).toBe("–");
    expect(format(NaN)).toBe("–");
  }
});

test.each([
  [bytes(0), "0 B"],
  [bytes(512 * 2 ** 20), "512.0 MiB"],
  [bytes(85_520_809_984), "79.6 GiB"],
  [bytes(1.5 * 2 ** 40), "1.5 TiB"],
  [gib(85_520_809_984), "79.6"],
  [rate(2 ** 30), "1.0 GiB/s"],
  [percent(0.934), "93 %"],
  [percentFigure(0.999), "99"],
  [percentFigure(1), "100"],
  [percentFigure(0.001), "1"],
  [percentFigure(0), "0"],
  [watts(305.4), "305 W"],
  [watts(41_234), "41.2 kW"],
  [watts(1_800_000), "1.8 MW"],
  [celsius(61), "61 °C"],
  [count(1_234_567), "1,234,567"],
  [duration(45), "45s"],
  [duration(725), "12m 05s"],
  [duration(11_520), "3h 12m"],
  [duration(367_200), "4d 06h"],
  [age(0.84), "0.8 s"],
  [age(14.2), "14 s"],
  [age(180), "3 min"],
  [age(7200), "2 h"],
  [age(432_000), "5 d"],
  [ranges([0, 1, 2, 5]), "0–2, 5"],
  [ranges([]), ""],
])("%s is %s", (told, expected) => {
  expect(told).toBe(expected);
});

test("times of another day have their date", () => {
  const noon = new Date(2026, 10, 15, 14, 2, 11).getTime() / 1000;
  expect(timeOfDay(noon, noon + 60)).toBe("14:02:11");
  expect(timeOfDay(noon, noon + 86_400)).toBe("2026-11-15 14:02:11");
});

test("names sort naturally", () => {
  expect(["gpu10", "gpu2", "gpu1"].sort(natural)).toEqual(["gpu1", "gpu2", "gpu10"]);
});

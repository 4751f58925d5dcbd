import { expect, test } from "vitest";
import { Findings, together, troubleWords } from "./findings";
import type { FindingView, ReservationView } from "./reservations";

function finding(kind: FindingView["kind"], reservation: string, gpu: string | null): FindingView {
  const node = gpu === null ? null : gpu.split(":")[0];
  const index = gpu === null ? null : gpu.split(":")[1];
  return { kind, reservation, node, index, gpu, person: "ann", name: "Ann", other: null, other_name: null, since: 1, pids: [], message: "", release_at: null };
}

const gpus = (...ids: string[]) => ids.map((id) => ({ node: id.split(":")[0], index: id.split(":")[1], id }));
const page = {
  reservations: [{ id: "r1", gpus: gpus("n1:0", "n1:1", "n2:0") }] as ReservationView[],
  findings: [finding("no_show", "r1", null), finding("overrun", "r0", "n1:0"), finding("squatter", "r2", "n1:3"), finding("no_show", "gone", null)],
};

test("one that is about all GPUs of a reservation is one of each, the worst first", () => {
  const found = new Findings(page);
  expect(found.of("n1:0").map((one) => one.kind)).toEqual(["overrun", "no_show"]);
  expect(found.of("n2:0").map((one) => one.kind)).toEqual(["no_show"]);
  expect(found.of("n1:3").map((one) => one.kind)).toEqual(["squatter"]);
  expect(found.of("n1:2")).toEqual([]);
});

test("a node has each once", () => {
  const found = new Findings(page);
  expect(found.on("n1").map((one) => one.kind)).toEqual(["squatter", "overrun", "no_show"]);
  expect(found.on("n2").map((one) => one.kind)).toEqual(["no_show"]);
  expect(found.on("n3")).toEqual([]);
});

test("where the answer leaves out a reservation, its id is enough; none is told twice", () => {
  const found = new Findings(page);
  expect(found.of("n9:0", "gone").map((one) => one.kind)).toEqual(["no_show"]);
  expect(found.of("n1:1", "r1")).toHaveLength(1);
  expect(found.of("n1:0", null)).toHaveLength(2);
});

test("nothing asked, nothing found", () => {
  expect(new Findings(null).of("n1:0", "r1")).toEqual([]);
});

test("what one person does on several GPUs of a reservation is one trouble", () => {
  const on = (gpu: string | null, more: Partial<FindingView> = {}) => ({ ...finding("squatter", "r1", gpu), other: "bob", other_name: "Bob", ...more });
  const found = together([on("n1:1", { since: 7 }), on("n1:0", { since: 5 }), on("n2:0"), on("n1:5"), on("n1:2", { other: "eve", other_name: "Eve" }), on("n1:3", { reservation: "r2" }), finding("no_show", "r1", null)]);
  expect(found.map((one) => [one.place, one.count])).toEqual([["n1:0–1,5", 3], ["n2:0", 1], ["n1:2", 1], ["n1:3", 1], ["", 1]]);
  expect(found[0].since).toBe(1);
  expect(troubleWords(found[0])).toBe("n1:0–1,5: Bob computes on what Ann has reserved");
  expect(troubleWords(found[4])).toBe("Ann's reservation is not used");
  expect(together([on("n1:1", { index: null })])[0].place).toBe("n1");
});

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { deflateSync } from "node:zlib";
import { beforeAll, expect, test } from "vitest";
import { GPU_STATES, NODE_STATES } from "../state";
import { type Frame, FrameError, UNKNOWN_BYTE, VersionError, decode, withOwn } from "./frame";

interface Told {
  frame: string;
  states: string[];
  utilization: (number | null)[];
  power: (number | null)[];
  people: string[][];
  nodes: string[];
  /** Whether names are left out of the frame. */
  nameless: boolean;
}

let told: Told[];
const bytes = (at: number): ArrayBuffer => Uint8Array.from(Buffer.from(told[at].frame, "base64")).buffer;

beforeAll(() => {
  const root = new URL("../../../../", import.meta.url).pathname;
  const own = `${root}.venv/bin/python`;
  const python = process.env.PYTHON ?? (existsSync(own) ? own : "python3");
  const program = ["-m", "tests.fleet.frames_for_page"];
  told = JSON.parse(execFileSync(python, program, { cwd: root, encoding: "utf8" })) as Told[];
}, 60_000);

function says(frame: Frame, what: Told): void {
  expect([...frame.state].map((state) => GPU_STATES[state])).toEqual(what.states);
  const shares = [...frame.utilization].map((value) => (value === UNKNOWN_BYTE ? null : value / 200));
  expect(shares).toEqual(what.utilization);
  expect([...frame.power]).toEqual(what.power);
  expect([...frame.person].map((number) => frame.people[number])).toEqual(what.people.map((people) => people[0] ?? ""));
  expect([...frame.nodeState].map((state) => NODE_STATES[state])).toEqual(what.nodes);
}

test("a full frame has layout and figures", async () => {
  const frame = await decode(bytes(0), null);
  expect(frame.layout.nodes.map((node) => [node.name, node.display_name, node.group, node.rack])).toEqual([
    ["n2", "n2", "lab", "r1"],
    ["n10", "Ten", null, null],
    ["n11", "n11", null, null],
  ]);
  expect(frame.layout.models).toEqual(["H100 80G"]);
  expect(frame.layout.nodes[0].gpus[0].slice(0, 4)).toEqual(["A", 0, 0, 80 * 2 ** 30]);
  expect([frame.gpuCount, frame.nodeCount, frame.time]).toEqual([3, 3, 1000.5]);
  expect(frame.memory[0]).toBe(100);
  expect(frame.temperature[0]).toBe(40);
  expect(frame.summary.gpus).toBe(3);
  says(frame, told[0]);
});

test("deltas add up, with people who come", async () => {
  const first = await decode(bytes(0), null);
  const second = await decode(bytes(1), first);
  says(second, told[1]);
  const third = await decode(bytes(2), second);
  says(third, told[2]);
  expect(third.people).toContain("carol");
  expect(third.layout).toBe(first.layout);
  // Nobody's figures change behind their back.
  says(first, told[0]);
});

test("in frames without names one's own GPUs are one's own, and deltas still add up", async () => {
  const held = (frame: Frame) => [...frame.person].map((number) => frame.people[number]);
  const at = told.findIndex((one) => one.nameless);
  const plain = await decode(bytes(at), null);
  expect([plain.people, held(plain)]).toEqual([["", "somebody"], told[at].people.map((people) => (people.length > 0 ? "somebody" : ""))]);
  const place = held(plain).indexOf("somebody");
  const first = withOwn(plain, { person: "ann", gpus: [place] });
  expect(held(first)[place]).toBe("ann");
  expect(held(plain)[place]).toBe("somebody");
  const second = withOwn(await decode(bytes(at + 1), first), { person: "ann", gpus: [] });
  expect(second.people).toEqual(["", "somebody", "ann"]);
  expect(held(second)).toEqual(told[at + 1].people.map((people) => (people.length > 0 ? "somebody" : "")));
});

test("a delta without the frame before it is refused", async () => {
  await expect(decode(bytes(1), null)).rejects.toThrow(FrameError);
  const first = await decode(bytes(0), null);
  await expect(decode(bytes(2), first)).rejects.toThrow(/builds on/);
});

test.each([-1, 1, 70_000])("a delta that is %d bytes longer than the frame before it is refused", async (more) => {
  const first = await decode(bytes(0), null);
  const whole = Buffer.from(bytes(1));
  const bodyAt = 12 + whole.readUInt32LE(8);
  const body = deflateSync(new Uint8Array(first.planes.length + more));
  const wrong = Uint8Array.from(Buffer.concat([whole.subarray(0, bodyAt), body])).buffer;
  await expect(decode(wrong, first)).rejects.toThrow(/another size/);
  says(first, told[0]);
});

test("what is no frame is refused", async () => {
  await expect(decode(new ArrayBuffer(3), null)).rejects.toThrow(FrameError);
  await expect(decode(new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n").buffer, null)).rejects.toThrow(FrameError);
  const newer = bytes(0);
  new Uint8Array(newer)[4] = 9;
  await expect(decode(newer, null)).rejects.toThrow(/version 9.*load the page again/);
});

test.each([1, 3])("a frame of version %d is another version's, which is not a broken frame", async (version) => {
  const other = Uint8Array.from([...new TextEncoder().encode("GPLS"), version, 0, 0, 0, 2, 0, 0, 0, 123, 125]).buffer;
  const refused = await decode(other, null).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(VersionError);
  expect((refused as VersionError).version).toBe(version);
});

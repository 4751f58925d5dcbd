/** Decodes the hub's binary live frames; docs/api.md describes them. */
import type { Summary } from "../api/api";

/** [id, index, number of its model, memory in bytes, power limit in watts, UUID of the card it is a part of] */
export type LayoutGpu = [string, number | null, number | null, number | null, number | null, string | null];

export interface LayoutNode {
  name: string;
  display_name: string;
  group: string | null;
  rack: string | null;
  gpus: LayoutGpu[];
}

/** Which nodes and GPUs there are. The same object until it changes. */
export interface Layout {
  models: string[];
  nodes: LayoutNode[];
}

/** The hot figures of all GPUs, one array each, in the order of the layout. */
export interface Frame {
  generation: number;
  /** Seconds since 1970 by the hub's clock. */
  time: number;
  summary: Summary;
  /** Grows when a reservation changes, begins or ends, or something is found about one. */
  reservations: number;
  /** Names by number; 0 is nobody. */
  people: string[];
  layout: Layout;
  gpuCount: number;
  nodeCount: number;
  /** Number of the state in GPU_STATES; NOT_COUNTED: its MIG instances are counted instead. */
  state: Uint8Array;
  /** Half percents; 255 unknown. */
  utilization: Uint8Array;
  /** Half percents of its memory; 255 unknown. */
  memory: Uint8Array;
  /** °C; 255 unknown. */
  temperature: Uint8Array;
  /** Watts; 65535 unknown. */
  power: Uint16Array;
  /** Number of the person with most memory on it. */
  person: Uint16Array;
  /** Number of the state in NODE_STATES. */
  nodeState: Uint8Array;
  /** All of these as they came. */
  planes: Uint8Array<ArrayBuffer>;
}

export const UNKNOWN_BYTE = 255;
export const UNKNOWN_WORD = 65535;

/** For those who see no names of others: which GPUs of a frame are their own, by their places in the layout. */
export interface Own {
  person: string;
  gpus: number[];
}

/** The version of live frames this page reads. */
export const FRAME_VERSION = 2;

/** A frame that cannot be read, or does not build on the one before. */
export class FrameError extends Error {}

/** A frame of another version: this page and the hub don't belong together. */
export class VersionError extends FrameError {
  constructor(readonly version: number) {
    super(`the hub sends frames of version ${version}, this page reads version ${FRAME_VERSION}; load the page again`);
  }
}

interface Head {
  generation: number;
  time: number;
  summary: Summary;
  reservations?: number;
  people?: string[];
  layout_bytes?: number;
  base?: number;
  new_people?: string[];
}

const HEAD_AT = 12;
/** Behind nobody and somebody. */
const OWN_NUMBER = 2;

export async function decode(frame: ArrayBuffer, before: Frame | null): Promise<Frame> {
  const bytes = new Uint8Array(frame);
  if (bytes.length < HEAD_AT || String.fromCharCode(...bytes.subarray(0, 4)) !== "GPLS") {
    throw new FrameError("this is not a live frame of gpulse");
  }
  if (bytes[4] !== FRAME_VERSION) throw new VersionError(bytes[4]);
  const bodyAt = HEAD_AT + new DataView(frame).getUint32(8, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(HEAD_AT, bodyAt))) as Head;
  return bytes[5] === 0 ? full(head, bytes.subarray(bodyAt)) : delta(head, bytes.subarray(bodyAt), before);
}

async function full(head: Head, body: Uint8Array<ArrayBuffer>): Promise<Frame> {
  const layoutBytes = head.layout_bytes ?? 0;
  const [layout, planes] = await Promise.all([
    unpacked(body.subarray(0, layoutBytes)).json() as Promise<Layout>,
    unpacked(body.subarray(layoutBytes)).arrayBuffer(),
  ]);
  return arrange(head, head.people ?? [""], layout, new Uint8Array(planes));
}

async function delta(head: Head, body: Uint8Array<ArrayBuffer>, before: Frame | null): Promise<Frame> {
  if (before === null || before.generation !== head.base) {
    throw new FrameError(`frame ${head.generation} builds on ${head.base}, which is not there`);
  }
  const planes = before.planes.slice();
  const reader = inflate(body).getReader();
  let at = 0;
  // Piece by piece as it is unpacked: a large fleet is never one long stop.
  for (;;) {
    const { value: piece } = await reader.read();
    if (piece === undefined) break;
    for (let of = 0; of < piece.length; of++) planes[at + of] += piece[of];
    at += piece.length;
  }
  if (at !== planes.length) throw new FrameError("a frame has another size than the one before");
  const news = head.new_people ?? [];
  const people = news.length > 0 ? [...before.people, ...news] : before.people;
  return arrange(head, people, before.layout, planes);
}

/** Lays the arrays of a frame over its planes. */
export function arrange(
  head: { generation: number; time: number; summary: Summary; reservations?: number },
  people: string[],
  layout: Layout,
  planes: Uint8Array<ArrayBuffer>,
): Frame {
  const nodeCount = layout.nodes.length;
  let gpuCount = 0;
  for (const node of layout.nodes) gpuCount += node.gpus.length;
  if (planes.length !== gpuCount * 8 + nodeCount) throw new FrameError("the figures do not fit the layout");
  const bytes = (plane: number) => planes.subarray(plane * gpuCount, (plane + 1) * gpuCount);
  // Every platform with a browser is little-endian, as the frames are.
  const words = (plane: number) => new Uint16Array(planes.buffer, planes.byteOffset + plane * gpuCount, gpuCount);
  const { generation, time, summary, reservations = 0 } = head;
  return {
    generation,
    time,
    summary,
    reservations,
    people,
    layout,
    gpuCount,
    nodeCount,
    state: bytes(0),
    utilization: bytes(1),
    memory: bytes(2),
    temperature: bytes(3),
    power: words(4),
    person: words(6),
    nodeState: planes.subarray(8 * gpuCount),
    planes,
  };
}

/** A frame in which everybody is number 1, somebody, with those GPUs that are one's own. */
export function withOwn(frame: Frame, own: Own): Frame {
  // A copy: the next delta builds on the planes as they came.
  const person = frame.person.slice();
  for (const place of own.gpus) if (person[place] !== 0) person[place] = OWN_NUMBER;
  return { ...frame, people: [...frame.people.slice(0, OWN_NUMBER), own.person], person };
}

/** Not by way of a Blob, which travels to another process and back. */
function inflate(packed: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      controller.enqueue(packed);
      controller.close();
    },
  });
  return source.pipeThrough(new DecompressionStream("deflate"));
}

function unpacked(packed: Uint8Array<ArrayBuffer>): Response {
  return new Response(inflate(packed));
}

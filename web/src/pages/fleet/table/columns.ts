/** The columns of the table: which there are, how wide, and which give way first on a small screen. */

export type ColumnKey = "node" | "gpu" | "model" | "state" | "utilization" | "memory" | "temperature" | "power" | "person";

/** How much room there is: on a phone, on half a screen, on a screen. */
export type Room = "little" | "some" | "much";

export interface Column {
  key: ColumnKey;
  label: string;
  /** Where there is little room. */
  short?: string;
  /** Stands in the head, so that cells are figures alone. */
  unit?: string;
  figure?: boolean;
  /** Where people look for the most first. */
  mostFirst?: boolean;
  /** A track of a CSS grid for each room; null: there is no place for it. */
  tracks: Record<Room, string | null>;
}

/** What `little` and `some` reach up to, in CSS pixels. */
const LITTLE = 560;
const SOME = 980;

export function roomOf(width: number): Room {
  return width < LITTLE ? "little" : width < SOME ? "some" : "much";
}

const SHARED: Column[] = [
  {
    key: "utilization", label: "Util", unit: "%", figure: true, mostFirst: true,
    tracks: { little: "34px", some: "48px", much: "132px" },
  },
  {
    key: "memory", label: "Memory", short: "Mem", unit: "GiB", figure: true, mostFirst: true,
    tracks: { little: "46px", some: "104px", much: "208px" },
  },
  {
    key: "temperature", label: "Temp", unit: "°C", figure: true, mostFirst: true,
    tracks: { little: null, some: "58px", much: "64px" },
  },
  {
    key: "power", label: "Power", unit: "W", figure: true, mostFirst: true,
    tracks: { little: null, some: null, much: "92px" },
  },
];

const NODE: Column = {
  key: "node", label: "Node",
  tracks: { little: "minmax(60px, 1fr)", some: "minmax(76px, 1fr)", much: "minmax(76px, 220px)" },
};
const MODEL: Column = {
  key: "model", label: "Model",
  tracks: { little: null, some: "minmax(88px, 1fr)", much: "minmax(110px, 220px)" },
};

export const GPU_COLUMNS: Column[] = [
  NODE,
  { key: "gpu", label: "GPU", figure: true, tracks: { little: "26px", some: "40px", much: "44px" } },
  MODEL,
  { key: "state", label: "State", short: "", tracks: { little: "36px", some: "124px", much: "144px" } },
  ...SHARED,
  {
    key: "person", label: "Person",
    tracks: { little: "minmax(54px, 0.9fr)", some: "minmax(84px, 1fr)", much: "minmax(120px, 1fr)" },
  },
];

export const NODE_COLUMNS: Column[] = [
  NODE,
  { key: "gpu", label: "GPUs", figure: true, mostFirst: true, tracks: { little: null, some: "48px", much: "52px" } },
  MODEL,
  {
    key: "state", label: "Free", mostFirst: true,
    tracks: { little: "minmax(90px, 1fr)", some: "168px", much: "240px" },
  },
  ...SHARED,
  { key: "person", label: "People", tracks: { little: null, some: null, much: "minmax(120px, 1fr)" } },
];

export function shownColumns(columns: readonly Column[], room: Room): Column[] {
  return columns.filter((column) => column.tracks[room] !== null);
}

export interface Sort {
  key: ColumnKey;
  descending: boolean;
}

/** As an address has it: "-power" is by power, the most first. */
export function readSort(text: string | undefined, columns: readonly Column[]): Sort {
  const key = (text ?? "").replace(/^-/, "");
  const known = columns.find((column) => column.key === key);
  return known ? { key: known.key, descending: text!.startsWith("-") } : { key: "node", descending: false };
}

export function writeSort({ key, descending }: Sort): string {
  return key === "node" && !descending ? "" : (descending ? "-" : "") + key;
}

/** The sort after a click on a column: another column begins with what people look for, the same one turns round. */
export function clicked(sort: Sort, column: Column): Sort {
  return column.key === sort.key
    ? { key: sort.key, descending: !sort.descending }
    : { key: column.key, descending: column.mostFirst === true };
}

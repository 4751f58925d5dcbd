/** Where the data comes from: the hub this page came from, another hub, or data that was exported with it. */
import type { LogEntry, NodeView, PersonView, Summary } from "./api/api";
import type { components } from "./api/types";

/** `config.json` beside index.html. */
export interface Config {
  /** The hub's address, "https://gpus.example.org/"; empty: where the page came from. */
  hub: string;
  title: string;
  /** Address of a picture, relative to the page. */
  logo: string | null;
  /** Whether there is a custom.css. */
  custom_css: boolean;
}

/** What data.js of an exported site says: `window.gpulseExport = {…}`. */
export interface ExportData {
  title: string;
  /** Seconds since 1970. */
  made: number;
  summary: Summary;
  /** In full, with host and processes. */
  nodes: NodeView[];
  people: PersonView[];
  /** How many there are beside them, whose names are not told; not there: none. */
  others?: number;
  /** The last ten minutes of all GPUs; null: there are no nodes. */
  history?: components["schemas"]["HistoryView"] | null;
  /** By node, the newest entries first. */
  logs?: Record<string, LogEntry[]>;
  /** Address of a picture, relative to the page. */
  logo?: string | null;
  custom_css?: boolean;
}

declare global {
  interface Window {
    gpulseExport?: ExportData;
  }
}

let config: Config = { hub: "", title: "gpulse", logo: null, custom_css: false };

export function isExport(): boolean {
  return typeof window !== "undefined" && window.gpulseExport !== undefined;
}

export function exported(): ExportData {
  return window.gpulseExport!;
}

/** Empty or ending in a slash. */
export function hubUrl(): string {
  return config.hub === "" || config.hub.endsWith("/") ? config.hub : config.hub + "/";
}

export function site(): Config {
  return config;
}

/** Reads config.json once, before anything else. A page without one is a page of its own hub. */
export async function loadConfig(): Promise<void> {
  if (isExport()) {
    const { title, logo, custom_css } = exported();
    config = { hub: "", title, logo: logo ?? null, custom_css: custom_css ?? false };
    return;
  }
  try {
    const response = await fetch("config.json", { cache: "no-cache" });
    if (response.ok) config = { ...config, ...((await response.json()) as Partial<Config>) };
  } catch (error) {
    // The hub is away just now; the live stream says so and goes on trying.
    console.warn("config.json could not be read", error);
  }
}

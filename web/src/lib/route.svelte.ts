/** Where on the page we are: everything is in the hash, so that it works under any sub-path and from a file. */

export type PageName = "fleet" | "node" | "gpu" | "people" | "reservations" | "sign-in" | "account" | "admin" | "missing";

export interface Place {
  page: PageName;
  parameters: { node?: string; gpu?: string; person?: string; part?: string; code?: string; key?: string };
  query: Record<string, string>;
}

/** Reads a hash: "#/nodes/gpu07?q=free". */
export function read(hash: string): Place {
  const text = hash.replace(/^#/, "");
  const at = text.indexOf("?");
  const path = at < 0 ? text : text.slice(0, at);
  const query = Object.fromEntries(new URLSearchParams(at < 0 ? "" : text.slice(at + 1)));
  const parts = path.split("/").filter((part) => part !== "");
  const [first, second] = parts.map(decoded);
  if (parts.length === 0) return { page: "fleet", parameters: {}, query };
  if (parts.length === 2 && first === "nodes") return { page: "node", parameters: { node: second }, query };
  if (parts.length === 2 && first === "gpus") return { page: "gpu", parameters: { gpu: second }, query };
  if (parts.length === 1 && first === "people") return { page: "people", parameters: {}, query };
  if (parts.length === 2 && first === "people") return { page: "people", parameters: { person: second }, query };
  if (parts.length === 1 && first === "reservations") return { page: "reservations", parameters: {}, query };
  if (parts.length === 1 && first === "sign-in") return { page: "sign-in", parameters: {}, query };
  if (parts.length === 2 && first === "sign-in") return { page: "sign-in", parameters: { code: second }, query };
  if (parts.length === 2 && first === "signed-in") return { page: "fleet", parameters: { key: second }, query };
  if (parts.length === 1 && first === "account") return { page: "account", parameters: {}, query };
  if (parts.length === 1 && first === "admin") return { page: "admin", parameters: {}, query };
  if (parts.length === 2 && first === "admin" && second === "audit") return { page: "admin", parameters: { part: second }, query };
  return { page: "missing", parameters: {}, query };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // A bare "%" in an address somebody typed.
    return part;
  }
}

type QueryChange = Record<string, string | null | undefined>;

/** The address of a page: href("node", "gpu07"), href("fleet", null, {q: "free"}). */
export function href(page: PageName, name?: string | null, query: QueryChange = {}): string {
  const folders: Partial<Record<PageName, string>> = { fleet: "", node: "nodes", gpu: "gpus", missing: "" };
  const folder = folders[page] ?? page;
  const path = [folder, name ?? ""].filter((part) => part !== "").map(encodeURIComponent).join("/");
  return `#/${path}${written(query)}`;
}

function written(query: QueryChange): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== null && value !== undefined) search.set(name, value);
  // "?kiosk" reads better than "?kiosk=".
  const text = search.toString().replace(/=(?=&|$)/g, "");
  return text === "" ? "" : `?${text}`;
}

class Route {
  #place = $state.raw<Place>(read(""));
  /** The code of a sign-in link that was opened and not used yet. */
  #code = $state<string | null>(null);
  #key: string | null = null;

  constructor() {
    if (typeof window === "undefined") return;
    this.#arrive();
    window.addEventListener("hashchange", () => this.#arrive());
    window.addEventListener("popstate", () => this.#arrive());
  }

  #arrive(): void {
    const place = read(location.hash);
    const { code, key, ...parameters } = place.parameters;
    if (code !== undefined) {
      // At once: a code must not stay in the history, nor be seen by who looks over a shoulder.
      this.#code = code;
      history.replaceState(null, "", href("sign-in", null, place.query));
    }
    if (key !== undefined) {
      this.#key = key;
      history.replaceState(null, "", href("fleet", null, place.query));
    }
    this.#place = { ...place, parameters };
  }

  get page(): PageName {
    return this.#place.page;
  }
  get parameters(): Place["parameters"] {
    return this.#place.parameters;
  }
  get query(): Record<string, string> {
    return this.#place.query;
  }
  /** For wall screens: `kiosk` in the query, of the hash or of the whole address. */
  get kiosk(): boolean {
    return "kiosk" in this.#place.query || (typeof location !== "undefined" && /[?&]kiosk\b/.test(location.search));
  }

  /** Changes some of the query and stays on the page; null, undefined and "" take a part away. `state`: of a new entry of the
   *  history what is to be known there, also after a reload. */
  setQuery(change: QueryChange, options: { push?: boolean; state?: unknown } = {}): void {
    const query: QueryChange = { ...this.#place.query };
    for (const [name, value] of Object.entries(change)) query[name] = value === "" ? null : value;
    const { page, parameters } = this.#place;
    const hash = href(page, parameters.node ?? parameters.gpu ?? parameters.person ?? parameters.part, query);
    if (options.push) history.pushState(options.state ?? null, "", hash);
    else history.replaceState(history.state, "", hash);
    this.#place = read(hash);
  }

  go(hash: string): void {
    location.hash = hash;
  }

  /** To another page, in place of this one: the way back leads past it. */
  replace(hash: string): void {
    history.replaceState(null, "", hash);
    this.#arrive();
  }

  get hasCode(): boolean {
    return this.#code !== null;
  }
  /** The code of a sign-in link; only the first who asks gets it. */
  takeCode(): string | null {
    const code = this.#code;
    this.#code = null;
    return code;
  }
  /** The page key that single sign-on came back with, once. */
  takeKey(): string | null {
    const key = this.#key;
    this.#key = null;
    return key;
  }
}

export const route = new Route();
export const setQuery = (change: QueryChange, options?: Parameters<Route["setQuery"]>[1]) => route.setQuery(change, options);

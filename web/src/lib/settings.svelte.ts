/** What a person has chosen on this page, kept in the browser. */
import { SvelteSet } from "svelte/reactivity";
import { keep, recall } from "./remember";
import { session } from "./session.svelte";

export const THEMES = ["auto", "light", "dark", "yellow", "blue"] as const;
export type Theme = (typeof THEMES)[number];

export const DENSITIES = ["cards", "table", "map"] as const;
export type Density = (typeof DENSITIES)[number];

class Settings {
  #theme = $state<Theme>(chosen(THEMES, recall("theme", "auto"), "auto"));
  #density = $state<Density | null>(chosen([...DENSITIES, null], recall("density", null), null));
  #me = $state(String(recall("me", "")));
  /** By account, the name that its person chose instead. */
  #meFor = $state.raw<Record<string, string>>(texts(recall("me-for", {})));
  #quickFolded = $state(Boolean(recall("quick-folded", false)));
  #collapsed = new SvelteSet<string>(names(recall("collapsed", [])));

  get theme(): Theme {
    return this.#theme;
  }
  set theme(theme: Theme) {
    this.#theme = theme;
    keep("theme", theme);
  }

  /** null: nobody has chosen; by the size of the fleet. */
  get density(): Density | null {
    return this.#density;
  }
  set density(density: Density | null) {
    this.#density = density;
    keep("density", density);
  }

  /** Who "mine" is: the account's name, unless its person chose another; empty: not told. */
  get me(): string {
    return session.name === null ? this.#me : (this.#meFor[session.name] ?? session.name);
  }
  set me(name: string) {
    const chosen = name.trim();
    if (session.name === null) {
      this.#me = chosen;
      keep("me", chosen);
      return;
    }
    const { [session.name]: before, ...others } = this.#meFor;
    const usual = chosen === "" || chosen === session.name;
    if (usual && before === undefined) return;
    this.#meFor = usual ? others : { ...others, [session.name]: chosen };
    keep("me-for", this.#meFor);
  }

  get quickFolded(): boolean {
    return this.#quickFolded;
  }
  set quickFolded(folded: boolean) {
    this.#quickFolded = folded;
    keep("quick-folded", folded);
  }

  isCollapsed(node: string): boolean {
    return this.#collapsed.has(node);
  }

  collapse(nodes: Iterable<string>, collapsed: boolean): void {
    for (const node of nodes) {
      if (collapsed) this.#collapsed.add(node);
      else this.#collapsed.delete(node);
    }
    keep("collapsed", [...this.#collapsed]);
  }
}

function chosen<T>(allowed: readonly T[], value: unknown, otherwise: T): T {
  return allowed.includes(value as T) ? (value as T) : otherwise;
}

function names(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

function texts(value: unknown): Record<string, string> {
  const pairs = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return Object.fromEntries(pairs.filter(([, text]) => typeof text === "string"));
}

export const settings = new Settings();

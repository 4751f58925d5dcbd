/** The theme in use: the one a person chose, or the system's. */
import { settings } from "./settings.svelte";

class ThemeInUse {
  #dark = $state(typeof matchMedia !== "undefined" && matchMedia("(prefers-color-scheme: dark)").matches);
  /** light, dark, yellow or blue. Whoever draws on a canvas reads it, and draws again when it changes. */
  name = $derived(settings.theme === "auto" ? (this.#dark ? "dark" : "light") : settings.theme);

  /** In the outermost component, before others draw. */
  watch(): void {
    $effect.pre(() => {
      document.documentElement.dataset.theme = this.name;
    });
    $effect(() => {
      const system = matchMedia("(prefers-color-scheme: dark)");
      const changed = () => (this.#dark = system.matches);
      system.addEventListener("change", changed);
      return () => system.removeEventListener("change", changed);
    });
  }
}

export const theme = new ThemeInUse();

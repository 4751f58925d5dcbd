/** Colours of the theme for canvases, which know no variables. */

/** "--busy" as it is in the theme of now. */
export function themeColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The same colour, so much of it: 0 to 100. */
export function faded(colour: string, percent: number): string {
  return `color-mix(in oklab, ${colour} ${percent}%, transparent)`;
}

/** Calls when the theme changes; the answer ends that. */
export function onTheme(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", changed);
  };
}

/** Hands that click twice: what has just come under the pointer does nothing yet. */

/** So far apart the two clicks of a double-click are at most. */
const DOUBLE_CLICK_MS = 500;

export class Haste {
  on = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Something else is under the pointer now, or has just been done. */
  begin(): void {
    this.on = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.on = false), DOUBLE_CLICK_MS);
  }

  /** Whether a click was not meant for what it met. Keys, whose clicks are number 0, always mean what has the focus. */
  ignores({ detail }: Pick<MouseEvent, "detail">): boolean {
    return detail > 1 || (detail === 1 && this.on);
  }
}

/** `{@attach once}`: a key that is held down asks for nothing a second time. */
export function once(element: HTMLElement): () => void {
  const held = (event: KeyboardEvent) => {
    if (event.repeat && event.key === "Enter") event.preventDefault();
  };
  element.addEventListener("keydown", held);
  return () => element.removeEventListener("keydown", held);
}

/** The one box with the details of a GPU: beside whatever the mouse, a finger or the focus is on. */

export interface Corner {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

class Peek {
  slot = $state<number | null>(null);
  at = $state.raw<Corner | null>(null);
  /** Stays until it is closed, so that its links can be reached. */
  pinned = $state(false);

  show(slot: number, at: Corner, pinned = false): void {
    this.slot = slot;
    this.at = { left: at.left, top: at.top, right: at.right, bottom: at.bottom };
    this.pinned = pinned;
  }

  hide(): void {
    this.slot = this.at = null;
    this.pinned = false;
  }
}

export const peek = new Peek();

function slotOf(target: EventTarget | null): [number, HTMLElement] | null {
  const element = target instanceof Element ? target.closest<HTMLElement>("[data-slot]") : null;
  return element === null ? null : [Number(element.dataset.slot), element];
}

/** An action: everything inside with `data-slot` shows the details of that GPU. */
export function peeks(root: HTMLElement): { destroy: () => void } {
  const stop = new AbortController();
  const { signal } = stop;
  let timer: number | undefined;

  const enter = (event: Event) => {
    clearTimeout(timer);
    if (peek.pinned) return;
    const found = slotOf(event.target);
    if (found !== null) peek.show(found[0], found[1].getBoundingClientRect());
    else peek.hide();
  };
  root.addEventListener(
    "pointerover",
    (event) => {
      if (event.pointerType !== "mouse") return;
      // A mouse that only passes by shows nothing.
      clearTimeout(timer);
      timer = window.setTimeout(() => enter(event), peek.at === null ? 80 : 0);
    },
    { signal },
  );
  root.addEventListener("pointerleave", () => (clearTimeout(timer), peek.pinned || peek.hide()), { signal });
  root.addEventListener(
    "focusin",
    (event) => {
      // A click pins it, and would take the focus first.
      if (event.target instanceof Element && event.target.matches(":focus-visible")) enter(event);
    },
    { signal },
  );
  root.addEventListener(
    "click",
    (event) => {
      const on = event.target instanceof Element && event.target.closest("a, button, select, input");
      const found = on ? null : slotOf(event.target);
      if (found === null) return;
      clearTimeout(timer);
      if (peek.pinned && peek.slot === found[0]) peek.hide();
      else peek.show(found[0], found[1].getBoundingClientRect(), true);
    },
    { signal },
  );
  // Elsewhere, or scrolled away.
  document.addEventListener(
    "pointerdown",
    (event) => {
      const inside = event.target instanceof Element && event.target.closest(".popover, [data-slot]");
      if (!inside) peek.hide();
    },
    { signal },
  );
  window.addEventListener("scroll", () => peek.hide(), { signal, passive: true });
  return {
    destroy() {
      stop.abort();
      clearTimeout(timer);
      peek.hide();
    },
  };
}

/** A mouse or a finger on the timeline: marks, pulls an edge, opens, moves in time, zooms. */

/** What is under a pointer. */
export interface Spot {
  row: number;
  time: number;
  /** The reservation. */
  block: string | null;
  edge: "start" | "end" | null;
}

export interface Hands {
  spot: (event: PointerEvent | WheelEvent) => Spot;
  /** Something is marked, and goes on being marked. */
  pick: (anchor: Spot, pointer: Spot) => void;
  picked: () => void;
  /** While a hand marks: where it has come from `begin` to an edge, rows come in. Whether they did. */
  scroll: (y: number, begin: number) => boolean;
  pull: (anchor: Spot, time: number) => void;
  pulled: () => void;
  open: (id: string) => void;
  /** By pixels to the right. */
  move: (pixels: number) => void;
  zoom: (factor: number, time: number) => void;
  /** What goes on is given up. */
  cancel: () => void;
  /** What was marked is given up. */
  drop: () => void;
}

const DRAG_PX = 4;
const SWIPE_PX = 10;
/** A finger that rests marks; one that moves at once scrolls. */
const REST_MS = 400;

type Doing = "waiting" | "picking" | "pulling" | "moving";

/** Escape in a field is for what is typed there, and what lies over the page goes first. */
function isOthers(event: KeyboardEvent): boolean {
  const inField = event.target instanceof Element && event.target.closest("input, select, textarea") !== null;
  return inField || document.querySelector("dialog[open], :popover-open") !== null;
}

/** An action. */
export function gestures(root: HTMLElement, hands: Hands): { update: (hands: Hands) => void; destroy: () => void } {
  const stop = new AbortController();
  const { signal } = stop;
  let now = hands;
  let anchor: Spot | null = null;
  let doing: Doing = "waiting";
  let begin = { x: 0, y: 0 };
  let last = 0;
  let rest: number | undefined;
  /** Where the hand is that marks: at an edge rows come in though it does not move. */
  let hand: PointerEvent | null = null;
  let frame = 0;
  /** Whether the touch that ends now has done something already. */
  let answered = false;

  const goOn = () => {
    if (anchor === null || hand === null) return;
    if (now.scroll(hand.clientY, begin.y)) now.pick(anchor, now.spot(hand));
    frame = requestAnimationFrame(goOn);
  };
  const end = () => {
    clearTimeout(rest);
    cancelAnimationFrame(frame);
    hand = null;
    anchor = null;
    doing = "waiting";
  };

  root.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0 || !event.isPrimary || (event.target as Element).closest("a, button")) return;
      anchor = now.spot(event);
      doing = "waiting";
      answered = false;
      begin = { x: event.clientX, y: event.clientY };
      last = event.clientX;
      if (event.pointerType === "mouse") return;
      const from = anchor;
      rest = window.setTimeout(() => {
        doing = from.edge === null ? "picking" : "pulling";
        root.setPointerCapture(event.pointerId);
        if (doing === "picking" && from.block === null) now.pick(from, from);
      }, REST_MS);
    },
    { signal },
  );
  root.addEventListener(
    "pointermove",
    (event) => {
      if (anchor === null) return;
      const [across, along] = [event.clientX - begin.x, event.clientY - begin.y];
      const away = Math.hypot(across, along);
      if (doing === "waiting") {
        const mouse = event.pointerType === "mouse";
        if (away < (mouse ? DRAG_PX : SWIPE_PX)) return;
        clearTimeout(rest);
        // Up and down is the browser's: it scrolls the rows.
        if (!mouse && Math.abs(along) > Math.abs(across)) {
          end();
          return;
        }
        doing = !mouse ? "moving" : anchor.edge !== null ? "pulling" : anchor.block === null ? "picking" : "moving";
        root.setPointerCapture(event.pointerId);
      }
      if (doing === "picking" && anchor.block === null) {
        if (hand === null) frame = requestAnimationFrame(goOn);
        hand = event;
        now.pick(anchor, now.spot(event));
      } else if (doing === "pulling") now.pull(anchor, now.spot(event).time);
      else if (doing === "moving") now.move(event.clientX - last);
      last = event.clientX;
    },
    { signal },
  );
  root.addEventListener(
    "pointerup",
    () => {
      if (anchor === null) return;
      const [did, { block }] = [doing, anchor];
      end();
      answered = did !== "waiting" || block !== null;
      if (did === "waiting" && block !== null) now.open(block);
      else if (did === "picking" && block === null) now.picked();
      else if (did === "pulling") now.pulled();
    },
    { signal },
  );
  root.addEventListener(
    "pointercancel",
    () => {
      const did = doing;
      end();
      // The browser has taken it for scrolling: what was marked before stays.
      if (did === "picking" || did === "pulling") now.cancel();
    },
    { signal },
  );
  // Or the click that browsers make of a tap would hit what it has just opened.
  root.addEventListener("touchend", (event) => answered && event.cancelable && event.preventDefault(), { signal, passive: false });
  root.addEventListener("touchmove", (event) => doing !== "waiting" && event.preventDefault(), { signal, passive: false });
  root.addEventListener("contextmenu", (event) => doing !== "waiting" && event.preventDefault(), { signal });
  root.addEventListener(
    "wheel",
    (event) => {
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
      if (event.ctrlKey || event.metaKey) now.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 240), now.spot(event).time);
      else if (sideways !== 0) now.move(-sideways);
      else return;
      event.preventDefault();
    },
    { signal, passive: false },
  );
  window.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape") return;
      if (doing !== "waiting") {
        end();
        now.cancel();
      } else if (!isOthers(event)) now.drop();
    },
    { signal },
  );
  return {
    update: (hands) => (now = hands),
    destroy: () => {
      end();
      stop.abort();
    },
  };
}

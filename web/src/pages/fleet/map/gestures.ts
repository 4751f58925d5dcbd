/** Mouse and fingers on the map: drag to pan, wheel or pinch to zoom, point or tap for details. */
import { peek } from "../peek.svelte";
import type { MapView } from "./view";

/** A press that moves less than this (in CSS pixels) is a click. */
const CLICK = 5;
const WHEEL_STEP = 60;
const PINCH_STEP = 1.25;
/** A mouse that only passes by shows nothing. */
const HOVER_MS = 90;
/** A wheel that has just scrolled the page goes on doing so when the map comes under it. */
const SCROLLED_MS = 400;

interface Told {
  /** Somebody points at a cell (-1: at none), and whether the details are to stay. */
  pointed: (cell: number, stays: boolean) => void;
}

interface Point {
  x: number;
  y: number;
}

export function listen(view: MapView, { pointed }: Told): () => void {
  const { canvas } = view;
  const stop = new AbortController();
  const options = { signal: stop.signal };
  const down = new Map<number, Point>();
  let pressed: Point | null = null;
  let dragged = false;
  let spread = 0;
  let turned = 0;
  let scrolledAt = 0;
  let hovering: number | undefined;

  const inWindow = (point: Point): [number, number] => {
    const box = canvas.getBoundingClientRect();
    return [(point.x - box.left) * view.ratio, (point.y - box.top) * view.ratio];
  };
  const cellUnder = (point: Point) => view.at(...inWindow(point));
  const hover = (cell: number) => {
    clearTimeout(hovering);
    if (cell !== view.cursor) {
      view.cursor = cell;
      view.request();
    }
    hovering = window.setTimeout(() => pointed(cell, false), HOVER_MS);
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    canvas.setPointerCapture(event.pointerId);
    clearTimeout(hovering);
    if (down.size === 1) {
      pressed = { x: event.clientX, y: event.clientY };
      dragged = false;
    } else {
      dragged = true;
      spread = distance(down);
    }
  }, options);

  canvas.addEventListener("pointermove", (event) => {
    const point = { x: event.clientX, y: event.clientY };
    const before = down.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType === "mouse" && !peek.pinned) hover(cellUnder(point));
      return;
    }
    down.set(event.pointerId, point);
    if (down.size > 1) pinch();
    else drag(before, point);
  }, options);

  function drag(before: Point, point: Point) {
    if (!dragged && pressed !== null && Math.hypot(point.x - pressed.x, point.y - pressed.y) < CLICK) return;
    const from = dragged ? before : (pressed ?? before);
    dragged = true;
    peek.hide();
    view.pan((point.x - from.x) * view.ratio, (point.y - from.y) * view.ratio);
  }

  function pinch() {
    const now = distance(down);
    const [a, b] = [...down.values()];
    const steps = now / spread >= PINCH_STEP ? 1 : spread / now >= PINCH_STEP ? -1 : 0;
    if (steps === 0) return;
    peek.hide();
    view.zoom(steps, ...inWindow({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 }));
    spread = now;
  }

  const lifted = (event: PointerEvent) => {
    if (!down.delete(event.pointerId) || down.size > 0) return;
    if (event.type === "pointerup" && !dragged) {
      const cell = cellUnder({ x: event.clientX, y: event.clientY });
      view.cursor = cell;
      view.request();
      pointed(cell, true);
    }
    pressed = null;
  };
  canvas.addEventListener("pointerup", lifted, options);
  canvas.addEventListener("pointercancel", lifted, options);
  canvas.addEventListener("pointerleave", () => {
    if (down.size === 0 && !peek.pinned) hover(-1);
  }, options);

  canvas.addEventListener("wheel", (event) => {
    if (event.timeStamp - scrolledAt < SCROLLED_MS) return;
    const delta = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : event.deltaY * 40;
    // A touchpad that pinches tells small figures.
    turned += event.ctrlKey ? delta * 8 : delta;
    if (Math.abs(turned) < WHEEL_STEP) {
      event.preventDefault();
      return;
    }
    const zoomed = view.zoom(turned < 0 ? 1 : -1, ...inWindow({ x: event.clientX, y: event.clientY }));
    turned = 0;
    // Nothing to zoom any more: the page scrolls on.
    if (!zoomed && !event.ctrlKey) return;
    event.preventDefault();
    peek.hide();
  }, { ...options, passive: false });
  window.addEventListener("scroll", (event) => (scrolledAt = event.timeStamp), { ...options, passive: true });

  return () => {
    stop.abort();
    clearTimeout(hovering);
  };
}

function distance(points: Map<number, Point>): number {
  const [a, b] = [...points.values()];
  return Math.max(1, Math.hypot(a.x - b.x, a.y - b.y));
}

/** Tells when an element comes near the window, so that thousands of cards cost only those that can be seen. */

const MARGIN = "400px 0px";
type Told = (near: boolean) => void;

const tellers = new WeakMap<Element, Told>();
let observer: IntersectionObserver | null = null;

/** An action: `use:near={(is) => (mounted = is)}`. */
export function near(element: HTMLElement, told: Told): { update: (told: Told) => void; destroy: () => void } {
  observer ??= new IntersectionObserver(
    (entries) => entries.forEach((entry) => tellers.get(entry.target)?.(entry.isIntersecting)),
    { rootMargin: MARGIN },
  );
  tellers.set(element, told);
  observer.observe(element);
  return {
    update: (next) => tellers.set(element, next),
    destroy: () => observer?.unobserve(element),
  };
}

/** The arrow keys in the quick access bar: left and right from chip to chip, up and down between its rows. */

export function moveFocus(event: KeyboardEvent): void {
  const bar = event.currentTarget as HTMLElement;
  const chips = [...bar.querySelectorAll<HTMLElement>(".chip")];
  const at = chips.indexOf(document.activeElement as HTMLElement);
  if (at < 0) return;
  const columns = columnsOf(chips);
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  chips[at + step]?.focus();
}

/** How many stand beside each other. */
function columnsOf(chips: readonly HTMLElement[]): number {
  const below = chips.findIndex((chip) => chip.offsetTop > chips[0].offsetTop);
  return below < 0 ? chips.length : below;
}

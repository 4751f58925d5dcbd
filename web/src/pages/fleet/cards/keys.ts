/** The arrow keys in a card: from GPU to GPU. */

export function moveRow(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("a.gpu")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  if (at < 0 || links[at + step] === undefined) return;
  event.preventDefault();
  links[at + step].focus();
}

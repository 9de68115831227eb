/** Moves the focus along the links of a page, as `j` and `k` do. */

/** @param boxes each is a link, or holds one that stands for it; @returns whether there is anywhere to go */
export function moveFocus(boxes: Iterable<HTMLElement>, key: string): boolean {
  if (key !== 'j' && key !== 'k') return false;
  const all = [...boxes];
  const at = all.findIndex((box) => box.contains(document.activeElement));
  const to = all[at < 0 ? 0 : at + (key === 'j' ? 1 : -1)];
  const link = to?.matches('a') ? to : to?.querySelector('a');
  link?.focus();
  return link !== null && link !== undefined;
}

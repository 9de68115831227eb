/** Copies texts to the clipboard and saves files. */

import { button, h, type Props, replace } from './dom.ts';
import { failureText } from './fetching.ts';

/** Shows a short message, which screen readers announce. */
export function announce(text: string): void {
  const place = document.querySelector('#announce');
  if (place === null) return;
  const line = h('div', { class: 'toast' }, text);
  replace(place, line);
  setTimeout(() => line.remove(), 4000);
}

/** Without clipboard permission (plain HTTP on another machine), copies through a selection. */
async function toClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = h('textarea', { class: 'sr', 'aria-hidden': 'true' });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw new Error('The browser does not allow copying here.');
}

/** A button that copies what `read` gives. */
export function copyButton(
  label: string,
  read: () => string | Promise<string>,
  props: Props = {},
): HTMLButtonElement {
  const node = button(
    label,
    async () => {
      try {
        await toClipboard(await read());
        announce('Copied.');
      } catch (thrown) {
        announce(failureText(thrown) ?? '');
      }
    },
    props,
  );
  return node;
}

/** Offers a file for saving. */
export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = h('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A button that copies, as an element. */

import { announce, toClipboard } from './copy.tsx';
import { button, type Props } from './dom.ts';
import { failureText } from './fetching.ts';

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

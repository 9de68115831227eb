/** Copies texts to the clipboard, saves files, and says briefly what was done. */

import { failureText } from './fetching.ts';
import { t } from './language.ts';
import { Button, type Child } from './ui.tsx';

/** Shows a short message, which screen readers announce. */
export function announce(text: string): void {
  const place = document.querySelector('#announce');
  if (place === null) return;
  const line = document.createElement('div');
  line.className = 'toast';
  line.textContent = text;
  place.replaceChildren(line);
  setTimeout(() => line.remove(), 4000);
}

/** Does something for a click; a failure is announced. */
export async function act(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    announce(failureText(thrown) ?? '');
  }
}

/** Without clipboard permission (plain HTTP on another machine), copies through a selection. */
export async function toClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.className = 'sr';
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw new Error(t`The browser does not allow copying here.`);
}

interface CopyProps {
  readonly read: () => string | Promise<string>;
  readonly children: Child;
  readonly class?: string;
  readonly title?: string;
  readonly 'aria-label'?: string;
}

/** A button that copies what `read` gives. */
export const CopyButton = ({ read, ...rest }: CopyProps) => (
  <Button
    {...rest}
    onClick={() =>
      void act(async () => {
        await toClipboard(await read());
        announce(t`Copied.`);
      })
    }
  />
);

/** An id, with a button that copies it. */
export const Id = ({ id }: { id: string }) => (
  <>
    <code>{id}</code>
    <CopyButton class="tiny" aria-label={t`Copy the id`} read={() => id}>{t`copy`}</CopyButton>
  </>
);

/** Lines to copy: of a configuration, or a command. */
export const Snippet = ({ text }: { text: string }) => (
  <div class="snippet">
    <pre tabIndex={0}>{text}</pre>
    <CopyButton read={() => text}>{t`Copy`}</CopyButton>
  </div>
);

/** Offers a file for saving. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

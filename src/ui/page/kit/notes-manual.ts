/** Descriptions of notes, read from the manual that the gateway serves. */

import { h } from './dom.ts';

let meanings: Promise<ReadonlyMap<string, string>> | undefined;

/** `stripped_3_thinking_blocks` is described as `stripped_N_thinking_blocks`. */
const entryOf = (name: string): string => name.replace(/(^|_)\d+(?=_|$)/g, '$1N');

/** The page of the manual, opened at a note. */
export const noteLink = (name: string): string =>
  `/docs/notes#${encodeURIComponent(entryOf(name).toLowerCase())}`;

async function read(): Promise<ReadonlyMap<string, string>> {
  const all = new Map<string, string>();
  try {
    const response = await fetch('/docs/notes.md');
    if (!response.ok) return all;
    for (const section of (await response.text()).split(/^### /m).slice(1)) {
      const [heading = '', ...lines] = section.split('\n');
      const text = lines.join('\n').split(/^#/m)[0]!.trim().split(/\n\n/)[0]!;
      const description = text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
      for (const name of heading.split(/[,\s]+/)) if (name !== '') all.set(name, description);
    }
  } catch {
    // Without the manual, notes are shown by name only.
  }
  return all;
}

/** The manual's description of a note; undefined when there is none. */
export async function meaningOf(name: string): Promise<string | undefined> {
  meanings ??= read();
  const all = await meanings;
  return all.get(name) ?? all.get(entryOf(name));
}

/** The name as a link into the manual, its meaning as the title. */
export function noteTag(name: string): HTMLElement {
  const tag = h(
    'a',
    { class: 'tag', href: noteLink(name), target: '_blank', rel: 'noopener' },
    name,
  );
  void meaningOf(name).then((description) => {
    if (description !== undefined) tag.title = description;
  });
  return tag;
}

/** Notes: their names with their descriptions, read from the manual that the gateway serves. */

import { useCallback, useLayoutEffect, useState } from 'preact/hooks';
import { manual } from './language.ts';

/** The manual begins an entry with it where a note may mean a loss, or is worth a look. */
const MARK = '▲ ';

interface Meaning {
  readonly text: string;
  readonly isCheap: boolean;
}

let meanings: Promise<ReadonlyMap<string, Meaning>> | undefined;

/** `stripped_3_thinking_blocks` is described as `stripped_N_thinking_blocks`. */
const entryOf = (name: string): string => name.replace(/(^|_)\d+(?=_|$)/g, '$1N');

/** The page of the manual, opened at a note. */
export const noteLink = (name: string): string =>
  manual(`notes#${encodeURIComponent(entryOf(name).toLowerCase())}`);

async function read(): Promise<ReadonlyMap<string, Meaning>> {
  const all = new Map<string, Meaning>();
  try {
    const response = await fetch(`${manual('notes')}.md`);
    if (!response.ok) return all;
    for (const section of (await response.text()).split(/^### /m).slice(1)) {
      const [heading = '', ...lines] = section.split('\n');
      const entry = lines.join('\n').split(/^#/m)[0]!.trim().split(/\n\n/)[0]!;
      const isCheap = !entry.startsWith(MARK);
      const text = (isCheap ? entry : entry.slice(MARK.length))
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .replace(/[`*]/g, '');
      for (const name of heading.split(/[,\s]+/)) if (name !== '') all.set(name, { text, isCheap });
    }
  } catch {
    // Without the manual, notes are shown by name only.
  }
  return all;
}

/** The manual's descriptions; undefined until they are there. */
function useMeanings(ask = true): ReadonlyMap<string, Meaning> | undefined {
  const [all, setAll] = useState<ReadonlyMap<string, Meaning>>();
  useLayoutEffect(() => {
    if (!ask) return;
    meanings ??= read();
    void meanings.then(setAll);
  }, [ask]);
  return all;
}

const meaningIn = (all: ReadonlyMap<string, Meaning> | undefined, name: string) =>
  all?.get(name) ?? all?.get(entryOf(name));

/** Gives the manual's description of a note; undefined where there is none. */
export function useMeaning(): (name: string) => string | undefined {
  const all = useMeanings();
  return (name) => meaningIn(all, name)?.text;
}

/**
 * Tells which notes cost nothing: the manual has no mark at their entry. None is said to cost something before the
 * manual is there.
 * @param ask false: not needed yet
 */
export function useCheap(ask = true): (name: string) => boolean {
  const all = useMeanings(ask);
  return useCallback((name) => all === undefined || meaningIn(all, name)?.isCheap === true, [all]);
}

/** Names as links into the manual, their meanings as titles. */
export function NoteTags({ names }: { names: readonly string[] }) {
  const meaning = useMeaning();
  return names.map((name) => (
    <a
      key={name}
      class="tag"
      href={noteLink(name)}
      target="_blank"
      rel="noopener"
      title={meaning(name)}
    >
      {name}
    </a>
  ));
}

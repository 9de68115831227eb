/** The place of a hit in its text: a few words around it. */

import type { Hit } from '../api.ts';

const BEFORE = 24;
const AFTER = 110;

const line = (text: string) => text.split(/\s+/).join(' ');

/** Around the first word that the text has; lower case may change lengths, the place is then a little off. */
export function snippetOf(text: string, words: readonly string[]): Hit | undefined {
  const lower = text.toLowerCase();
  for (const word of words) {
    const at = lower.indexOf(word.toLowerCase());
    if (at < 0) continue;
    const [from, to] = [Math.max(0, at - BEFORE), at + word.length];
    return {
      before: `${from > 0 ? '…' : ''}${line(text.slice(from, at).toWellFormed())}`,
      hit: line(text.slice(at, to)),
      after: `${line(text.slice(to, to + AFTER).toWellFormed())}${to + AFTER < text.length ? '…' : ''}`,
    };
  }
  return undefined;
}

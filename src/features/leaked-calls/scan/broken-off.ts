/** Recognises the beginning of a leak at the end of a reply that broke off. */

import type { Opener } from '../block/block.ts';

/** Is an opener at the end of the reply a leak that was cut off, rather than text that mentions it? */
export function isLoneOpener(opener: Opener, raw: string): boolean {
  if (opener.type !== 'tag') return false;
  if (opener.lexeme.word.notation === 'bare') return raw.includes('to=functions.');
  return opener.lexeme.word.notation !== 'plain' || opener.lineStart;
}

/** Is this end of the reply the beginning of an opener? */
export function beginsOpener(pending: string, lineStart: boolean): boolean {
  if (!/^[<[\]]/.test(pending)) return false;
  if (/^<\/?[|｜]/.test(pending)) return pending.length >= 4 && !/^<[|｜](?:im|e)/.test(pending);
  // A whole tag without a name is text.
  return pending.length >= 7 && lineStart && !/^<\w+>\s*$/.test(pending);
}

/** The family of an opener that was cut off. */
export function familyOf(pending: string): string {
  if (pending.includes('DSML')) return 'dsml';
  if (pending.startsWith(']')) return 'minimax-m3';
  if (pending.startsWith('[')) return 'mistral';
  return /[｜▁]/.test(pending) ? 'deepseek' : 'unknown';
}

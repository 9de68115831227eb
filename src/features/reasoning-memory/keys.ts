/** By what an answer is known again: the ids of its calls, or its words and the words before it. */

import type { Turn } from '../../conversation/types.ts';

/** Whose answer it was, and who made it. */
export interface KeyScope {
  /** The name of the gateway key; '' without auth. */
  readonly owner: string;
  readonly provider: string;
}

/** Characters of an answer that make it safe to know it by itself. */
const MIN_DISTINCTIVE = 80;
/** Characters at either end by which the words before an answer are known: results can be megabytes. */
const END_LENGTH = 300;

const hashed = (text: string) =>
  new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 40);

/** White space is what clients trim, join and re-wrap. */
const withoutSpace = (text: string) => text.replace(/\s+/g, '');

/** Characters of an id that are looked at: vendors' ids are shorter, and a client's may be megabytes. */
const MAX_ID_LENGTH = 512;
/** What only chance can have made: so many letters and digits in a row, both among them. */
const RANDOM_RUN = 16;
/** Or so many digits. */
const RANDOM_DIGITS = 12;

/** Does the id say by itself which call it is? One pass over its beginning. */
function isRandom(id: string): boolean {
  let run = 0;
  let digits = 0;
  let hasDigit = false;
  let hasLetter = false;
  const end = Math.min(id.length, MAX_ID_LENGTH);
  for (let at = 0; at < end; at++) {
    const code = id.charCodeAt(at);
    const lower = code | 0x20;
    if (code >= 0x30 && code <= 0x39) {
      hasDigit = true;
      if (++digits === RANDOM_DIGITS) return true;
    } else if (lower >= 0x61 && lower <= 0x7a) {
      hasLetter = true;
      digits = 0;
    } else {
      run = 0;
      digits = 0;
      hasDigit = false;
      hasLetter = false;
      continue;
    }
    if (++run >= RANDOM_RUN && hasDigit && hasLetter) return true;
  }
  return false;
}

/**
 * The key of a call. Some vendors count (`call_0`, `functions.Bash:0`): such an id says which call it
 * is only together with the words before the answer.
 */
export function callKey({ owner, provider }: KeyScope, id: string, before: () => string): string {
  const around = isRandom(id) ? '' : `\0${before()}`;
  return hashed(`call\0${owner}\0${provider}\0${id}${around}`);
}

/**
 * Keys of an answer without calls. A short one ("Done.") is known only together with the words before
 * it; a long one by itself too, since clients touch up earlier turns. None for silence.
 */
export function textKeys(
  { owner, provider }: KeyScope,
  said: string,
  before: () => string,
): readonly string[] {
  const text = withoutSpace(said);
  if (text === '') return [];
  const head = `said\0${owner}\0${provider}\0${text}`;
  const exact = hashed(`${head}\0${before()}`);
  return text.length < MIN_DISTINCTIVE ? [exact] : [exact, hashed(head)];
}

/** The words of the two turns in front of index `at`, by their ends. */
export function textBefore(turns: readonly Turn[], at: number): string {
  return `${ends(turns[at - 1])}\0${ends(turns[at - 2])}`;
}

function ends(turn: Turn | undefined): string {
  const text = textOf(turn, true).trim();
  return withoutSpace(
    text.length <= 2 * END_LENGTH ? text : text.slice(0, END_LENGTH) + text.slice(-END_LENGTH),
  );
}

/** The text of a turn, with that of tools' results where asked for. */
export function textOf(turn: Turn | undefined, results = false): string {
  let text = '';
  for (const block of turn?.blocks ?? []) {
    if (block.type === 'text') text += block.text;
    else if (results && block.type === 'tool-result') {
      for (const part of block.content) if (part.type === 'text') text += part.text;
    }
  }
  return text;
}

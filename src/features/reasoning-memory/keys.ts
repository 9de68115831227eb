/** Keys by which an answer is recognised: the ids of its calls, or its text and the text before it. */

import type { Turn } from '../../conversation/types.ts';

/** The owner and the provider of an answer. */
export interface KeyScope {
  /** The name of the gateway key; '' without auth. */
  readonly owner: string;
  readonly provider: string;
}

/** Minimum length at which an answer's text alone identifies it. */
const MIN_DISTINCTIVE = 80;
/** Characters that are used from either end of the text before an answer, since results can be megabytes. */
const END_LENGTH = 300;

const hashed = (text: string) =>
  new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 40);

/** Clients trim, join and re-wrap white space, so it is ignored. */
const withoutSpace = (text: string) => text.replace(/\s+/g, '');

/** Characters of an id that are read. Vendors' ids are shorter; a client could send megabytes. */
const MAX_ID_LENGTH = 512;
/** An id is random if it has a run of this many letters and digits, with at least one of each. */
const RANDOM_RUN = 16;
/** An id is also random if it has this many digits in a row. */
const RANDOM_DIGITS = 12;

/** Does the id alone identify a call? Reads the beginning of the id once. */
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
 * The key of a call. Some vendors number their calls (`call_0`, `functions.Bash:0`); such an id identifies
 * a call only together with the text before the answer.
 */
export function callKey({ owner, provider }: KeyScope, id: string, before: () => string): string {
  const around = isRandom(id) ? '' : `\0${before()}`;
  return hashed(`call\0${owner}\0${provider}\0${id}${around}`);
}

/**
 * Keys of an answer without calls. A short answer ("Done.") is recognised only together with the text
 * before it; a long one also alone, since clients may edit earlier turns. None for an empty answer.
 */
export function textKeys(
  { owner, provider }: KeyScope,
  answer: string,
  before: () => string,
): readonly string[] {
  const text = withoutSpace(answer);
  if (text === '') return [];
  const head = `said\0${owner}\0${provider}\0${text}`;
  const exact = hashed(`${head}\0${before()}`);
  return text.length < MIN_DISTINCTIVE ? [exact] : [exact, hashed(head)];
}

/** The text of the two turns before index `at`, shortened to both ends of each. */
export function textBefore(turns: readonly Turn[], at: number): string {
  return `${ends(turns[at - 1])}\0${ends(turns[at - 2])}`;
}

function ends(turn: Turn | undefined): string {
  const text = textOf(turn, true).trim();
  return withoutSpace(
    text.length <= 2 * END_LENGTH ? text : text.slice(0, END_LENGTH) + text.slice(-END_LENGTH),
  );
}

/** The text of a turn; with `results`, also the text of tool results. */
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

/** Keys by which an answer is recognised: the ids of its calls, or its text and the text before it. */

import {
  isRandom,
  keyHash,
  MIN_DISTINCTIVE,
  withoutSpace,
} from '../../conversation/session/answer-keys.ts';
import type { Turn } from '../../conversation/types.ts';

/** The owner and the provider of an answer. */
export interface KeyScope {
  /** The name of the gateway key; '' without auth. */
  readonly owner: string;
  readonly provider: string;
}

/** Characters that are used from either end of the text before an answer, since results can be megabytes. */
const END_LENGTH = 300;

/**
 * The key of a call. Some vendors number their calls (`call_0`, `functions.Bash:0`); such an id identifies
 * a call only together with the text before the answer.
 */
export function callKey({ owner, provider }: KeyScope, id: string, before: () => string): string {
  const around = isRandom(id) ? '' : `\0${before()}`;
  return keyHash(`call\0${owner}\0${provider}\0${id}${around}`);
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
  const exact = keyHash(`${head}\0${before()}`);
  return text.length < MIN_DISTINCTIVE ? [exact] : [exact, keyHash(head)];
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

/** A text beside another one: the words that only it has are marked, long equal parts are folded. */

import type { TextPart } from '../../../lib/text/text-diff.ts';
import { button, type Child, h } from '../kit/dom.ts';
import { count } from '../kit/format.ts';

/** Characters of an equal part that are shown at each of its ends, and the shortest part that is folded. */
const END = 160;
const FOLDED = 600;

/**
 * @param parts of `diffText`
 * @param side which of the two texts is shown
 * @param fold long equal parts are folded and open on a click
 */
export function wordMarks(
  parts: readonly TextPart[],
  side: 'before' | 'after',
  fold: boolean,
): readonly Child[] {
  const [own, tag] =
    side === 'before' ? (['removed', 'del'] as const) : (['added', 'ins'] as const);
  return parts
    .filter(({ kind }) => kind === 'same' || kind === own)
    .map(({ kind, text }, i, all) => {
      if (kind !== 'same') return h(tag, null, text);
      if (!fold || text.length < FOLDED) return text;
      // The beginning and the end of a text need no words before and after them.
      const head = i === 0 ? '' : text.slice(0, END);
      const tail = i === all.length - 1 ? '' : text.slice(-END);
      const inner = text.slice(head.length, text.length - tail.length);
      const more = button(
        `⋯ ${count(inner.length)} characters the same`,
        () => more.replaceWith(h('span', null, inner)),
        { class: 'samefold' },
      );
      return [head, more, tail];
    });
}

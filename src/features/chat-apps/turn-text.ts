/** The text of a turn: what was said to the model since it last spoke. */

import type { Block, Conversation, TextBlock, Turn } from '../../conversation/types.ts';

import type { ChatRound } from './extension.ts';

/** Characters of a recall's query: the end of a long text is what it comes to. */
const MAX_QUERY = 1000;

/** What is recalled before the model speaks: the user's words of this turn, else the others'. */
export function turnQuery(
  { turns }: Pick<Conversation, 'turns'>,
  round: Pick<ChatRound, 'others' | 'othersSeparate'> | undefined,
): string {
  const own = turnTexts(turns, round).join('\n');
  const query = own.trim() === '' ? (round?.others ?? '') : own;
  // Half a character at the cut is none.
  return query
    .trim()
    .slice(-MAX_QUERY)
    .replace(/^[\uDC00-\uDFFF]/, '')
    .trim();
}

/**
 * The user's texts of the turn that is to be answered, in order: all since the model last spoke. Where
 * the app says apart what the others said, messages before the last one are theirs, of earlier rounds.
 */
export function turnTexts(
  turns: readonly Turn[],
  round: Pick<ChatRound, 'othersSeparate'> | undefined,
): readonly string[] {
  const last = turns.findLastIndex(({ role, blocks }) => role === 'user' && blocks.some(isText));
  const out: string[] = [];
  for (let at = last; at >= 0 && turns[at]!.role !== 'assistant'; at--) {
    if (turns[at]!.role !== 'user') continue;
    const texts = turns[at]!.blocks.flatMap((block) => (isText(block) ? [block.text] : []));
    out.unshift(...texts);
    if (round?.othersSeparate === true) break;
  }
  return out;
}

const isText = (block: Block): block is TextBlock =>
  block.type === 'text' && block.text.trim() !== '';

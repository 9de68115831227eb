/** The texts of the current turn: the messages to the model since it last spoke. */

import type { Block, Conversation, TextBlock, Turn } from '../../conversation/types.ts';

import type { ChatRound } from './extension.ts';

/** Characters of a recall's query; of a longer text the end is used. */
const MAX_QUERY = 1000;

/** The query of a forced recall: the user's text of this turn, otherwise the others' messages. */
export function turnQuery(
  { turns }: Pick<Conversation, 'turns'>,
  round: Pick<ChatRound, 'others' | 'othersSeparate'> | undefined,
): string {
  const own = turnTexts(turns, round).join('\n');
  const query = own.trim() === '' ? (round?.others ?? '') : own;
  // The cut may leave half of a surrogate pair.
  return query
    .trim()
    .slice(-MAX_QUERY)
    .replace(/^[\uDC00-\uDFFF]/, '')
    .trim();
}

/**
 * The user's texts of the current turn, in order: all since the model last spoke. Where the app sends
 * the others' messages separately, only the last user message belongs to the turn.
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

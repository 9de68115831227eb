/** Cuts texts, and inputs of calls, that are longer than a vendor takes. */

import { editNode, mapBlocks, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Block, Conversation } from '../../conversation/types.ts';
import type { NoteStripped } from './thinking.ts';

export interface TooLong {
  readonly of: 'input' | 'text';
  /** Characters that one may have. */
  readonly most: number;
}

/** A text keeps its beginning. The input of a call is replaced, because half of a JSON text cannot be parsed. */
export function withShorterTexts(
  conversation: Conversation,
  { of, most }: TooLong,
  stripped: NoteStripped,
): Conversation {
  let count = 0;
  const cut = (text: string): string => {
    count++;
    const mark = `\n[cut: ${text.length} characters, the vendor takes ${most}]`;
    return text.slice(0, most - mark.length).toWellFormed() + mark;
  };
  const shorter = (block: Block): Block => {
    if (block.type === 'tool-result') {
      const content = mapUnchanged(block.content, shorter);
      return content === block.content ? block : editNode(block, { content });
    }
    if (of === 'text') {
      return block.type === 'text' && block.text.length > most
        ? editNode(block, { text: cut(block.text) })
        : block;
    }
    if (block.type !== 'tool-call' || block.input.length <= most) return block;
    if (block.kind === 'custom') return editNode(block, { input: cut(block.input) });
    count++;
    const input = JSON.stringify({
      cut: `${block.input.length} characters, the vendor takes ${most}`,
    });
    return editNode(block, { input });
  };
  const turns = mapUnchanged(conversation.turns, (turn) => mapBlocks(turn, shorter));
  if (count > 0) stripped('/messages', `${count} too long, of ${of}`);
  return withParts(conversation, { turns });
}

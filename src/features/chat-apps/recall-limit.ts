/** States the recall limit in the instructions, since the prompt decides how often a model recalls. */

import { editNode, withParts } from '../../conversation/edit.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';

/**
 * The conversation with a sentence after the app's own instructions, whose text stays unchanged. The
 * same reference where the sentence is already there.
 */
export function withInstruction(conversation: Conversation, sentence: string): Conversation {
  const { system, turns } = conversation;
  if (system.length > 0) {
    if (system.some((block) => endsWith(block, sentence))) return conversation;
    return withParts(conversation, { system: [...system, { type: 'text', text: sentence }] });
  }
  let lead = 0;
  while (turns[lead]?.role === 'system' || turns[lead]?.role === 'developer') lead++;
  const leading = turns.slice(0, lead);
  if (leading.some(({ blocks }) => blocks.some((block) => endsWith(block, sentence)))) {
    return conversation;
  }
  const own = leading.at(-1);
  const block: Block = { type: 'text', text: sentence };
  if (own === undefined) return withParts(conversation, { system: [block] });
  const changed = editNode(own, { blocks: appended(own, sentence) });
  return withParts(conversation, {
    turns: [...turns.slice(0, lead - 1), changed, ...turns.slice(lead)],
  });
}

const endsWith = (block: Block, sentence: string): boolean =>
  block.type === 'text' && block.text.endsWith(sentence);

/** Appends a paragraph to the last text, so that a system message of one string stays one. */
function appended({ blocks }: Turn, sentence: string): readonly Block[] {
  const last = blocks.at(-1);
  if (last?.type !== 'text') return [...blocks, { type: 'text', text: sentence }];
  return [...blocks.slice(0, -1), editNode(last, { text: `${last.text}\n\n${sentence}` })];
}

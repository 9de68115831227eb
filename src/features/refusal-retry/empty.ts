/** Leaves out texts that say nothing: vendors of Chat behind which Claude, Bedrock, GLM or Kimi is refuse them, as those do. */

import {
  editNode,
  mapBlocks,
  mapUnchanged,
  NO_CONTENT,
  saysNothing,
  withParts,
} from '../../conversation/edit.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';
import type { NoteStripped } from './thinking.ts';

/** A message of the user, or a result, that said nothing says so; another one goes. */
export function withoutEmpty(conversation: Conversation, stripped: NoteStripped): Conversation {
  const turns = mapUnchanged(conversation.turns, (turn): Turn | undefined => {
    const said = mapBlocks(turn, (block) => (saysNothing(block) ? undefined : filledResult(block)));
    if (said.blocks.some((block) => block.type !== 'reasoning')) return said;
    return turn.role === 'user'
      ? editNode(turn, { blocks: [{ type: 'text', text: NO_CONTENT }] })
      : undefined;
  });
  const system = mapUnchanged(conversation.system, (block) =>
    saysNothing(block) ? undefined : block,
  );
  const left = withParts(conversation, { turns, system });
  if (left !== conversation) stripped('/messages', 'empty content');
  return left;
}

function filledResult(block: Block): Block {
  if (block.type !== 'tool-result' || block.by !== 'client') return block;
  const content = mapUnchanged(block.content, (inner) => (saysNothing(inner) ? undefined : inner));
  if (content.length > 0 && content === block.content) return block;
  const filled: readonly Block[] =
    content.length > 0 ? content : [{ type: 'text', text: NO_CONTENT }];
  return editNode(block, { content: filled });
}

/** Replaces images and files that a model cannot read with a mention in text. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Block, MediaBlock, TextBlock } from '../../conversation/types.ts';
import type { FitContext, FitRule } from './rule.ts';

/** A refused image in the history would make every later request fail. Only for requests of the target's own protocol: otherwise the codec does it. */
export const fitMedia: FitRule = (conversation, context) => {
  const { images, documents } = context.profile;
  if (!context.sameProtocol || (images !== false && documents !== false)) return conversation;
  const turns = mapUnchanged(conversation.turns, (turn) => {
    const blocks = withMentions(turn.blocks, context);
    return blocks === turn.blocks ? turn : editNode(turn, { blocks });
  });
  return turns === conversation.turns ? conversation : withParts(conversation, { turns });
};

function withMentions(blocks: readonly Block[], context: FitContext): readonly Block[] {
  return mapUnchanged(blocks, (block): Block => {
    if (block.type === 'tool-result') {
      const content = withMentions(block.content, context);
      return content === block.content ? block : editNode(block, { content });
    }
    return block.type === 'media' && !isAccepted(block, context) ? mention(block, context) : block;
  });
}

function isAccepted({ media }: MediaBlock, { profile }: FitContext): boolean {
  if (media === 'image') return profile.images !== false;
  return media !== 'document' || profile.documents !== false;
}

function mention(block: MediaBlock, { notes }: FitContext): TextBlock {
  const { source, media } = block;
  const name = block.filename ?? block.title;
  notes.add(
    'content_bridged',
    '/messages',
    `${media} as ${source.type === 'text' ? 'text' : 'a mention'}`,
  );
  const text =
    source.type === 'text'
      ? source.text
      : name === undefined
        ? `[${media} not shown]`
        : `[${media} not shown: ${name}]`;
  return { type: 'text', text, ...(block.cache === undefined ? {} : { cache: block.cache }) };
}

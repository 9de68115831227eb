/** Images and files for models that cannot read them, where the client speaks the target's own protocol. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Block, MediaBlock, TextBlock } from '../../conversation/types.ts';
import type { Fit, Rule } from './rule.ts';

/** A mention in words takes the place of what the vendor refuses; an image in the history would break every later request. */
export const fitMedia: Rule = (conversation, fit) => {
  const { images, documents } = fit.profile;
  if (!fit.own || (images !== false && documents !== false)) return conversation;
  const turns = mapUnchanged(conversation.turns, (turn) => {
    const blocks = shown(turn.blocks, fit);
    return blocks === turn.blocks ? turn : editNode(turn, { blocks });
  });
  return turns === conversation.turns ? conversation : withParts(conversation, { turns });
};

function shown(blocks: readonly Block[], fit: Fit): readonly Block[] {
  return mapUnchanged(blocks, (block): Block => {
    if (block.type === 'tool-result') {
      const content = shown(block.content, fit);
      return content === block.content ? block : editNode(block, { content });
    }
    return block.type === 'media' && !taken(block, fit) ? mention(block, fit) : block;
  });
}

function taken({ media }: MediaBlock, { profile }: Fit): boolean {
  if (media === 'image') return profile.images !== false;
  return media !== 'document' || profile.documents !== false;
}

function mention(block: MediaBlock, { notes }: Fit): TextBlock {
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

/** Replaces images and files that a model cannot read with a mention in text. */

import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Block, MediaBlock, TextBlock } from '../../conversation/types.ts';
import type { FitContext, FitRule } from './rule.ts';

/** A refused image in the history would make every later request fail. Only for requests of the target's own protocol: otherwise the codec does it. */
export const fitMedia: FitRule = (conversation, context) => {
  const { images, documents } = context.profile;
  if (!context.sameProtocol) return conversation;
  const moves = movesMedia(context);
  if (images !== false && documents !== false && !moves) return conversation;
  const turns = mapUnchanged(conversation.turns, (turn) => {
    const fitted = withMentions(turn.blocks, context);
    const blocks = moves ? mapUnchanged(fitted, opened) : fitted;
    return blocks === turn.blocks ? turn : editNode(turn, { blocks });
  });
  return turns === conversation.turns ? conversation : withParts(conversation, { turns });
};

/** Chat has a place for a result's images behind it, in a message of the user. */
const movesMedia = ({ profile, protocol }: FitContext): boolean =>
  protocol === 'openai-chat' && profile.imagesInResults === false;

/** A result with media is written anew, and the codec puts them where the target takes them. */
function opened(block: Block): Block {
  if (block.type !== 'tool-result' || block.wire === undefined) return block;
  return block.content.some(({ type }) => type === 'media')
    ? editNode(block, { content: [...block.content] })
    : block;
}

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

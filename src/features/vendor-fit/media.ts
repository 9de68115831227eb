/** Replaces images and files that a model cannot read with a mention in text. */

import { editNode, mapBlocks, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Block, MediaBlock, TextBlock } from '../../conversation/types.ts';
import type { FitContext, FitRule } from './rule.ts';

/** A refused image in the history would make every later request fail. Only for requests of the target's own protocol: otherwise the codec does it. */
export const fitMedia: FitRule = (conversation, context) => {
  const { images, documents } = context.profile;
  if (!context.sameProtocol) return conversation;
  const moves = movesMedia(context);
  if (images !== false && documents !== false && !moves) return conversation;
  const fit = (block: Block): Block => {
    const fitted = withMention(block, context);
    return moves ? opened(fitted) : fitted;
  };
  const turns = mapUnchanged(conversation.turns, (turn) => mapBlocks(turn, fit));
  return withParts(conversation, { turns });
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

function withMention(block: Block, context: FitContext): Block {
  if (block.type === 'tool-result') {
    const content = mapUnchanged(block.content, (inner) => withMention(inner, context));
    return content === block.content ? block : editNode(block, { content });
  }
  return block.type === 'media' && !isAccepted(block, context) ? mention(block, context) : block;
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
  return { type: 'text', text, cache: block.cache };
}

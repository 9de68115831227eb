/** Finds images in a conversation, identifies them, and replaces them by texts. Pure. */

import { createHash } from 'node:crypto';
import {
  editNode,
  innerBlocks,
  mapBlocks,
  mapUnchanged,
  withParts,
} from '../../conversation/edit.ts';
import type { Block, Conversation, MediaBlock, TextBlock, Turn } from '../../conversation/types.ts';

export type ImageBlock = MediaBlock & { readonly media: 'image' };

/** The text for an image without a description. It must never change, since histories contain it. */
export const IMAGE_PLACEHOLDER = '[image not shown]';

/** The text for a described image. It depends on the description alone, not on the turn. */
export const descriptionText = (description: string): string =>
  `[An image, put into words because this model cannot see:\n${description}\n]`;

const QUESTION_LENGTH = 4000;

const isImage = (block: Block): block is ImageBlock =>
  block.type === 'media' && block.media === 'image';

// Cached, since the key of a block is read several times and hashing megabytes takes long.
const keys = new WeakMap<MediaBlock, string>();

/**
 * The key of an image: a hash of its bytes or of its address. Undefined for files that only a vendor
 * can open.
 */
export function imageKey(block: MediaBlock): string | undefined {
  const known = keys.get(block);
  if (known !== undefined) return known;
  const { source } = block;
  if (source.type === 'file-id') return undefined;
  const content =
    source.type === 'base64' ? source.data : source.type === 'url' ? source.url : source.text;
  const key = createHash('sha256').update(`${source.type}\n`).update(content).digest('hex');
  keys.set(block, key);
  return key;
}

export const imageKeys = (turns: readonly Turn[]): readonly string[] => {
  const keysIn = (blocks: readonly Block[]): readonly string[] =>
    blocks.flatMap((block) => {
      if (!isImage(block)) return keysIn(innerBlocks(block));
      const key = imageKey(block);
      return key === undefined ? [] : [key];
    });
  return turns.flatMap(({ blocks }) => keysIn(blocks));
};

/** An image and the user's text about it. */
export interface ImageInContext {
  readonly block: ImageBlock;
  readonly question: string;
}

/** All images in order, including those in tool results and documents. */
export function imagesOf(conversation: Conversation): readonly ImageInContext[] {
  const found: ImageInContext[] = [];
  let userText = '';
  /** Before the first user text: the user's text after the images, valid up to the turn `until`. */
  let textBehind: { readonly until: number; readonly text: string } | undefined;
  conversation.turns.forEach((turn, index) => {
    const own = textOf(turn);
    if (own !== '' && turn.role === 'user') userText = own;
    const collect = (blocks: readonly Block[]) => {
      for (const block of blocks) {
        if (!isImage(block)) collect(innerBlocks(block));
        else {
          if (userText === '' && (textBehind === undefined || index >= textBehind.until)) {
            textBehind = nextText(conversation.turns, index);
          }
          found.push({ block, question: userText === '' ? (textBehind?.text ?? '') : userText });
        }
      }
    };
    collect(turn.blocks);
  });
  return found;
}

const textOf = (turn: Turn): string =>
  turn.blocks
    .flatMap((block) => (block.type === 'text' ? [block.text] : []))
    .join('\n')
    .slice(-QUESTION_LENGTH)
    .toWellFormed()
    .trim();

/**
 * The user's next text, since some clients send the image first and the text as an item of its own.
 * The result is the same for every turn before `until`.
 */
function nextText(
  turns: readonly Turn[],
  from: number,
): { readonly until: number; readonly text: string } {
  let at = from + 1;
  for (; at < turns.length; at++) {
    const turn = turns[at]!;
    if (turn.role === 'assistant') break;
    const text = turn.role === 'user' ? textOf(turn) : '';
    if (text !== '') return { until: at, text };
  }
  return { until: at, text: '' };
}

/** The conversation with each image replaced by a text; the same reference when there is none. */
export function replaceImages(
  conversation: Conversation,
  textFor: (image: ImageBlock) => string,
): Conversation {
  const replace = (block: Block): Block => {
    if (block.type === 'tool-result') {
      const content = mapUnchanged(block.content, replace);
      return content === block.content ? block : editNode(block, { content });
    }
    return isImage(block) ? textBlock(block, textFor(block)) : block;
  };
  const turns = mapUnchanged(conversation.turns, (turn) => mapBlocks(turn, replace));
  return withParts(conversation, { turns });
}

const textBlock = ({ cache }: ImageBlock, text: string): TextBlock => ({
  type: 'text',
  text,
  cache,
});

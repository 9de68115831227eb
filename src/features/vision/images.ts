/** Images in a conversation: where they are, what each is known by, and what takes their place. Pure. */

import { createHash } from 'node:crypto';
import { editNode, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Block, Conversation, MediaBlock, TextBlock, Turn } from '../../conversation/types.ts';

export type ImageBlock = MediaBlock & { readonly media: 'image' };

/** What stands for an image that nobody could describe. Never changes: histories hold it. */
export const IMAGE_PLACEHOLDER = '[image not shown]';

/** What stands for a described image: it depends on the description alone, whatever the turn. */
export const descriptionText = (description: string): string =>
  `[An image, put into words because this model cannot see:\n${description}\n]`;

const QUESTION_LENGTH = 4000;

const isImage = (block: Block): block is ImageBlock =>
  block.type === 'media' && block.media === 'image';

// Asked several times for each block, and its bytes may be megabytes.
const keys = new WeakMap<MediaBlock, string>();

/**
 * What an image is known by: a hash of its bytes, or of its address. Undefined for files that only
 * a vendor can open.
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

/** An image and what the user wants to know of it. */
export interface ImageInContext {
  readonly block: ImageBlock;
  readonly question: string;
}

/** Every image, those inside tool results too, in order. */
export function imagesOf(conversation: Conversation): readonly ImageInContext[] {
  const found: ImageInContext[] = [];
  let userText = '';
  /** Until somebody has said something: the words behind the images of the run of turns up to this one. */
  let textBehind: { readonly until: number; readonly text: string } | undefined;
  conversation.turns.forEach((turn, index) => {
    const own = textOf(turn);
    if (own !== '' && turn.role === 'user') userText = own;
    const collect = (blocks: readonly Block[]) => {
      for (const block of blocks) {
        if (block.type === 'tool-result') collect(block.content);
        else if (isImage(block)) {
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
 * Some clients send the image first and the words as an item of their own behind it. `until` is the turn
 * before which the answer is the same.
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
  const replace = (blocks: readonly Block[]): readonly Block[] =>
    mapUnchanged(blocks, (block): Block => {
      if (block.type === 'tool-result') {
        const content = replace(block.content);
        return content === block.content ? block : editNode(block, { content });
      }
      return isImage(block) ? textBlock(block, textFor(block)) : block;
    });
  const turns = mapUnchanged(conversation.turns, (turn) => {
    const blocks = replace(turn.blocks);
    return blocks === turn.blocks ? turn : editNode(turn, { blocks });
  });
  return turns === conversation.turns ? conversation : withParts(conversation, { turns });
}

const textBlock = ({ cache }: ImageBlock, text: string): TextBlock => ({
  type: 'text',
  text,
  ...(cache === undefined ? {} : { cache }),
});

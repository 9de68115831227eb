/** Builds the request to the vision model for one image and reads its answer. Pure. */

import type { Conversation, MediaBlock, MediaSource } from '../../conversation/types.ts';

const PROMPT =
  'Describe this image for a colleague who cannot see it and will answer the request below. Write ' +
  'down all text, code and numbers in it word for word, keep tables as tables, name the parts of a ' +
  'user interface or diagram with their places and states, then what is shown. Do not answer the ' +
  'request yourself and do not guess at what is not visible.';

const MAX_TOKENS = 4096;
const MAX_TEXT = 12_000;

/** A conversation of one turn: the prompt, the user's text and the image. */
export function visionRequest(
  source: MediaSource,
  question: string,
  prompt: string = PROMPT,
): Conversation {
  const image: MediaBlock = { type: 'media', media: 'image', source };
  const text = question === '' ? prompt : `${prompt}\n\nThe request:\n${question}`;
  return {
    model: '',
    system: [],
    turns: [{ role: 'user', blocks: [{ type: 'text', text }, image] }],
    tools: [],
    settings: { stream: false, maxTokens: MAX_TOKENS },
  };
}

/** The description to store; undefined for an empty answer. */
export function readDescription(answer: string): string | undefined {
  const text = answer.toWellFormed().trim();
  if (text === '') return undefined;
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT).toWellFormed()} …` : text;
}

/** The image type by its first bytes, since clients often name another; undefined for unknown types. */
export function sniffImage(bytes: Uint8Array): string | undefined {
  const starts = (at: number, ...values: number[]) => values.every((v, i) => bytes[at + i] === v);
  if (starts(0, 0x89, 0x50, 0x4e, 0x47)) return 'image/png';
  if (starts(0, 0xff, 0xd8, 0xff)) return 'image/jpeg';
  if (starts(0, 0x47, 0x49, 0x46, 0x38)) return 'image/gif';
  if (starts(0, 0x52, 0x49, 0x46, 0x46) && starts(8, 0x57, 0x45, 0x42, 0x50)) return 'image/webp';
  return undefined;
}

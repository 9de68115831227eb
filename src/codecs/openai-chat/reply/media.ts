/** Decodes and encodes media in answers: `images` and `audio` of a message or a delta. */

import type { Notes } from '../../../conversation/notes.ts';
import type { Block, MediaBlock } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { sourceOfUrl, urlOfSource } from '../parts.ts';
import { list, object, text, wireOf } from '../wire.ts';

/** The images of a message or a delta: `image_url` parts, as OpenRouter sends them. */
export function decodeImages(value: Json | undefined): readonly MediaBlock[] {
  return (list(value) ?? []).flatMap((item): readonly MediaBlock[] => {
    const image = object(item);
    const url = text(object(image?.image_url)?.url) ?? text(image?.image_url);
    if (url === undefined || url === '') return [];
    return [{ type: 'media', media: 'image', source: sourceOfUrl(url) }];
  });
}

/** Audio of an answer. Its transcript is text for clients of other protocols. */
export function decodeAudio(value: Json | undefined): Block | undefined {
  const audio = object(value);
  if (audio === undefined) return undefined;
  const transcript = text(audio.transcript);
  return {
    type: 'opaque',
    name: 'audio',
    ...(transcript === undefined || transcript === '' ? {} : { text: transcript }),
    wire: wireOf(audio),
  };
}

/** An image as a member of `images`; undefined for other media and for images without a URL. */
export function encodeImage(block: Block): JsonObject | undefined {
  const drawn =
    block.type === 'media' && block.media === 'image' ? urlOfSource(block.source) : undefined;
  const url = drawn ?? generatedImage(block);
  return url === undefined ? undefined : { type: 'image_url', image_url: { url } };
}

const FORMATS = new Set(['png', 'jpeg', 'webp']);

/** The data URL of an image that Responses generated: base64, a PNG by default. */
function generatedImage(block: Block): string | undefined {
  if (block.type !== 'tool-call' || block.by !== 'provider') return undefined;
  const item = (block.wire ?? block.residue)?.value;
  if (!isObject(item) || item.type !== 'image_generation_call') return undefined;
  const data = text(item.result);
  if (data === undefined || data === '') return undefined;
  const format = text(item.output_format) ?? 'png';
  return `data:image/${FORMATS.has(format) ? format : 'png'};base64,${data}`;
}

/**
 * Adds a note for content that a Chat client does not get: calls of hosted tools and content without text.
 * Tools that the gateway runs are not part of the answer.
 */
export function noteUnsupportedBlock(block: Block, notes: Notes): void {
  switch (block.type) {
    case 'tool-call':
      if (block.by === 'provider') notes.add('provider_call_dropped', 'choices/0', block.name);
      return;
    case 'tool-result':
      // Its call has the note.
      return;
    case 'media':
      notes.add('content_dropped', 'choices/0', block.media);
      return;
    case 'opaque':
      notes.add(block.text ? 'content_bridged' : 'content_dropped', 'choices/0', block.name);
  }
}

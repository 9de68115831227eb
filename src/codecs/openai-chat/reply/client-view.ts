/** The answer as a Chat client gets it: vendor fields, tool names, the form of calls, and media. */

import { urlOfSource } from '../../../conversation/media-source.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { openaiServiceTier } from '../../../conversation/openai-fields.ts';
import { toolNames } from '../../../conversation/tools/tool-names.ts';
import type { Block, Conversation } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { NAME_LIMIT, PROTOCOL, text } from '../wire.ts';

/** Vendor fields of a reply that Chat clients know. Fields of other protocols are not sent to them. */
const CHAT_REST = [
  'system_fingerprint',
  'service_tier',
  'provider',
  'citations',
  'search_results',
  'web_search',
  'x_groq',
  'prompt_filter_results',
];

/** The vendor fields of a reply or a stream's start that a Chat client may be given. */
export function clientRest(rest: JsonObject | undefined): JsonObject {
  const out: Record<string, Json> = {};
  if (rest === undefined) return out;
  for (const key of CHAT_REST) {
    const value = key === 'service_tier' ? openaiServiceTier(rest[key]) : rest[key];
    if (value !== undefined && value !== null) out[key] = value;
  }
  return out;
}

/**
 * A tool's name as the client declared it. Only a tool in a namespace, which a Chat client cannot declare, gets
 * a flat name.
 */
export function clientName(request: Conversation, name: string, namespace?: string): string {
  return namespace === undefined
    ? name
    : toolNames(request.tools, NAME_LIMIT).flat(name, namespace);
}

/** Does the client know calls of this freeform tool as those of a function? */
export const asFunction = ({ tools }: Conversation, name: string): boolean =>
  tools.some((tool) => tool.type === 'custom' && tool.asFunction === true && tool.name === name);

/** Did the client declare its tools only as legacy `functions`, so that it expects `function_call`? */
export function wantsLegacyCalls(request: Conversation): boolean {
  const value = request.origin?.protocol === PROTOCOL ? request.origin.value : undefined;
  return value?.functions !== undefined && value.tools === undefined;
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

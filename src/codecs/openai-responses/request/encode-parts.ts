/** Encodes blocks as content parts of a message or of a tool's output. */

import { fileName } from '../../../conversation/media-source.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type { KnownNodes } from '../../../conversation/session/known-nodes.ts';
import type { Target } from '../../../conversation/target.ts';
import type { ToolNames } from '../../../conversation/tools/tool-names.ts';
import type { Block, MediaBlock, Role, ToolResultBlock } from '../../../conversation/types.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { compact, ownResidue, ownWire } from '../wire.ts';

/** The parts of a message. Empty text is left out if there is other content. */
export function encodeParts(
  blocks: readonly Block[],
  role: Role,
  at: string,
  context: ItemContext,
): readonly JsonObject[] {
  const parts: JsonObject[] = [];
  for (const block of blocks) {
    if (block.type === 'text' && block.text === '' && !block.wire) {
      if (role === 'assistant' || blocks.length > 1) continue;
    }
    const encoded = encodePart(block, role, at, context);
    const last = encoded.length - 1;
    const marked = last >= 0 && isMarked(block, role, context);
    encoded.forEach((part, i) => {
      parts.push(marked && i === last ? { ...part, ...BREAKPOINT } : part);
    });
  }
  return parts;
}

const BREAKPOINT = { prompt_cache_breakpoint: { mode: 'explicit' } };

/** Only what a user or a developer says can have one. Clients of this protocol set their own. */
const isMarked = (block: Block, role: Role, { target, own }: ItemContext): boolean =>
  'cache' in block &&
  block.cache !== undefined &&
  role !== 'assistant' &&
  !own &&
  Boolean(target.profile.breakpointsAt);

/**
 * One part, two for a document with a context, or none and a note.
 * @param inResult the part belongs to a tool's output
 */
export function encodePart(
  block: Block,
  role: Role,
  at: string,
  context: ItemContext,
  inResult = false,
): readonly JsonObject[] {
  const wire = 'wire' in block ? ownWire(block) : undefined;
  if (isObject(wire)) return [wire];
  const type = role === 'assistant' ? 'output_text' : 'input_text';
  switch (block.type) {
    case 'text': {
      const residue = ownResidue(block);
      if (residue !== undefined && typeof residue.text === 'string') {
        // The offsets of the annotations belong to the old text.
        const { annotations: _, ...rest } = residue;
        return [{ ...rest, text: block.text }];
      }
      // Clients of Gemini end their answers with empty parts, which several vendors refuse.
      return block.text === '' && role === 'assistant' ? [] : [{ type, text: block.text }];
    }
    case 'refusal':
      return role === 'assistant'
        ? [{ type: 'refusal', refusal: block.text }]
        : [{ type, text: block.text }];
    case 'media':
      return [
        ...contextParts(block, type, at, context),
        encodeMedia(block, type, at, context, inResult),
      ];
    case 'opaque':
      if (block.text === undefined || block.text === '') {
        context.notes.add('content_dropped', at, block.name);
        return [];
      }
      context.notes.add('content_bridged', at, block.name);
      return [{ type, text: block.text }];
    case 'reasoning':
      context.notes.add('reasoning_dropped', at, 'outside an assistant turn');
      return [];
    default:
      return [];
  }
}

/** The images of a result, for a target that accepts images only in messages. */
export function imageParts(block: ToolResultBlock, context: ItemContext): readonly JsonObject[] {
  const { profile } = context.target;
  if (profile.images === false || profile.imagesInResults !== false) return [];
  if (ownWire(block) !== undefined) return [];
  return block.content.flatMap((part) => {
    const encoded =
      part.type === 'media' && part.media === 'image' ? image(part, context) : undefined;
    return encoded === undefined ? [] : [encoded];
  });
}

/** The context of a Messages document, as text before the file part, which has no field for it. */
function contextParts(
  block: MediaBlock,
  type: string,
  at: string,
  context: ItemContext,
): readonly JsonObject[] {
  // In a text document it is part of the heading.
  if (!block.context || block.source.type === 'text') return [];
  context.notes.add('content_bridged', at, 'context of a document as text');
  return [{ type, text: block.context }];
}

function encodeMedia(
  block: MediaBlock,
  textType: string,
  at: string,
  context: ItemContext,
  inResult: boolean,
): JsonObject {
  const { profile } = context.target;
  const asText = (text: string, what: string): JsonObject => {
    context.notes.add('content_bridged', at, what);
    return { type: textType, text };
  };
  if (textType === 'output_text') return asText(`[${block.media}]`, `${block.media} as text`);
  switch (block.media) {
    case 'image': {
      if (profile.images === false)
        return asText('[image omitted]', 'the upstream takes no images');
      if (inResult && profile.imagesInResults === false) {
        return { type: textType, text: '[The image follows in the next message.]' };
      }
      return image(block, context) ?? asText('[image omitted]', 'a file id of another vendor');
    }
    case 'document':
      return document(block, context, asText);
    case 'audio':
    case 'video':
      // The official SDK's ResponseInputContent is text, image or file; other parts are refused.
      return asText(`[${block.media} omitted]`, `Responses takes no ${block.media}`);
  }
}

function image(block: MediaBlock, context: ItemContext): JsonObject | undefined {
  const { source } = block;
  const residue = ownResidue(block);
  const head = { ...residue, type: 'input_image', detail: block.detail ?? 'auto' };
  switch (source.type) {
    case 'base64':
      return { ...head, image_url: `data:${source.mediaType};base64,${source.data}` };
    case 'url':
      return { ...head, image_url: source.url };
    case 'file-id':
      return context.fileIds ? { ...head, file_id: source.id } : undefined;
    case 'text':
      return undefined;
  }
}

function document(
  block: MediaBlock,
  context: ItemContext,
  asText: (text: string, what: string) => JsonObject,
): JsonObject {
  const { source } = block;
  const name = block.filename ?? block.title;
  if (source.type === 'text') {
    // Plain text needs no file. The heading shows the document's name and context.
    const head = [name, block.context].filter((line) => line !== undefined).join('\n');
    return asText(head === '' ? source.text : `${head}\n\n${source.text}`, 'document as text');
  }
  if (context.target.profile.documents === false) {
    return asText(
      `[document omitted${name ? `: ${name}` : ''}]`,
      'the upstream takes no documents',
    );
  }
  const head = { ...ownResidue(block), type: 'input_file' };
  switch (source.type) {
    case 'base64':
      return {
        ...head,
        // The API requires a name with file data.
        filename: name || fileName(source.mediaType),
        file_data: `data:${source.mediaType};base64,${source.data}`,
      };
    case 'url':
      return compact({ ...head, file_url: source.url });
    case 'file-id':
      return context.fileIds
        ? { ...head, file_id: source.id }
        : asText(`[document omitted${name ? `: ${name}` : ''}]`, 'a file id of another vendor');
  }
}

export interface ItemContext {
  readonly target: Target;
  readonly notes: Notes;
  readonly names: ToolNames;
  /** The conversation came in this protocol: namespaces are kept. */
  readonly own: boolean;
  /** The target may know the conversation's file ids. */
  readonly fileIds: boolean;
  readonly known: KnownNodes;
}

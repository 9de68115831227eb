/** Encodes the blocks of system, user and tool messages as Chat content, with notes for what changes its form. */

import { FAILED_SILENTLY } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type { Target } from '../../../conversation/target.ts';
import type {
  Block,
  MediaBlock,
  OpaqueBlock,
  ToolResultBlock,
} from '../../../conversation/types.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { mediaPart, textPart } from '../parts.ts';
import { compact, isOwn, list, object, ownResidue, ownWire, text, without } from '../wire.ts';

export interface MessageContext {
  readonly target: Target;
  readonly notes: Notes;
  /** The conversation came in this protocol. */
  readonly own: boolean;
  /** A tool's name on the wire. */
  flat(name: string, namespace?: string): string;
}

/** Adds a note at most once in a request for the same reason. */
export const noteOnce = ({ notes }: MessageContext, name: string, what?: string): void =>
  notes.addOnce(name, '/messages', what);

/** Notes that a cache mark is lost. The prompt means the same without it. */
export function noteCache(block: Block, context: MessageContext): void {
  if ('cache' in block && block.cache !== undefined && !isOwn(block)) {
    noteOnce(context, 'cache_control_dropped');
  }
}

/** The field of a part that carries the block's cache mark to a vendor that takes it; `{}` and a note if none does. */
export function markField(block: Block, context: MessageContext): JsonObject {
  const mark = 'cache' in block ? block.cache : undefined;
  if (mark === undefined) return {};
  const { cacheMarks, breakpointsAt } = context.target.profile;
  if (cacheMarks === true) return { cache_control: { type: 'ephemeral', ...mark } };
  if (breakpointsAt && !context.own) return { prompt_cache_breakpoint: { mode: 'explicit' } };
  noteCache(block, context);
  return {};
}

/** The readable text of blocks, joined, for fields that hold only text. */
export function joinedText(
  blocks: readonly Block[],
  context: MessageContext,
  between: string,
): string {
  const texts: string[] = [];
  for (const block of blocks) {
    const value = blockText(block, context);
    noteCache(block, context);
    if (value !== '') texts.push(value);
  }
  return texts.join(between);
}

/** A block as text; media become a short placeholder. '' and a note for a block without text. */
export function blockText(block: Block, context: MessageContext): string {
  switch (block.type) {
    case 'text':
      if (block.text.startsWith('x-anthropic-billing-header:')) {
        context.notes.add('billing_header_dropped', '/system');
        return '';
      }
      return block.text;
    case 'refusal':
    case 'reasoning':
      return block.text;
    case 'media':
      return mediaText(block, context);
    case 'opaque':
      return opaqueText(block, context);
    case 'tool-call':
      return '';
    case 'tool-result':
      // The result of a hosted tool, outside of its answer.
      context.notes.add('content_bridged', '/messages', `result of ${block.callId} as text`);
      return joinedText(block.content, context, '\n');
  }
}

function opaqueText(block: OpaqueBlock, context: MessageContext): string {
  if (block.name === 'billing_header') {
    context.notes.add('billing_header_dropped', '/system');
    return '';
  }
  const tool = text(object((block.wire ?? block.residue)?.value)?.tool_name);
  const value = block.text ?? (tool === undefined ? undefined : `Tool ${tool} is now available.`);
  if (value === undefined || value === '') {
    noteOnce(context, 'content_dropped', block.name);
    return '';
  }
  noteOnce(context, 'content_bridged', `${block.name} as text`);
  return value;
}

/** The text of a text document; a placeholder and a note for other media. */
function mediaText(block: MediaBlock, context: MessageContext): string {
  const { source } = block;
  if (source.type === 'text') return titled(block, source.text);
  context.notes.add('content_bridged', '/messages', `${block.media} as a mention`);
  const name = block.filename ?? block.title;
  const head = block.context ? `${block.context}\n\n` : '';
  return `${head}[${block.media} not shown${name === undefined ? '' : `: ${name}`}]`;
}

function titled(block: MediaBlock, content: string): string {
  const head = [block.title ?? block.filename, block.context].filter((t) => t !== undefined);
  return head.length === 0 ? content : `${head.join('\n')}\n\n${content}`;
}

/** Does the target accept this kind of media? */
function isSupported(block: MediaBlock, context: MessageContext): boolean {
  const { images, documents } = context.target.profile;
  if (block.media === 'image') return images !== false;
  return block.media !== 'document' || documents !== false;
}

/** The part for a media block; undefined if only text can stand for it. */
export function encodeMedia(block: MediaBlock, context: MessageContext): JsonObject | undefined {
  if (!isSupported(block, context)) return undefined;
  const own = ownWire(block);
  if (!isObject(own) && block.source.type === 'text') return undefined;
  // File ids are only valid at their vendor. OpenAI's two protocols share theirs.
  if (!isOwn(block) && block.source.type === 'file-id' && !sharesFileId(block, context)) {
    return undefined;
  }
  if (!isOwn(block) && block.media === 'document' && block.source.type === 'url') return undefined;
  return mediaPart(supportedDetail(block, context));
}

const sharesFileId = (block: MediaBlock, { target }: MessageContext): boolean =>
  target.profile.fileIds === true && (block.wire ?? block.residue)?.protocol === 'openai-responses';

/** Chat has the details auto, low and high (official SDK). `original` exists in Responses only. */
function supportedDetail(block: MediaBlock, context: MessageContext): MediaBlock {
  if (block.detail !== 'original' || isOwn(block)) return block;
  noteOnce(context, 'parameter_mapped', 'detail original as high');
  return { ...block, detail: 'high' };
}

/** The context of a Messages document as a text part, because a file part has no field for it. */
function contextParts(block: MediaBlock, context: MessageContext): JsonObject[] {
  if (!block.context) return [];
  noteOnce(context, 'content_bridged', 'context of a document as text');
  return [textPart(block.context)];
}

export function inputParts(blocks: readonly Block[], context: MessageContext): JsonObject[] {
  const parts: JsonObject[] = [];
  for (const block of blocks) {
    if (block.type === 'media') {
      const part = encodeMedia(block, context);
      if (part !== undefined) {
        parts.push(...contextParts(block, context), { ...part, ...markField(block, context) });
        continue;
      }
    } else {
      // An edit cannot change opaque content, so its residue is still right.
      const own = block.type === 'opaque' && isOwn(block) ? ownResidue(block) : ownWire(block);
      if (isObject(own) && block.type !== 'tool-result') {
        parts.push(own);
        continue;
      }
    }
    const value = blockText(block, context);
    // An empty text of a Chat client is kept. The vendor decides what it means.
    if (value !== '' || (block.type === 'text' && isOwn(block))) {
      const part = textPart(value, block.type === 'text' ? ownResidue(block) : {});
      parts.push({ ...part, ...markField(block, context) });
    } else noteCache(block, context);
  }
  return parts;
}

/**
 * The tool message of a result, and the media that follow it in a user message, because tool content is text
 * only (OpenAI: `Content blocks are expected to be either text or image_url type`).
 */
export function resultMessage(
  block: ToolResultBlock,
  context: MessageContext,
): { readonly message: JsonObject; readonly media: readonly JsonObject[] } {
  const own = ownWire(block);
  if (isObject(own)) return { message: own, media: [] };
  const from = ownResidue(block);
  const parts: JsonObject[] = [];
  const media: JsonObject[] = [];
  const { imagesInResults } = context.target.profile;
  const takes = (item: MediaBlock) =>
    isOwn(item) ? imagesInResults !== false : imagesInResults === true && item.media === 'image';
  for (const item of block.content) {
    if (item.type === 'media') {
      const part = encodeMedia(item, context);
      if (part !== undefined && takes(item)) {
        parts.push(part);
        continue;
      }
      if (part !== undefined) {
        context.notes.add('content_bridged', '/messages', `${item.media} of a tool result`);
        media.push(...contextParts(item, context), part);
        parts.push(textPart(`[${item.media} attached in the next user message]`));
        continue;
      }
    }
    const unchanged = item.type === 'text' ? ownWire(item) : undefined;
    if (isObject(unchanged)) {
      parts.push(unchanged);
      continue;
    }
    const value = blockText(item, context);
    noteCache(item, context);
    if (value !== '') parts.push(textPart(value, item.type === 'text' ? ownResidue(item) : {}));
  }
  if (block.isError) markError(parts, context);
  const marked = markResult(parts, block, context);
  const legacy = from.role === 'function';
  return {
    message: compact({
      ...without(from, ['role', 'tool_call_id', 'content']),
      role: legacy ? 'function' : 'tool',
      ...(legacy ? { name: block.callId } : { tool_call_id: block.callId }),
      content: resultContent(parts, marked || list(from.content) !== undefined),
    }),
    media,
  };
}

/** Puts a result's mark on its last part. Only user and developer messages can hold breakpoints. */
function markResult(parts: JsonObject[], block: ToolResultBlock, context: MessageContext): boolean {
  if (context.target.profile.cacheMarks !== true || parts.length === 0) {
    noteCache(block, context);
    return false;
  }
  const field = markField(block, context);
  parts.push({ ...parts.pop(), ...field });
  return field.cache_control !== undefined;
}

/** A string, unless a part is not text or the client sent an array. */
function resultContent(parts: readonly JsonObject[], asArray: boolean) {
  if (asArray && parts.length > 0) return parts;
  if (parts.some((part) => part.type !== 'text')) return parts;
  return parts.map((part) => text(part.text) ?? '').join('\n');
}

/** Chat has no error flag on results, so the text says it. */
function markError(parts: JsonObject[], context: MessageContext): void {
  noteOnce(context, 'content_bridged', 'is_error as text');
  const at = parts.findIndex((part) => part.type === 'text');
  const before = at < 0 ? '' : (text(parts[at]!.text) ?? '');
  if (/^error\b/i.test(before)) return;
  if (at < 0) parts.unshift(textPart(`Error: ${FAILED_SILENTLY}`));
  else parts[at] = { ...parts[at]!, text: `Error: ${before || FAILED_SILENTLY}` };
}

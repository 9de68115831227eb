/** Encodes blocks as the parts of a Gemini content, with notes for what changes its form. */

import { FAILED_SILENTLY } from '../../../conversation/edit.ts';
import type { Notes } from '../../../conversation/notes.ts';
import type { Target } from '../../../conversation/target.ts';
import { wrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type {
  Block,
  MediaBlock,
  ReasoningBlock,
  Sealed,
  ToolCallBlock,
  ToolResultBlock,
} from '../../../conversation/types.ts';
import { isObject, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import {
  compact,
  field,
  isOwn,
  ownResidue,
  ownWire,
  PROTOCOL,
  spellingIn,
  without,
} from '../wire.ts';
import { FOREIGN_SIGNATURES, hasEnvelope } from './decode-parts.ts';

export interface PartContext {
  readonly target: Target;
  readonly notes: Notes;
  /** A tool's name on the wire. */
  flat(name: string, namespace?: string): string;
  /** The names of the calls of the history, by id: a result says the name of its function. */
  readonly callNames: ReadonlyMap<string, string>;
}

/** Adds a note at most once in a request for the same reason. */
export const noteOnce = ({ notes }: PartContext, name: string, what?: string): void =>
  notes.addOnce(name, '/contents', what);

/** The part that a block was decoded from, if it still says the same to this target. */
export function verbatim(block: Block, { target, notes }: PartContext): JsonObject | undefined {
  const own = ownWire(block) ?? unchanged(block);
  if (!isObject(own) || hasEnvelope(own)) return undefined;
  const { sealed } = block as { readonly sealed?: Sealed };
  if (sealed?.provider !== undefined && sealed.provider !== target.provider) return undefined;
  return target.profile.foreignParts === false && block.type === 'media'
    ? withUsualBytes(own, block, notes)
    : own;
}

/** Google's clients write bytes in the alphabet for URLs, which relays in Go refuse. */
function withUsualBytes(part: JsonObject, { source }: MediaBlock, notes: Notes): JsonObject {
  const inline = field(part, 'inlineData');
  if (!isObject(inline) || source.type !== 'base64' || inline.data === source.data) return part;
  notes.addOnce('content_bridged', '/contents', 'bytes in the usual base64');
  return { ...part, [spellingIn(part, 'inlineData')]: { ...inline, data: source.data } };
}

/** The part of an edited block whose edit did not touch what the part says. */
function unchanged(block: Block): JsonObject | undefined {
  const { residue } = block;
  if (residue?.protocol !== PROTOCOL || !isObject(residue.value)) return undefined;
  switch (block.type) {
    case 'text':
    case 'reasoning':
      return residue.value.text === block.text ? residue.value : undefined;
    case 'tool-call':
    case 'tool-result':
      return block.by === 'provider' ? residue.value : undefined;
    default:
      return undefined;
  }
}

/** A block as parts for the user or for the instructions. */
export function inputParts(block: Block, context: PartContext): readonly JsonObject[] {
  const own = verbatim(block, context);
  if (own !== undefined) return [own];
  noteCache(block, context);
  switch (block.type) {
    case 'text':
      return textParts(block.text, block, context);
    case 'media':
      return mediaParts(block, context);
    case 'refusal':
    case 'reasoning':
      return textParts(block.text, block, context);
    case 'opaque':
      return opaqueParts(block, context);
    case 'tool-result':
      return textParts(joinedText(block.content, context), block, context);
    case 'tool-call':
      return [];
  }
}

function textParts(value: string, block: Block, context: PartContext): readonly JsonObject[] {
  if (value.startsWith('x-anthropic-billing-header:')) {
    context.notes.add('billing_header_dropped', '/systemInstruction');
    return [];
  }
  if (block.type !== 'text') return value === '' ? [] : [{ text: value }];
  const thoughtSignature = signatureFor(block.sealed, context);
  // Google refuses a part without content.
  if (value === '' && thoughtSignature === undefined) return [];
  const from = without(ownResidue(block), ['thoughtSignature']);
  return [compact({ ...from, text: value, thoughtSignature })];
}

function opaqueParts(
  block: Block & { type: 'opaque' },
  context: PartContext,
): readonly JsonObject[] {
  if (block.name === 'billing_header') {
    context.notes.add('billing_header_dropped', '/systemInstruction');
    return [];
  }
  if (isOwn(block)) return [ownResidue(block)];
  if (block.text === undefined || block.text === '') {
    noteOnce(context, 'content_dropped', block.name);
    return [];
  }
  noteOnce(context, 'content_bridged', `${block.name} as text`);
  return [{ text: block.text }];
}

function noteCache(block: Block, context: PartContext): void {
  if ('cache' in block && block.cache !== undefined) noteOnce(context, 'cache_control_dropped');
}

/** The readable text of blocks, line by line. */
export function joinedText(blocks: readonly Block[], context: PartContext): string {
  const texts: string[] = [];
  for (const block of blocks) {
    for (const part of inputParts(block, context)) {
      if (typeof part.text === 'string' && part.text !== '') texts.push(part.text);
    }
  }
  return texts.join('\n');
}

/** Types by the end of an address, for media that come without one. */
const TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  pdf: 'application/pdf',
  txt: 'text/plain',
  mp3: 'audio/mp3',
  wav: 'audio/wav',
  mp4: 'video/mp4',
  mov: 'video/mov',
  webm: 'video/webm',
};
const USUAL = {
  image: 'image/jpeg',
  document: 'application/pdf',
  audio: 'audio/wav',
  video: 'video/mp4',
} as const;

function typeOfUrl(url: string, media: MediaBlock['media']): string {
  const path = URL.canParse(url) ? new URL(url).pathname : '';
  return TYPES[path.slice(path.lastIndexOf('.') + 1).toLowerCase()] ?? USUAL[media];
}

/** Media as `inlineData` or `fileData`; a mention where the target cannot have it. */
export function mediaParts(block: MediaBlock, context: PartContext): readonly JsonObject[] {
  const { images, documents } = context.target.profile;
  const { source, media } = block;
  const head = block.context ? [{ text: block.context }] : [];
  const refused =
    media === 'image' ? images === false : media === 'document' && documents === false;
  if (!refused) {
    switch (source.type) {
      case 'base64':
        return [...head, { inlineData: { mimeType: source.mediaType, data: source.data } }];
      case 'url':
        return [
          ...head,
          { fileData: { mimeType: typeOfUrl(source.url, media), fileUri: source.url } },
        ];
      case 'file-id':
        if (isOwn(block)) return [ownResidue(block)];
        break;
      case 'text': {
        const title = block.title ?? block.filename;
        return [
          ...head,
          { text: title === undefined ? source.text : `${title}\n\n${source.text}` },
        ];
      }
    }
  }
  context.notes.add('content_bridged', '/contents', `${media} as a mention`);
  const name = block.filename ?? block.title;
  return [...head, { text: `[${media} not shown${name === undefined ? '' : `: ${name}`}]` }];
}

/**
 * A block of an answer as parts. `needsSignature`: this call is the first of its step, which newer models
 * want signed.
 */
export function answerParts(
  block: Block,
  context: PartContext,
  needsSignature: boolean,
): readonly JsonObject[] {
  if (block.type === 'tool-call') return callParts(block, context, needsSignature);
  const own = verbatim(block, context);
  if (own !== undefined) return [own];
  if (block.type === 'reasoning') return thoughtParts(block, context);
  if (block.type === 'tool-result') {
    // The result of a tool that another vendor ran, whose call this one never saw.
    const result = joinedText(block.content, context);
    if (result === '') return [];
    noteOnce(context, 'content_bridged', 'result of a vendor-run tool as text');
    return [{ text: result }];
  }
  return inputParts(block, context);
}

/** A thought goes back to its maker only: to others it means nothing, and Gemini does not read unsigned ones. */
function thoughtParts(block: ReasoningBlock, context: PartContext): readonly JsonObject[] {
  const signature = signatureFor(block.sealed, context);
  if (signature === undefined) {
    if (block.text !== '' || block.sealed !== undefined) noteOnce(context, 'reasoning_dropped');
    return [];
  }
  return [{ text: block.text, thought: true, thoughtSignature: signature }];
}

/** The signature that the target reads; undefined if there is none, or another maker's. */
export function signatureFor(
  sealed: Sealed | undefined,
  { target }: Pick<PartContext, 'target'>,
): string | undefined {
  if (sealed === undefined || sealed.protocol !== PROTOCOL || sealed.value === '') return undefined;
  const same = sealed.provider === undefined || sealed.provider === target.provider;
  return same ? sealed.value : undefined;
}

function callParts(
  block: ToolCallBlock,
  context: PartContext,
  needsSignature: boolean,
): readonly JsonObject[] {
  const wanted = needsSignature && context.target.profile.callSignatures === true;
  const own = verbatim(block, context);
  if (own !== undefined && (!wanted || block.by === 'provider' || isSigned(own))) return [own];
  if (block.by === 'provider') {
    noteOnce(context, 'provider_call_dropped', block.name);
    return [];
  }
  let signature = signatureFor(block.sealed, context);
  if (signature === undefined && block.sealed !== undefined) {
    noteOnce(context, 'reasoning_seal_dropped');
  }
  if (signature === undefined && wanted) {
    noteOnce(
      context,
      'call_signature_skipped',
      'a call that the model did not make, or whose signature is lost',
    );
    signature = FOREIGN_SIGNATURES[0];
  }
  const from = without(ownResidue(block), ['functionCall', 'thoughtSignature']);
  const name = context.flat(block.name, block.namespace);
  const functionCall = compact({ id: wireId(block), name, args: argumentsOf(block) });
  return [compact({ ...from, functionCall, thoughtSignature: signature })];
}

const isSigned = (part: JsonObject): boolean =>
  typeof (part.thoughtSignature ?? part.thought_signature) === 'string';

/** The id on the wire: as it came; a call of this protocol that came without one goes back without one. */
function wireId(block: ToolCallBlock): string | undefined {
  if (!isOwn(block)) return block.id;
  const call = ownResidue(block).functionCall ?? ownResidue(block).function_call;
  return isObject(call) && typeof call.id === 'string' ? call.id : undefined;
}

/** The arguments as the object that Google wants. */
export function argumentsOf({ kind, input }: Pick<ToolCallBlock, 'kind' | 'input'>): JsonObject {
  if (input.trim() === '' && kind !== 'custom') return {};
  const value = tryParse(kind === 'custom' ? wrapFreeform(input) : input);
  if (isObject(value)) return value;
  return value === undefined ? { input } : { input: value };
}

/** The response of a function, and media that the target takes only beside it. */
export interface ResultParts {
  readonly part: JsonObject;
  readonly media: readonly JsonObject[];
}

/** A tool result as a `functionResponse`: `{output}`, or `{error}` where the tool failed. */
export function resultParts(block: ToolResultBlock, context: PartContext): ResultParts {
  const own = verbatim(block, context);
  if (own !== undefined) return { part: own, media: [] };
  noteCache(block, context);
  const from = ownResidue(block);
  const said: Block[] = [];
  const media: JsonObject[] = [];
  for (const item of block.content) {
    if (item.type !== 'media' || item.source.type === 'text') said.push(item);
    else {
      for (const part of mediaParts(item, context)) {
        if (typeof part.text === 'string') said.push({ type: 'text', text: part.text });
        else media.push(part);
      }
    }
  }
  const inside = isOwn(block) || context.target.profile.imagesInResults === true;
  let text = joinedText(said, context);
  if (media.length > 0 && !inside) {
    noteOnce(context, 'content_bridged', 'media of a tool result beside it');
    text = text === '' ? '[attached below]' : `${text}\n[attached below]`;
  }
  if (text === '' && block.isError) text = FAILED_SILENTLY;
  const before = isObject(from.functionResponse ?? from.function_response)
    ? ((from.functionResponse ?? from.function_response) as JsonObject)
    : {};
  const id = isOwn(block) ? before.id : block.callId;
  const name = context.callNames.get(block.callId) ?? before.name ?? 'unknown';
  const functionResponse = compact({
    ...without(before, ['parts']),
    id,
    name,
    response: { [block.isError ? 'error' : 'output']: text },
    parts: inside && media.length > 0 ? media : undefined,
  });
  return {
    part: { ...without(from, ['functionResponse']), functionResponse },
    media: inside ? [] : media,
  };
}

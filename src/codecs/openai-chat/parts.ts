/** Decodes and encodes content parts of Chat messages: text, media, annotations and sources. */

import { invalid, wrongType } from '../../conversation/errors.ts';
import { fileName, kindOfData, sourceOfUrl, urlOfSource } from '../../conversation/media-source.ts';
import { openSeal } from '../../conversation/seal.ts';
import type {
  Block,
  CacheMark,
  Citation,
  MediaBlock,
  MediaSource,
  Sealed,
} from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import {
  compact,
  list,
  number,
  object,
  ownResidue,
  ownWire,
  PROTOCOL,
  text,
  wireOf,
} from './wire.ts';

/**
 * A message's `content`: a string becomes one text block without a wire ('' gives none), an array becomes one
 * block for each part, null and undefined become none.
 * @throws GatewayError invalid_request naming `where`
 */
export function decodeContent(content: Json | undefined, where: string): readonly Block[] {
  if (content === undefined || content === null || content === '') return [];
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return decodeParts(content, where);
}

function decodeParts(content: Json, where: string): readonly Block[] {
  const parts = list(content);
  if (parts === undefined) throw wrongType(where, 'one of a string or array of objects', content);
  return parts.map((part, i) => decodePart(part, `${where}[${i}]`));
}

function decodePart(part: Json, where: string): Block {
  const wire = wireOf(part);
  // OpenAI refuses strings in the array, vLLM accepts them.
  if (typeof part === 'string') return { type: 'text', text: part, wire };
  if (!isObject(part)) throw wrongType(where, 'an object', part);
  const type = text(part.type);
  switch (type) {
    case 'text':
    case 'input_text':
    case 'output_text': {
      const value = text(part.text);
      if (value === undefined) throw wrongType(`${where}.text`, 'a string', part.text);
      return { type: 'text', text: value, ...cacheOf(part), wire };
    }
    case 'refusal':
      return { type: 'refusal', text: text(part.refusal) ?? '', wire };
    case 'thinking':
    case 'reasoning':
      return { type: 'reasoning', text: reasoningOf(part) ?? '', ...sealOf(part), wire };
    case 'tool_use':
    case 'tool_result':
      return decodeMessagesBlock(part, type, where);
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', ...sealOf(part), wire };
    default:
      return { ...(decodeMedia(part, type, where) ?? opaque(part, type)), wire };
  }
}

/** The cache mark of a part, a message or a tool, as OpenRouter and LiteLLM take it. */
export function cacheOf(part: JsonObject): { readonly cache?: CacheMark } {
  const mark = object(part.cache_control);
  return mark === undefined ? {} : { cache: compact({ ttl: text(mark.ttl) }) as CacheMark };
}

/** The signature of Anthropic's thinking, which its clients send inside of Chat messages. */
function sealOf(part: JsonObject): { readonly sealed?: Sealed } {
  const redacted = part.type === 'redacted_thinking';
  const value = text(redacted ? part.data : part.signature);
  if (!value) return {};
  const kind = redacted ? 'redacted' : 'signature';
  return { sealed: openSeal(value) ?? { protocol: 'anthropic-messages', kind, value } };
}

/**
 * A call or a result in the form of Messages, as Cursor and others put them into Chat messages for models named
 * claude-…. Without a wire: where the message is written anew, they become calls and tool messages.
 */
function decodeMessagesBlock(
  part: JsonObject,
  type: 'tool_use' | 'tool_result',
  where: string,
): Block {
  const field = type === 'tool_use' ? 'id' : 'tool_use_id';
  const id = text(part[field]);
  if (id === undefined) throw invalid(`Missing required parameter: '${where}.${field}'.`, where);
  if (type === 'tool_result') {
    const content = decodeContent(part.content, `${where}.content`);
    const isError = part.is_error === true;
    return {
      type: 'tool-result',
      callId: id,
      kind: 'function',
      content,
      isError,
      by: 'client',
      ...cacheOf(part),
    };
  }
  const name = text(part.name);
  if (name === undefined) throw invalid(`Missing required parameter: '${where}.name'.`, where);
  const { input } = part;
  return {
    type: 'tool-call',
    id,
    name,
    kind: 'function',
    input: typeof input === 'string' ? input : input == null ? '' : JSON.stringify(input),
    by: 'client',
    ...cacheOf(part),
  };
}

function opaque(part: JsonObject, type: string | undefined): Block {
  return { type: 'opaque', name: type ?? 'part', text: text(part.text), wire: wireOf(part) };
}

function decodeMedia(
  part: JsonObject,
  type: string | undefined,
  where: string,
): MediaBlock | undefined {
  if (type === 'image_url') {
    const image = object(part.image_url);
    const url = text(part.image_url) ?? text(image?.url);
    if (url === undefined) {
      throw invalid(`Missing required parameter: '${where}.image_url.url'.`, `${where}.image_url`);
    }
    const source = sourceOfUrl(url);
    return {
      type: 'media',
      media: kindOfData(source, 'image'),
      source,
      detail: text(image?.detail),
      ...cacheOf(part),
    };
  }
  if (type === 'image' || type === 'document') {
    const source = sourceOfMessages(object(part.source) ?? {});
    if (source === undefined) return undefined;
    return {
      type: 'media',
      media: type,
      source,
      title: text(part.title),
      context: text(part.context),
      ...cacheOf(part),
    };
  }
  if (type === 'input_audio') {
    const audio = object(part.input_audio);
    const data = text(audio?.data) ?? text(part.input_audio);
    if (data === undefined) return undefined;
    const format = text(audio?.format) ?? 'wav';
    const source: MediaSource = /^(?:data|https?):/.test(data)
      ? sourceOfUrl(data)
      : { type: 'base64', mediaType: format === 'mp3' ? 'audio/mpeg' : `audio/${format}`, data };
    return { type: 'media', media: 'audio', source };
  }
  const linked = type === undefined ? undefined : LINKED.get(type);
  if (linked !== undefined) {
    const [field, media] = linked;
    const url = text(part[field]) ?? text(object(part[field])?.url);
    return url === undefined
      ? undefined
      : { type: 'media', media, source: sourceOfUrl(url), ...cacheOf(part) };
  }
  if (type === 'file') return decodeFile(object(part.file) ?? {});
  // Parts in the form of Responses, whose texts are read here, too.
  if (type === 'input_file') return decodeFile(part);
  const image = type === 'input_image' ? text(part.image_url) : undefined;
  if (image === undefined) return undefined;
  const source = sourceOfUrl(image);
  return { type: 'media', media: kindOfData(source, 'image'), source, detail: text(part.detail) };
}

/**
 * Parts that hold an address, with its field: OpenRouter and Qwen (`video_url`; the SDK of OpenRouter calls it
 * `input_video`), vLLM (`audio_url`), Mistral (`document_url`).
 */
const LINKED: ReadonlyMap<string, readonly [field: string, media: MediaBlock['media']]> = new Map([
  ['video_url', ['video_url', 'video']],
  ['input_video', ['video_url', 'video']],
  ['audio_url', ['audio_url', 'audio']],
  ['document_url', ['document_url', 'document']],
]);

/** The source of an image or a document in the form of Messages. */
function sourceOfMessages(source: JsonObject): MediaSource | undefined {
  const data = text(source.data);
  const mediaType = text(source.media_type);
  const url = text(source.url);
  const id = text(source.file_id);
  if (source.type === 'url') return url === undefined ? undefined : sourceOfUrl(url);
  if (source.type === 'file') return id === undefined ? undefined : { type: 'file-id', id };
  if (data === undefined) return undefined;
  return source.type === 'text'
    ? { type: 'text', mediaType: mediaType ?? 'text/plain', text: data }
    : { type: 'base64', mediaType: mediaType ?? 'application/octet-stream', data };
}

function decodeFile(file: JsonObject): MediaBlock | undefined {
  const data = text(file.file_data) ?? text(file.file_url);
  const id = text(file.file_id);
  const source: MediaSource | undefined =
    data !== undefined
      ? data.startsWith('data:') || data.startsWith('http')
        ? sourceOfUrl(data)
        : { type: 'base64', mediaType: 'application/pdf', data }
      : id !== undefined
        ? { type: 'file-id', id }
        : undefined;
  if (source === undefined) return undefined;
  return {
    type: 'media',
    media: kindOfData(source, 'document'),
    source,
    filename: text(file.filename),
  };
}

/** Mistral's `thinking`: a string, or a list of text parts. */
function thinkingText(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  let out = '';
  for (const part of list(value) ?? []) {
    out += typeof part === 'string' ? part : (text(object(part)?.text) ?? '');
  }
  return out;
}

/**
 * The text of a part of reasoning, undefined for other parts: Mistral's `thinking`, and `reasoning` with a summary
 * (Databricks, github.com/posit-dev/chatlas/pull/397) or a text (LangChain).
 */
export function reasoningOf(part: JsonObject): string | undefined {
  if (part.type === 'thinking') return thinkingText(part.thinking);
  if (part.type !== 'reasoning') return undefined;
  return thinkingText(part.summary ?? part.text ?? part.reasoning);
}

/** Content of an answer in parts (Mistral, Databricks), which OpenAI's clients join as objects or refuse. */
export const isInParts = (content: Json | undefined): boolean =>
  Array.isArray(content) &&
  content.every(
    (part) => isObject(part) && (part.type === 'text' || reasoningOf(part) !== undefined),
  );

/** A text part that keeps the other fields of `from` (cache_control, …). */
export function textPart(value: string, from: JsonObject = {}): JsonObject {
  return { ...from, type: typeof from.type === 'string' ? from.type : 'text', text: value };
}

/** Does an edited media block still equal the part that it was decoded from? */
function isUnchanged(from: JsonObject, block: MediaBlock): boolean {
  const type = text(from.type);
  // A part without a URL was never decoded into a media block.
  if (type === undefined || (type === 'image_url' && from.image_url === undefined)) return false;
  const before = decodeMedia(from, type, '');
  return (
    before !== undefined &&
    before.media === block.media &&
    before.detail === block.detail &&
    before.filename === block.filename &&
    Bun.deepEquals(before.source, block.source)
  );
}

/** A media block as a part; undefined if Chat cannot express it. */
export function mediaPart(block: MediaBlock): JsonObject | undefined {
  const own = ownWire(block);
  if (isObject(own)) return own;
  const from = ownResidue(block);
  const { source } = block;
  if (isUnchanged(from, block)) return from;
  if (block.media === 'image') {
    const url = urlOfSource(source);
    if (url === undefined) return undefined;
    return { ...from, type: 'image_url', image_url: compact({ url, detail: block.detail }) };
  }
  if (block.media === 'video') {
    const url = urlOfSource(source);
    return url === undefined ? undefined : { ...from, type: 'video_url', video_url: { url } };
  }
  if (block.media === 'audio') {
    if (source.type !== 'base64') return undefined;
    const subtype = source.mediaType.slice(source.mediaType.indexOf('/') + 1);
    const format = subtype === 'mpeg' ? 'mp3' : subtype.replace(/^x-/, '');
    return { ...from, type: 'input_audio', input_audio: { data: source.data, format } };
  }
  if (source.type === 'file-id') return { type: 'file', file: { file_id: source.id } };
  return {
    ...from,
    type: 'file',
    file: {
      filename: block.filename ?? block.title ?? nameFor(source),
      file_data: urlOfSource(source) ?? '',
    },
  };
}

/** A part in the form of another API as Chat has it; the same reference if it is Chat's own, or unknown. */
export function ownForm(part: JsonObject): JsonObject {
  const { type, image_url: image } = part;
  if (type === 'input_text' || type === 'output_text') {
    return typeof part.text === 'string' ? textPart(part.text, { ...part, type: 'text' }) : part;
  }
  const isOther = type === 'image_url' ? typeof image === 'string' : OTHERS.has(type);
  const block = isOther ? decodeMedia(part, text(type), '') : undefined;
  const own = block && mediaPart(block);
  if (own === undefined) return part;
  return part.cache_control === undefined ? own : { ...own, cache_control: part.cache_control };
}

const OTHERS: ReadonlySet<Json | undefined> = new Set([
  'input_image',
  'input_file',
  'image',
  'document',
]);

const nameFor = (source: MediaSource) =>
  fileName(source.type === 'base64' ? source.mediaType : 'application/pdf');

/** The `annotations` of a message or a delta, in OpenAI's nested form or the flat form of gateways. */
export function decodeAnnotations(value: unknown): readonly Citation[] {
  const out: Citation[] = [];
  for (const item of list(value) ?? []) {
    const annotation = object(item);
    if (annotation === undefined || annotation.type !== 'url_citation') continue;
    const cited = object(annotation.url_citation) ?? annotation;
    out.push({
      url: text(cited.url),
      title: text(cited.title),
      citedText: text(cited.content),
      start: number(cited.start_index),
      end: number(cited.end_index),
      wire: { protocol: PROTOCOL, value: annotation },
    });
  }
  return out;
}

/**
 * A citation as an annotation; undefined for a source without a URL (a document of the request), which Chat
 * cannot express.
 * @param from, to the bounds of the whole text, for a citation without offsets
 */
export function encodeAnnotation(
  citation: Citation,
  from: number,
  to: number,
): JsonObject | undefined {
  const own = ownWire(citation);
  if (isObject(own) && from === 0) return own;
  if (citation.url === undefined) return undefined;
  return {
    type: 'url_citation',
    url_citation: {
      start_index: citation.start === undefined ? from : from + citation.start,
      end_index: citation.end === undefined ? to : from + citation.end,
      title: citation.title ?? '',
      url: citation.url,
    },
  };
}

/** The sources beside `choices`: Perplexity's `search_results` or `citations`, GLM's `web_search`. */
export function decodeSources(body: JsonObject): readonly Citation[] {
  const found = list(body.search_results) ?? list(body.web_search) ?? list(body.citations) ?? [];
  const out: Citation[] = [];
  for (const item of found) {
    if (typeof item === 'string') out.push({ url: item });
    else if (isObject(item)) {
      const url = text(item.url) ?? text(item.link);
      const title = text(item.title);
      if (url) out.push(title === undefined ? { url } : { url, title });
    }
  }
  return out;
}

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
  return {
    type: 'opaque',
    name: 'audio',
    text: text(audio.transcript) || undefined,
    wire: wireOf(audio),
  };
}

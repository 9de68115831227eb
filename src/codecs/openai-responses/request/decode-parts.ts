/** Decodes the content parts of messages and tool outputs. */

import { invalid, missing } from '../../../conversation/errors.ts';
import { kindOfData, sourceOfUrl } from '../../../conversation/media-source.ts';
import type { Block, Citation, MediaBlock, MediaSource } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { number, object, objects, text, wireOf } from '../wire.ts';

/**
 * @param path the part's path for error messages: `input[3].content[0]`
 * @throws GatewayError invalid_request
 */
export function decodePart(part: Json, path: string): Block {
  // Against the specification, but some SDK wrappers send strings in a list of parts.
  if (typeof part === 'string') return { type: 'text', text: part };
  if (!isObject(part)) throw invalid(`Invalid type for '${path}': expected an object.`, path);
  const type = part.type;
  if (typeof type !== 'string') throw missing(`${path}.type`);
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
    case 'reasoning_text':
      return decodeText(part, path);
    case 'refusal':
      return { type: 'refusal', text: text(part.refusal) ?? '', wire: wireOf(part) };
    case 'input_image':
    case 'image_url':
      return decodeImage(part, path);
    case 'input_file':
    case 'file':
      return decodeFile(part, path);
    case 'input_audio':
      return decodeAudio(part, path);
    case 'input_video':
      return decodeVideo(part) ?? { type: 'opaque', name: type, wire: wireOf(part) };
    case 'encrypted_content':
      // Codex's agent messages: without encryption this is the task in plain text.
      return { type: 'text', text: text(part.encrypted_content) ?? '', wire: wireOf(part) };
    default:
      return { type: 'opaque', name: type, text: text(part.text), wire: wireOf(part) };
  }
}

function decodeText(part: JsonObject, path: string): Block {
  const value = text(part.text);
  if (value === undefined) throw missing(`${path}.text`);
  const citations = objects(part.annotations).map(decodeAnnotation);
  return {
    type: 'text',
    text: value,
    ...(citations.length > 0 ? { citations } : {}),
    wire: wireOf(part),
  };
}

/** An annotation of output text as a citation. Kinds without a URL survive in its `wire`. */
export function decodeAnnotation(annotation: JsonObject): Citation {
  return {
    url: text(annotation.url),
    title: text(annotation.title) ?? text(annotation.filename),
    start: number(annotation.start_index),
    end: number(annotation.end_index),
    wire: wireOf(annotation),
  };
}

function decodeImage(part: JsonObject, path: string): MediaBlock {
  // `image_url` is a string in Responses; Chat's object form is accepted too.
  const url = text(part.image_url) ?? text(object(part.image_url)?.url);
  const file = text(part.file_id);
  if (url === undefined && file === undefined) throw missing(`${path}.image_url`);
  const source: MediaSource =
    url === undefined ? { type: 'file-id', id: file ?? '' } : sourceOfUrl(url);
  return {
    type: 'media',
    media: kindOfData(source, 'image'),
    source,
    detail: text(part.detail),
    wire: wireOf(part),
  };
}

function decodeFile(part: JsonObject, path: string): MediaBlock {
  const file = object(part.file) ?? part;
  const data = text(file.file_data);
  const url = text(file.file_url);
  const id = text(file.file_id);
  if (data === undefined && url === undefined && id === undefined) {
    throw invalid(
      `Missing required parameter: '${path}.file_id'. One of 'file_id', 'file_data' or 'file_url' must be provided.`,
      `${path}.file_id`,
    );
  }
  const source: MediaSource =
    data !== undefined
      ? fileData(data)
      : url !== undefined
        ? { type: 'url', url }
        : { type: 'file-id', id: id ?? '' };
  return {
    type: 'media',
    media: kindOfData(source, 'document'),
    source,
    title: text(file.filename),
    wire: wireOf(part),
  };
}

/** A data URL, or plain base64. */
const fileData = (data: string): MediaSource =>
  data.startsWith('data:')
    ? sourceOfUrl(data)
    : { type: 'base64', mediaType: 'application/pdf', data };

/** OpenRouter's. */
function decodeVideo(part: JsonObject): MediaBlock | undefined {
  const url = text(part.video_url) ?? text(object(part.video_url)?.url);
  if (url === undefined) return undefined;
  return { type: 'media', media: 'video', source: sourceOfUrl(url), wire: wireOf(part) };
}

function decodeAudio(part: JsonObject, path: string): MediaBlock {
  const audio = object(part.input_audio) ?? part;
  const data = text(audio.data);
  if (data === undefined) throw missing(`${path}.input_audio`);
  const mediaType = `audio/${text(audio.format) ?? 'wav'}`;
  return {
    type: 'media',
    media: 'audio',
    source: { type: 'base64', mediaType, data },
    wire: wireOf(part),
  };
}

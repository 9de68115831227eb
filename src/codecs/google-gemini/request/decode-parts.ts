/** Decodes the parts of a Gemini content: text, thoughts, media, calls and results. */

import { invalid } from '../../../conversation/errors.ts';
import { mediaKind, usualBase64 } from '../../../conversation/media-source.ts';
import { openSeal, SEAL_ENVELOPE_BASE64 } from '../../../conversation/seal.ts';
import type { Block, MediaBlock, MediaSource, Sealed } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import {
  field,
  flag,
  object,
  objects,
  PROTOCOL,
  snakeCase,
  text,
  wireOf,
  wrongValue,
} from '../wire.ts';
import type { CallIds } from './call-ids.ts';
import { hostedBlock } from './hosted-parts.ts';

/**
 * The signatures that Google documents for calls which no Gemini model made
 * (https://ai.google.dev/gemini-api/docs/thought-signatures). They are not seals: they say that there is none.
 */
export const FOREIGN_SIGNATURES: readonly string[] = [
  'skip_thought_signature_validator',
  'context_engineering_is_the_way_to_go',
];

/** The seal of a part; undefined if it has none. `provider`: the upstream that it comes from, if it is an answer. */
export function sealOf(part: JsonObject, provider?: string): Sealed | undefined {
  const value = text(field(part, 'thoughtSignature'));
  if (!value || FOREIGN_SIGNATURES.includes(value)) return undefined;
  // An envelope from an upstream belongs to that upstream and stays closed.
  if (provider === undefined && value.startsWith(SEAL_ENVELOPE_BASE64)) {
    const carried = openSeal(Buffer.from(value, 'base64').toString());
    if (carried !== undefined) return carried;
  }
  return { protocol: PROTOCOL, provider, kind: 'signature', value };
}

/** Does the part carry an envelope, which no vendor can read? */
export function hasEnvelope(part: Json): boolean {
  return (
    isObject(part) &&
    text(field(part, 'thoughtSignature'))?.startsWith(SEAL_ENVELOPE_BASE64) === true
  );
}

/**
 * One part of a request.
 * @throws GatewayError invalid_request naming `where`
 */
export function decodePart(part: Json, where: string, ids: CallIds): Block {
  if (!isObject(part)) throw wrongValue(where, 'an object', part);
  checkPart(part, where);
  const wire = wireOf(part);
  const value = part.text;
  if (value !== undefined && value !== null) {
    if (typeof value !== 'string') throw wrongType(`${where}.text`, value, 'TYPE_STRING');
    return flag(part.thought) === true
      ? { type: 'reasoning', text: value, sealed: sealOf(part), wire }
      : { type: 'text', text: value, wire };
  }
  const call = field(part, 'functionCall');
  if (call !== undefined) return decodeCall(call, part, `${where}.function_call`, ids);
  const result = field(part, 'functionResponse');
  if (result !== undefined) return decodeResult(result, part, `${where}.function_response`, ids);
  return otherBlock(part, ids);
}

/** A part of a request or an answer that is neither text nor a function's call or result. */
export const otherBlock = (part: JsonObject, ids: CallIds): Block =>
  mediaOf(part) ?? hostedBlock(part, ids) ?? opaque(part);

const wrongType = (where: string, value: Json, wanted: string) =>
  invalid(`Invalid value at '${where}' (${wanted}), ${shown(value)}`, where);

const shown = (value: Json): string => JSON.stringify(value).slice(0, 200);

function decodeCall(call: Json, part: JsonObject, where: string, ids: CallIds): Block {
  if (!isObject(call)) throw wrongType(where, call, 'object');
  const name = text(call.name);
  if (!name) throw invalid(`${where}.name: required field is missing.`, `${where}.name`);
  const { args } = call;
  if (args !== undefined && args !== null && !isObject(args)) {
    throw wrongType(`${where}.args`, args, 'google.protobuf.Struct');
  }
  return {
    type: 'tool-call',
    id: ids.ofCall(text(call.id), name),
    name,
    kind: 'function',
    input: JSON.stringify(args ?? {}),
    by: 'client',
    sealed: sealOf(part),
    wire: wireOf(part),
  };
}

function decodeResult(result: Json, part: JsonObject, where: string, ids: CallIds): Block {
  if (!isObject(result)) throw wrongType(where, result, 'object');
  const name = text(result.name);
  if (!name) throw invalid(`${where}.name: Name cannot be empty.`, `${where}.name`);
  const { response } = result;
  if (response !== undefined && response !== null && !isObject(response)) {
    throw wrongType(`${where}.response`, response, 'google.protobuf.Struct');
  }
  const { parts } = result;
  if (parts !== undefined && parts !== null && !Array.isArray(parts)) {
    throw wrongType(`${where}.parts`, parts, 'list');
  }
  const media = objects(parts).flatMap((one) => mediaOf(one) ?? []);
  const { text: said, isError } = resultText(object(response) ?? {});
  return {
    type: 'tool-result',
    callId: ids.ofResult(text(result.id), name),
    kind: 'function',
    content: [...(said === '' && media.length > 0 ? [] : [textBlock(said)]), ...media],
    isError,
    by: 'client',
    wire: wireOf(part),
  };
}

const textBlock = (value: string): Block => ({ type: 'text', text: value });

/** `output` and `error` are Google's names for what a function gives; many clients write `result` or `content`. */
const OUTPUTS = ['output', 'result', 'content'] as const;

/** The text of a function's response: its only member where that is the output, else the object as JSON. */
function resultText(response: JsonObject): { readonly text: string; readonly isError: boolean } {
  const keys = Object.keys(response);
  const only = keys.length === 1 ? response[keys[0]!] : undefined;
  if (keys[0] === 'error' && only !== undefined) return { text: asText(only), isError: true };
  if (only !== undefined && OUTPUTS.some((name) => name === keys[0])) {
    return { text: asText(only), isError: false };
  }
  return { text: JSON.stringify(response), isError: false };
}

const asText = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Files that only Google can read. */
const GOOGLE_FILE = /^(?:gs:|https:\/\/generativelanguage\.googleapis\.com\/)/;

/** The media of a part with `inlineData` or `fileData`; undefined for other parts. */
function mediaOf(part: JsonObject): MediaBlock | undefined {
  const inline = object(field(part, 'inlineData'));
  const file = inline === undefined ? object(field(part, 'fileData')) : undefined;
  const from = inline ?? file;
  if (from === undefined) return undefined;
  const mediaType = text(field(from, 'mimeType')) ?? '';
  const source = inline === undefined ? fileSource(file!) : inlineSource(inline, mediaType);
  if (source === undefined) return undefined;
  const isFilm = source.type === 'url' && YOUTUBE.test(source.url);
  const media = isFilm ? 'video' : mediaKind(mediaType);
  const filename = text(field(from, 'displayName'));
  return { type: 'media', media, source, filename, wire: wireOf(part) };
}

/** Google takes addresses of YouTube without a media type. */
const YOUTUBE = /^https?:\/\/(?:(?:www|m)\.)?(?:youtube\.com|youtu\.be)\//;

function inlineSource(inline: JsonObject, mediaType: string): MediaSource | undefined {
  const data = text(inline.data);
  if (data === undefined || mediaType === '') return undefined;
  return { type: 'base64', mediaType, data: usualBase64(data) };
}

function fileSource(file: JsonObject): MediaSource | undefined {
  const uri = text(field(file, 'fileUri'));
  if (!uri) return undefined;
  return GOOGLE_FILE.test(uri) ? { type: 'file-id', id: uri } : { type: 'url', url: uri };
}

/** Members beside the content of a part. */
const BESIDE = new Set([
  'thought',
  'thoughtSignature',
  'thought_signature',
  'videoMetadata',
  'partMetadata',
]);

/** A part without a common meaning, named after its content. */
function opaque(part: JsonObject): Block {
  const name = Object.keys(part).find((key) => !BESIDE.has(key)) ?? 'part';
  return { type: 'opaque', name, wire: wireOf(part) };
}

/** The contents of a part, with the texts in each; `text` is checked where it is read. */
const CONTENTS: Readonly<Record<string, readonly string[]>> = {
  text: [],
  inlineData: ['mimeType', 'data'],
  fileData: ['mimeType', 'fileUri'],
  functionCall: ['id'],
  functionResponse: ['id'],
  executableCode: ['id', 'language', 'code'],
  codeExecutionResult: ['id', 'outcome', 'output'],
  toolCall: ['id', 'toolType'],
  toolResponse: ['id', 'toolType'],
};

/** Both spellings of each content, and what they mean. */
const KEYS: ReadonlyMap<string, string> = new Map(
  Object.keys(CONTENTS).flatMap((name) => [
    [name, name],
    [snakeCase(name), name],
  ]),
);

/** Base64 in either alphabet, as proto3 JSON takes bytes. */
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

/**
 * Checks the parts of a part that {@link decodePart} would pass over.
 * @throws GatewayError invalid_request in Google's words, naming the field
 */
export function checkPart(part: JsonObject, where: string): void {
  let content: string | undefined;
  for (const key in part) {
    const name = KEYS.get(key);
    const value = part[key];
    if (name === undefined || value === undefined || value === null) continue;
    if (content !== undefined) {
      throw invalid(
        `Invalid value at '${where}' (oneof), oneof field 'data' is already set. Cannot set '${name}'`,
        where,
      );
    }
    content = name;
    if (name !== 'text') checkContent(value, name, `${where}.${snakeCase(name)}`);
  }
  const signature = field(part, 'thoughtSignature');
  if (signature === undefined || signature === null) return;
  if (typeof signature !== 'string' || !BASE64.test(signature)) {
    const at = `${where}.thought_signature`;
    const words = `Base64 decoding failed for ${shown(signature)}`;
    throw invalid(`Invalid value at '${at}' (TYPE_BYTES), ${words}`, at);
  }
}

function checkContent(value: Json, name: string, where: string): void {
  if (!isObject(value)) throw wrongType(where, value, 'object');
  for (const key of CONTENTS[name]!) {
    const text = field(value, key);
    if (text === undefined || text === null || typeof text === 'string') continue;
    throw wrongType(`${where}.${snakeCase(key)}`, text, 'TYPE_STRING');
  }
}

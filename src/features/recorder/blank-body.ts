/** Blanks the texts and images of a body in place: same structure, same length, nothing to be read. */

import { blankText } from './blank-text.ts';

/** Members whose strings are words of people or models, wherever they stand. */
const TEXTS = new Set([
  'text',
  'content',
  'arguments',
  'output',
  'output_text',
  'partial_json',
  'thinking',
  'reasoning',
  'reasoning_content',
  'refusal',
  'instructions',
  'system',
  'description',
  'delta',
  'input',
  'query',
  'title',
  'cited_text',
  'prompt',
  'signature',
  'encrypted_content',
  'filename',
  'stdout',
  'stderr',
]);
/** Members that hold words in all their strings, however deep: arguments of calls. */
const TREES = new Set(['input', 'arguments']);
/** Images, files: base64 or addresses. */
const MEDIA = new Set([
  'data',
  'url',
  'image_url',
  'file_data',
  'b64_json',
  'file_url',
  'partial_image_b64',
]);
/** Under these a name is data and not a word: schemas. */
const SCHEMAS = new Set(['parameters', 'input_schema', 'schema', 'properties']);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Kinds of content that can be blanked. */
export type Blanked = 'texts' | 'images';

/** Bytes as long as they were; JSON, or the data lines of an event stream. */
export function blankBody(
  bytes: Uint8Array,
  sse: boolean,
  what: readonly Blanked[] = ['texts', 'images'],
): Uint8Array {
  const out = Buffer.from(bytes);
  if (!sse) {
    blankJson(out, 0, out.length, what);
    return out;
  }
  for (let at = 0; at < out.length; ) {
    const end = out.indexOf(0x0a, at);
    const stop = end < 0 ? out.length : end;
    if (out.toString('latin1', at, at + 5) === 'data:') blankJson(out, at + 5, stop, what);
    at = stop + 1;
  }
  return out;
}

interface Level {
  readonly list: boolean;
  /** The member that stands here, or in whose list it stands. */
  key: string;
  /** All strings below are words. */
  readonly tree: boolean;
  readonly schema: boolean;
}

/** Walks the tokens of a JSON text and blanks strings by the member they stand in. */
function blankJson(bytes: Buffer, from: number, to: number, what: readonly Blanked[]): void {
  const levels: Level[] = [];
  let expectsKey = false;
  for (let i = from; i < to; i++) {
    const byte = bytes[i]!;
    const level = levels.at(-1);
    if (byte === QUOTE) {
      const end = closingQuote(bytes, i, to);
      if (level !== undefined && !level.list && expectsKey) {
        level.key = bytes.toString('latin1', i + 1, end);
        expectsKey = false;
      } else if (level !== undefined) blankString(bytes, i + 1, end, level, what);
      i = end;
    } else if (byte === 0x7b || byte === 0x5b) {
      const key = level?.key ?? '';
      // The history of Responses is called `input` as well: it stands at the top.
      const deep = levels.length > 1 && level?.list === false;
      levels.push({
        list: byte === 0x5b,
        key: byte === 0x5b ? key : '',
        tree: level?.tree === true || (deep && TREES.has(key)),
        schema: level?.schema === true || SCHEMAS.has(key),
      });
      expectsKey = byte === 0x7b;
    } else if (byte === 0x7d || byte === 0x5d) {
      levels.pop();
      expectsKey = false;
    } else if (byte === 0x2c) expectsKey = level !== undefined && !level.list;
  }
}

function closingQuote(bytes: Buffer, open: number, to: number): number {
  for (let i = open + 1; i < to; i++) {
    if (bytes[i] === BACKSLASH) i++;
    else if (bytes[i] === QUOTE) return i;
  }
  return to;
}

function blankString(
  bytes: Buffer,
  from: number,
  to: number,
  level: Level,
  what: readonly Blanked[],
): void {
  const { key, tree, schema } = level;
  if (schema && key !== 'description') return;
  if (MEDIA.has(key)) {
    if (what.includes('images')) blankMedia(bytes, from, to);
  } else if (!what.includes('texts')) return;
  else if (tree || TEXTS.has(key)) blankText(bytes, from, to);
}

/** A picture of one pixel, so that whoever decodes the body finds a picture. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg';

/** Base64 becomes the base64 of something small with nothing behind it; of an address the host is lost. */
function blankMedia(bytes: Buffer, from: number, to: number): void {
  const head = bytes.toString('latin1', from, Math.min(to, from + 100));
  const prefix = /^data:[^,]*,/.exec(head)?.[0].length ?? 0;
  const start = from + prefix;
  if (prefix === 0 && /^https?:/.test(head)) {
    blankText(bytes, from + head.indexOf(':') + 3, to);
    return;
  }
  let end = to;
  while (end > start && bytes[end - 1] === 0x3d) end--;
  const png = head.startsWith('iVBOR', prefix) ? PNG.slice(0, end - start) : '';
  for (let i = start; i < end; i++) bytes[i] = png.charCodeAt(i - start) || 0x41;
}

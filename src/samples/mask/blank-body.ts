/** Blanks the texts and images of a body in place: structure and length stay, the content is gone. */

import { runAtOnce, type Steps } from '../../lib/loop/steps.ts';
import { blankText } from './blank-text.ts';
import { dataLines, eachString, type StringPosition, type StringVisitor } from './json-strings.ts';

/** Members whose strings are texts of people or models, at any depth. */
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
  'server_description',
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
  'logs',
  'diff',
  'command',
  'commands',
  'queries',
  'document_title',
  'transcript',
  'lines',
  'tool_plan',
  'failed_generation',
  'stringValue',
  'webSearchQueries',
  'renderedContent',
  'retrievedUrl',
  'citations',
  'thoughtSignature',
  'thought_signature',
  'encrypted_index',
  // Beside `logprobs`: the text once more.
  'token',
  'tokens',
  'bytes',
]);
/**
 * Members that hold a text, or a name, which is one word: a program or an error's code, a summary or the kind that is
 * asked for, an address or a kind of source.
 */
const TEXTS_OR_NAMES = new Set(['code', 'summary', 'source']);
/** Members that hold images or files, as base64 or as URLs. */
const MEDIA = new Set([
  'data',
  'url',
  'image_url',
  'file_data',
  'b64_json',
  'file_url',
  'fileUri',
  'file_uri',
  'uri',
  'document_url',
  'partial_image_b64',
]);

/** Kinds of content that can be blanked. */
export type BlankedContent = 'texts' | 'images';

/** A blanked copy of equal length, of JSON or of the data lines of an event stream. */
export const blankBody = (
  bytes: Uint8Array,
  sse: boolean,
  what: readonly BlankedContent[] = ['texts', 'images'],
): Uint8Array => runAtOnce(blankBodyInSteps(Buffer.from(bytes), sse, what));

/** The same in place and in steps. */
export function* blankBodyInSteps(
  out: Buffer,
  sse: boolean,
  what: readonly BlankedContent[],
): Steps<Buffer> {
  const visit: StringVisitor = (from, to, place) => blankString(out, from, to, place, what);
  if (!sse) yield* eachString(out, 0, out.length, visit);
  else {
    for (const [from, to] of dataLines(out)) {
      yield* eachString(out, from, to, visit);
      yield;
    }
  }
  return out;
}

function blankString(
  bytes: Buffer,
  from: number,
  to: number,
  { key, tree, schema }: StringPosition,
  what: readonly BlankedContent[],
): Steps<void> | undefined {
  if (schema && key !== 'description') return undefined;
  // A document can be plain text, and an address says what was read.
  if (MEDIA.has(key) && !isProse(bytes, from, to)) {
    const blanks = what.includes('images') || isAddress(bytes, from);
    return blanks ? blankMedia(bytes, from, to) : undefined;
  }
  const isText =
    tree ||
    TEXTS.has(key) ||
    MEDIA.has(key) ||
    (TEXTS_OR_NAMES.has(key) && !isWord(bytes, from, to));
  const texts = what.includes('texts') && isText;
  return texts ? blankText(bytes, from, to) : undefined;
}

/** Base64 and addresses have no spaces, nor escapes. */
const isProse = (bytes: Buffer, from: number, to: number) =>
  /[\s\\]/.test(bytes.toString('latin1', from, Math.min(to, from + 1000)));

const isAddress = (bytes: Buffer, from: number) =>
  /^https?:/.test(bytes.toString('latin1', from, from + 6));

function isWord(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++)
    if (!/[\w.-]/.test(String.fromCharCode(bytes[at]!))) return false;
  return true;
}

/** An image of one pixel, so that a decoder still finds an image. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg';

/** Base64 becomes zeros, or a tiny image padded with zeros; a URL loses its letters and digits. */
function blankMedia(bytes: Buffer, from: number, to: number): Steps<void> | undefined {
  const head = bytes.toString('latin1', from, Math.min(to, from + 100));
  const prefix = /^data:[^,]*,/.exec(head)?.[0].length ?? 0;
  const start = from + prefix;
  if (isAddress(bytes, from)) return blankText(bytes, from + head.indexOf(':') + 3, to);
  let end = to;
  while (end > start && bytes[end - 1] === 0x3d) end--;
  const png = head.startsWith('iVBOR', prefix) ? PNG.slice(0, end - start) : '';
  bytes.fill(0x41, start, end);
  bytes.write(png, start, 'latin1');
  return undefined;
}

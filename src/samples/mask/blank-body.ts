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
/** Members that hold images or files, as base64 or as URLs. */
const MEDIA = new Set([
  'data',
  'url',
  'image_url',
  'file_data',
  'b64_json',
  'file_url',
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
  if (MEDIA.has(key)) return what.includes('images') ? blankMedia(bytes, from, to) : undefined;
  const texts = what.includes('texts') && (tree || TEXTS.has(key));
  return texts ? blankText(bytes, from, to) : undefined;
}

/** An image of one pixel, so that a decoder still finds an image. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg';

/** Base64 becomes zeros, or a tiny image padded with zeros; a URL loses its letters and digits. */
function blankMedia(bytes: Buffer, from: number, to: number): Steps<void> | undefined {
  const head = bytes.toString('latin1', from, Math.min(to, from + 100));
  const prefix = /^data:[^,]*,/.exec(head)?.[0].length ?? 0;
  const start = from + prefix;
  if (prefix === 0 && /^https?:/.test(head)) {
    return blankText(bytes, from + head.indexOf(':') + 3, to);
  }
  let end = to;
  while (end > start && bytes[end - 1] === 0x3d) end--;
  const png = head.startsWith('iVBOR', prefix) ? PNG.slice(0, end - start) : '';
  bytes.fill(0x41, start, end);
  bytes.write(png, start, 'latin1');
  return undefined;
}

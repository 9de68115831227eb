/** First messages identify a session whose client sends no session id. */

import { asBuffer } from '../../lib/bytes/bytes.ts';
import { isObject, type Json, MemberScan, tryParse } from '../../lib/json/json.ts';
import { memberStart, valueEnd } from '../../lib/json/scan-values.ts';
import type { ProtocolName } from '../types.ts';

/** Where each protocol has its messages, and a message its content. */
const MESSAGES: Readonly<
  Record<ProtocolName, { readonly list: string; readonly content: string }>
> = {
  'anthropic-messages': { list: 'messages', content: 'content' },
  'openai-chat': { list: 'messages', content: 'content' },
  'openai-responses': { list: 'input', content: 'content' },
  'google-gemini': { list: 'contents', content: 'parts' },
};

// What stands before the user's first message, and how much of each one is read.
const MAX_MESSAGES = 16;
const MAX_CHARS = 4096;
const MAX_PARSED_BYTES = 256 * 1024;
const BRACKET = 0x5b;
const BRACE = 0x7b;
const COMMA = 0x2c;

/**
 * The texts of the first messages up to the user's own: the same in each turn of a session, whatever is added behind
 * them. '' where there are none. Costs one pass through the bytes up to the user's message; nothing else is parsed.
 */
export function firstMessages(protocol: ProtocolName, body: Uint8Array): string {
  const { list, content: inside } = MESSAGES[protocol];
  const bytes = asBuffer(body);
  const start = memberStart(bytes, list);
  if (start < 0) return '';
  if (body[start] !== BRACKET) return wordsOf(valueAt(body, start, valueEnd(bytes, start)));
  let texts = '';
  let at = start + 1;
  for (let count = 0; count < MAX_MESSAGES; count++) {
    while (at < body.length && (body[at]! <= 0x20 || body[at] === COMMA)) at++;
    if (body[at] !== BRACE) break;
    const message = body.subarray(at);
    const scan = new MemberScan(message);
    scan.run(Number.POSITIVE_INFINITY);
    if (!scan.sound) break;
    const memberValue = (name: string) => {
      const found = scan.members.get(name);
      return found && valueAt(message, found.valueStart, found.valueEnd);
    };
    const role = memberValue('role');
    const content = memberValue(inside);
    texts += `${role}\n${wordsOf(content)}\n`;
    if (role === 'user') break;
    at += scan.at;
  }
  return texts;
}

/** A value of the body; of a long one only its beginning, as text. */
function valueAt(bytes: Uint8Array, from: number, to: number): Json | undefined {
  const long = to - from > MAX_PARSED_BYTES;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + from, long ? MAX_CHARS : to - from);
  return long ? text.toString('latin1') : tryParse(text.toString('utf8'));
}

/** The text of a content: parts have marks beside it (`cache_control`) that clients move from turn to turn. */
function wordsOf(content: Json | undefined): string {
  if (typeof content === 'string') return content.slice(0, MAX_CHARS);
  if (!Array.isArray(content)) return '';
  let words = '';
  for (const part of content as readonly Json[]) {
    if (words.length >= MAX_CHARS) break;
    if (isObject(part) && typeof part.text === 'string') words += `${part.text}\n`;
  }
  return words.slice(0, MAX_CHARS);
}

/** What the turns of a session have in common where the client sends no session id: their first messages. */

import { isObject, type Json, MemberScan, topLevel, tryParse } from '../../lib/json/json.ts';
import type { ProtocolName } from '../types.ts';

/** Where each protocol has its messages. */
const MESSAGES: Readonly<Record<ProtocolName, ReadonlySet<string>>> = {
  'anthropic-messages': new Set(['messages']),
  'openai-chat': new Set(['messages']),
  'openai-responses': new Set(['input']),
};

// What stands before the user's first message, and how much of each one is read.
const MOST_MESSAGES = 16;
const MOST_CHARS = 4096;
const MOST_PARSED_BYTES = 256 * 1024;
const BRACKET = 0x5b;
const BRACE = 0x7b;
const COMMA = 0x2c;

/**
 * The texts of the first messages up to the user's own: the same in each turn of a session, whatever is added behind
 * them. '' where there are none. Costs one pass through the bytes; nothing but those messages is parsed.
 */
export function firstMessages(protocol: ProtocolName, body: Uint8Array): string {
  const wanted = MESSAGES[protocol];
  const member = topLevel(body, wanted)?.get([...wanted][0]!);
  if (member === undefined) return '';
  if (body[member.valueStart] !== BRACKET) {
    return wordsOf(valueAt(body, member.valueStart, member.valueEnd));
  }
  let texts = '';
  let at = member.valueStart + 1;
  for (let count = 0; count < MOST_MESSAGES; count++) {
    while (at < member.valueEnd && (body[at]! <= 0x20 || body[at] === COMMA)) at++;
    if (body[at] !== BRACE) break;
    const message = body.subarray(at, member.valueEnd);
    const scan = new MemberScan(message);
    scan.run(Number.POSITIVE_INFINITY);
    if (!scan.sound) break;
    const { role, content } = Object.fromEntries(
      ['role', 'content'].map((name) => {
        const found = scan.members.get(name);
        return [name, found && valueAt(message, found.valueStart, found.valueEnd)];
      }),
    );
    texts += `${role}\n${wordsOf(content)}\n`;
    if (role === 'user') break;
    at += scan.at;
  }
  return texts;
}

/** A value of the body; of a long one only its beginning, as text. */
function valueAt(bytes: Uint8Array, from: number, to: number): Json | undefined {
  const long = to - from > MOST_PARSED_BYTES;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + from, long ? MOST_CHARS : to - from);
  return long ? text.toString('latin1') : tryParse(text.toString('utf8'));
}

/** The text of a content: parts have marks beside it (`cache_control`) that clients move from turn to turn. */
function wordsOf(content: Json | undefined): string {
  if (typeof content === 'string') return content.slice(0, MOST_CHARS);
  if (!Array.isArray(content)) return '';
  let words = '';
  for (const part of content as readonly Json[]) {
    if (words.length >= MOST_CHARS) break;
    if (isObject(part) && typeof part.text === 'string') words += `${part.text}\n`;
  }
  return words.slice(0, MOST_CHARS);
}

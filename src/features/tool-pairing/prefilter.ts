/** Decides from the raw bytes whether a body may need repair, before it is parsed. */

import { mentionsTools } from '../../conversation/tools/mentions-tools.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import { isSpace, valueBehindKey } from '../../lib/json/scan-values.ts';
import { wordSet } from '../../lib/text/words.ts';

/**
 * Strings that occur in every body of the protocol that may need repair, with the quotes of keys and values.
 * Inside a JSON string quotes are escaped, so the users' text does not match.
 */
const MARKS: Readonly<Record<ProtocolName, readonly Buffer[]>> = {
  'anthropic-messages': needles('_use"', 'tool_result"', 'thinking"', 'cache_control"', '_delta"'),
  // `tool_calls`, `tool_call_id`. {@link mentionsTools} finds all of them, too.
  'openai-chat': needles('"tool_call', '"function_call"', '"tool"'),
  'openai-responses': needles(
    '_call"',
    '_output"',
    'reasoning"',
    '"item_reference"',
    '"assistant"',
    '"id"',
  ),
  'google-gemini': needles(
    'functionCall"',
    'function_call"',
    'unctionResponse"',
    'function_response"',
  ),
};
const [CONTENT, PARTS, TEXT, SYSTEM, ROLE, TYPE] = needles(
  '"content"',
  '"parts"',
  '"text"',
  '"system"',
  '"role"',
  '"type"',
) as [Buffer, Buffer, Buffer, Buffer, Buffer, Buffer];

/** Values of `"type"` that need no repair on Messages. Any other may be a block that the API refuses. */
const HARMLESS = wordSet(`
  text image document base64 url file ephemeral custom auto any tool none enabled adaptive disabled
  json_schema object array string number integer boolean null`);

/** False only if the repair would change nothing in this body. */
export function mayNeedRepair(bytes: Buffer, protocol: ProtocolName): boolean {
  const spoken = protocol !== 'openai-chat' || mentionsTools(bytes);
  if (spoken && containsAny(bytes, MARKS[protocol])) return true;
  if (protocol === 'google-gemini') return hasSilence(bytes, PARTS) || hasSilence(bytes, TEXT);
  if (hasSilence(bytes, CONTENT)) return true;
  if (protocol !== 'anthropic-messages') return false;
  if (hasSilence(bytes, TEXT) || hasSilence(bytes, SYSTEM)) return true;
  return endsWithAssistant(bytes) || hasForeignType(bytes);
}

/** Does a member of this name hold null, an empty list, or a string that may be blank? */
function hasSilence(bytes: Buffer, key: Buffer): boolean {
  for (let at = bytes.indexOf(key); at >= 0; at = bytes.indexOf(key, at + key.length)) {
    let i = valueBehindKey(bytes, at + key.length);
    if (i < 0) continue;
    const first = bytes[i];
    if (first === 0x6e) return true;
    if (first === 0x5b) {
      i++;
      while (isSpace(bytes[i])) i++;
      if (bytes[i] === 0x5d) return true;
    }
    if (first !== 0x22) continue;
    i++;
    while (bytes[i] === 0x20) i++;
    // The closing quote, an escape that may be white space, or the first byte of a wide space.
    const byte = bytes[i];
    if (byte === 0x22) return true;
    if (byte === 0x5c && /[nrtfbu]/.test(String.fromCharCode(bytes[i + 1] ?? 0))) return true;
    if (byte === 0xc2 || byte === 0xe1 || byte === 0xe2 || byte === 0xef) return true;
    if (byte === 0xe3 && bytes[i + 1] === 0x80) return true;
  }
  return false;
}

function endsWithAssistant(bytes: Buffer): boolean {
  const at = bytes.lastIndexOf(ROLE);
  const value = at < 0 ? -1 : valueBehindKey(bytes, at + ROLE.length);
  return value >= 0 && bytes.subarray(value, value + 2).toString() === '"a';
}

function hasForeignType(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(TYPE); at >= 0; at = bytes.indexOf(TYPE, at + TYPE.length)) {
    const from = valueBehindKey(bytes, at + TYPE.length);
    if (from < 0 || bytes[from] !== 0x22) continue;
    const to = bytes.indexOf(0x22, from + 1);
    if (to < 0 || !HARMLESS.has(bytes.toString('latin1', from + 1, to))) return true;
  }
  return false;
}

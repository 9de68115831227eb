/** What a vendor's refusal says of the history: which of its words speak of thinking, signatures or pairs of calls. */

import type { GatewayError } from './errors.ts';

/**
 * - `thinking`: reasoning that may not be sent as it stands; `at` where the vendor names the block,
 *   `onwards` when what follows it is bound to the same edited prefix
 * - `thinking-head`: a tool loop must begin with thinking, and does not
 * - `thinking-missing`: assistant messages must carry their reasoning text
 * - `call-signature`: the signature of a call is missing or not the vendor's
 * - `pairing`: calls and results that do not find each other
 */
export type HistoryRefusal =
  | {
      readonly kind: 'thinking';
      readonly at?: { readonly message: number; readonly block: number };
      readonly onwards?: boolean;
    }
  | { readonly kind: 'thinking-missing'; readonly message?: number }
  | { readonly kind: 'thinking-head' | 'call-signature' | 'pairing' };

// Back-quotes and quotes differ between relays of the same vendor: texts are read without them.
const QUOTES = /[`'"“”‘’]/g;

const THINKING_HEAD = /expected thinking or redacted_thinking,? but found/;

const THINKING_MISSING =
  /reasoning_(?:content|text|details)\b.{0,60}\b(?:must be (?:passed|sent|provided)|is (?:missing|required))|(?:missing|requires?)\b.{0,20} reasoning_content|must (?:include|contain) reasoning_content/;

const CALL_SIGNATURE =
  /missing a thought_?signature|thought[ _]?signature\b.{0,40}\b(?:not valid|invalid|missing|corrupted|mismatch)|(?:invalid|corrupted) thought[ _]?signature/;

const THINKING = [
  /invalid signature in thinking/,
  /thinking\.signature: /,
  /(?:redacted_thinking|thinking) blocks? .{0,80}cannot be modified/,
  /thinking block.{0,40}bound to a different conversation/,
  /final position cannot contain thinking/,
  /contains any thinking blocks, the first block must be/,
  /final block in an assistant message cannot be thinking/,
  /invalid_encrypted_content|encrypted[ _]content\b.{0,300}could not be (?:verified|decrypted|parsed)/,
  /of type reasoning was provided without its required/,
  /was provided without its required reasoning item/,
];

const PAIRING = [
  /tool_use ids? (?:were|was) found without tool_result/,
  /did not find \d+ tool_result block/,
  /unexpected tool_use_id found in/,
  /each tool_use must have a single result/,
  /tool_?use ids must be unique/,
  /tool use with id .{1,100} was found without/,
  /tool_result blocks can only be in user/,
  /contain duplicate ids/,
  /must be followed by tool messages/,
  /tool_call_ids did not have response/,
  /insufficient tool messages following/,
  /role tool must be a response to a prec/,
  /tool_call_id of .{1,100} not found/,
  /no tool output found for/,
  /no tool call found for/,
  /function (?:call|response) turn comes immediately after/,
  /number of function response parts is equal/,
  /duplicate (?:tool_use|tool_call|tool call|toolu?se) ids?/,
  /invalid_tool_call_format/,
];

const BLOCK = /messages\.(\d+)\.content\.(\d+)/;
const AT_INDEX = /(?:message at index |messages[.[])(\d+)/;

/**
 * Reads an error answer. Undefined: it is not about the history, or its status (400 and 422 are) says
 * so; the same request without a part of its history would fare no better.
 */
export function historyRefusal(error: GatewayError): HistoryRefusal | undefined {
  if (error.status !== 400 && error.status !== 422) return undefined;
  if (error.kind !== 'invalid_request' || !error.fromUpstream) return undefined;
  const words = `${error.message} ${error.code ?? ''}`.replace(QUOTES, '').toLowerCase();
  if (THINKING_HEAD.test(words)) return { kind: 'thinking-head' };
  if (THINKING_MISSING.test(words)) {
    const message = AT_INDEX.exec(words)?.[1];
    return { kind: 'thinking-missing', ...(message === undefined ? {} : { message: +message }) };
  }
  if (CALL_SIGNATURE.test(words)) return { kind: 'call-signature' };
  if (THINKING.some((pattern) => pattern.test(words))) {
    const [, message, block] = BLOCK.exec(words) ?? [];
    return {
      kind: 'thinking',
      ...(message === undefined ? {} : { at: { message: +message, block: +block! } }),
      ...(words.includes('bound to a different') ? { onwards: true } : {}),
    };
  }
  return PAIRING.some((pattern) => pattern.test(words)) ? { kind: 'pairing' } : undefined;
}

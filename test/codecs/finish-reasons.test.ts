/** How an answer ended at a vendor is what a client of each other protocol reads. */

import { expect, test } from 'bun:test';
import type { ProtocolName } from '../../src/conversation/protocol-names.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { scriptedGateway } from '../gateway/scripted.ts';

const messages = (stop_reason: string) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'Half an' }],
  stop_reason,
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
});
const chat = (finish_reason: string) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Half an' }, finish_reason }],
});
const responses = (reason: string) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'm',
  status: 'incomplete',
  incomplete_details: { reason },
  output: [
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'incomplete',
      content: [{ type: 'output_text', text: 'Half an', annotations: [] }],
    },
  ],
});
const gemini = (finishReason: string) => ({
  candidates: [
    { content: { role: 'model', parts: [{ text: 'Half an' }] }, finishReason, index: 0 },
  ],
});

const CUT = ['length', 'max_output_tokens', 'MAX_TOKENS', 'max_tokens'];
const FILTERED = ['content_filter', 'content_filter', 'SAFETY', 'refusal'];

/** Vendor, its word, and the words for clients of Chat, Responses, Gemini and Messages. */
const ENDINGS: readonly [ProtocolName, JsonObject, string, readonly string[]][] = [
  [
    'anthropic-messages',
    messages('model_context_window_exceeded'),
    'model_context_window_exceeded',
    [...CUT.slice(0, 3), 'model_context_window_exceeded'],
  ],
  ['anthropic-messages', messages('max_tokens'), 'max_tokens', CUT],
  ['anthropic-messages', messages('refusal'), 'refusal', FILTERED],
  // Without a hosted tool that could pause, nothing goes on here: it is no complete answer.
  ['anthropic-messages', messages('pause_turn'), 'pause_turn', [...CUT.slice(0, 3), 'pause_turn']],
  ['openai-chat', chat('length'), 'length', CUT],
  ['openai-chat', chat('content_filter'), 'content_filter', FILTERED],
  ['openai-responses', responses('max_output_tokens'), 'max_output_tokens', CUT],
  ['openai-responses', responses('content_filter'), 'content_filter', FILTERED],
  ['google-gemini', gemini('MAX_TOKENS'), 'MAX_TOKENS', CUT],
  ...['SAFETY', 'RECITATION', 'LANGUAGE', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'].map(
    (word): [ProtocolName, JsonObject, string, readonly string[]] => [
      'google-gemini',
      gemini(word),
      word,
      [...FILTERED.slice(0, 2), word, 'refusal'],
    ],
  ),
];

const CLIENTS: readonly [ProtocolName, JsonObject, (answer: JsonObject) => unknown][] = [
  [
    'openai-chat',
    { messages: [{ role: 'user', content: 'hi' }] },
    (answer) => (answer.choices as JsonObject[])[0]!.finish_reason,
  ],
  [
    'openai-responses',
    { input: 'hi' },
    ({ status, incomplete_details }) =>
      status === 'incomplete' && (incomplete_details as JsonObject).reason,
  ],
  [
    'google-gemini',
    { stream: false, contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    (answer) => (answer.candidates as JsonObject[])[0]!.finishReason,
  ],
  [
    'anthropic-messages',
    { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
    (answer) => answer.stop_reason,
  ],
];

test.each(ENDINGS.map(([vendor, reply, word, words]) => [vendor, word, reply, words] as const))(
  '%s: %s is no natural end for a client of any protocol',
  async (vendor, _word, json, words) => {
    for (const [at, [client, body, read]] of CLIENTS.entries()) {
      const { ask } = scriptedGateway(vendor, [{ json }]);
      const { status, text } = await ask(client, { model: 'm', ...body });
      expect([client, status, read(JSON.parse(text))]).toEqual([client, 200, words[at]]);
    }
  },
);

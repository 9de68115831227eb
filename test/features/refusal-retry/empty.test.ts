/** Texts, messages and results without a word, which vendors refuse in every later request of the session. */

import { expect, test } from 'bun:test';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { FINE, type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const REFUSALS: readonly (readonly [string, source: string])[] = [
  [
    'messages: text content blocks must be non-empty',
    'anthropics/claude-code#88536, NousResearch/hermes-agent#11906',
  ],
  ['messages: text content blocks must contain non-whitespace text', 'anomalyco/opencode#31259'],
  [
    'The text field in the ContentBlock object at messages.2.content.1 is blank. Add text to the text field, and try again.',
    'OpenHands/OpenHands#5339',
  ],
  [
    'The content field in the Message object at messages.355 is empty. Add a ContentBlock object to the content field and try again.',
    'theopenco/llmgateway#3127, langchain-ai/langchain#26968',
  ],
  [
    'messages.0: all messages must have non-empty content except for the optional final assistant message',
    'konveyor/kai#645',
  ],
  [
    'messages.30.content.2.text: cache_control cannot be set for empty text blocks',
    'anthropics/claude-code#62379',
  ],
  ['messages[20].content[0].text:text cannot be empty.', 'agentscope-ai/QwenPaw#287'],
  [
    "Invalid request: the message at position 5 with role 'user' must not be empty",
    'Moonshot, as of the assistant: AstrBotDevs/AstrBot#7200',
  ],
];

const refused = (message: string): Scripted => ({ status: 400, json: { error: { message } } });
const FEATURES = [refusalRetry(), toolPairing, vendorFit()];
const text = (value: string) => ({ type: 'text', text: value });
const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };

const MESSAGES: readonly JsonObject[] = [
  { role: 'system', content: ' ' },
  { role: 'user', content: [text(''), text('hi'), image] },
  { role: 'assistant', content: [text('\n')], tool_calls: [call] },
  { role: 'tool', tool_call_id: 'c1', content: '' },
  { role: 'assistant', content: '' },
  { role: 'user', content: '  ' },
  { role: 'assistant', content: 'So' },
  { role: 'user', content: 'go' },
];
const WANTED: readonly JsonObject[] = [
  { role: 'user', content: [text('hi'), image] },
  { role: 'assistant', content: null, tool_calls: [call] },
  { role: 'tool', tool_call_id: 'c1', content: '(no content)' },
  { role: 'user', content: '(no content)' },
  { role: 'assistant', content: 'So' },
  { role: 'user', content: 'go' },
];

const sentMessages = (sent: unknown) => (sent as { readonly messages: Json }).messages;

test.each(REFUSALS)('%s', async (message) => {
  const gateway = scriptedGateway('openai-chat', [refused(message), FINE['openai-chat']], FEATURES);
  const answer = await gateway.ask('openai-chat', { model: 'm', messages: MESSAGES, tools });
  expect(answer.status).toBe(200);
  expect(sentMessages(gateway.sent[0])).toEqual(MESSAGES as never);
  expect(sentMessages(gateway.sent[1])).toEqual(WANTED as never);
  const notes = gateway.summaries[0]!.notes.map(({ name }) => name);
  expect(notes).toContain('stripped_after_refusal');
});

test('what nobody refuses goes out as it came', async () => {
  const gateway = scriptedGateway('openai-chat', [FINE['openai-chat']], FEATURES);
  await gateway.ask('openai-chat', { model: 'm', messages: MESSAGES, tools });
  expect(sentMessages(gateway.sent[0])).toEqual(MESSAGES as never);
});

test('a history without anything empty is not sent again', async () => {
  const [message] = REFUSALS[0]!;
  const gateway = scriptedGateway('openai-chat', [refused(message)], FEATURES);
  const messages = [{ role: 'user', content: 'go' }];
  expect((await gateway.ask('openai-chat', { model: 'm', messages, tools })).status).toBe(400);
  expect(gateway.sent).toHaveLength(1);
});

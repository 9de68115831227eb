/**
 * References to tools, which Claude Code writes once it has searched for one: Kimi answers "Invalid request Error" from then
 * on (router-for-me/CLIProxyAPI#4405, MoonshotAI/kimi-cli#2223, farion1231/cc-switch#2941).
 */

import { expect, test } from 'bun:test';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { FINE, type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const FINE_ANSWER = FINE['anthropic-messages'];
const history = (...found: readonly JsonObject[]): JsonObject => ({
  model: 'm',
  max_tokens: 9,
  tools: [{ name: 'ToolSearch', input_schema: { type: 'object' } }],
  messages: [
    { role: 'user', content: 'find a tool' },
    {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'ToolSearch', input: {} }],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: found },
        { type: 'text', text: 'go on' },
      ],
    },
  ],
});
const REFERENCES = [
  { type: 'text', text: 'Found:' },
  { type: 'tool_reference', tool_name: 'WebSearch' },
  { type: 'tool_reference', tool_name: 'mcp__x__y' },
];
const SAID = [
  { type: 'text', text: 'Found:' },
  { type: 'text', text: 'Tool WebSearch is now available.' },
  { type: 'text', text: 'Tool mcp__x__y is now available.' },
];

const gateway = (profile: string, ...script: Scripted[]) =>
  scriptedGateway('anthropic-messages', script, [refusalRetry(), toolPairing, vendorFit()], '', {
    profile,
  });

test('Kimi reads them as text', async () => {
  const { ask, sent, summaries } = gateway('kimi-anthropic', FINE_ANSWER);
  expect((await ask('anthropic-messages', history(...REFERENCES))).status).toBe(200);
  expect(sent).toEqual([history(...SAID)]);
  expect(summaries[0]!.notes.map(({ name }) => name)).toEqual(['content_bridged']);
});

test.each(['anthropic', 'none'])('%s gets them as they came', async (profile) => {
  const { ask, sent } = gateway(profile, FINE_ANSWER);
  await ask('anthropic-messages', history(...REFERENCES));
  expect(sent).toEqual([history(...REFERENCES)]);
});

test('so does a history without any at Kimi', async () => {
  const { ask, sent, summaries } = gateway('kimi-anthropic', FINE_ANSWER);
  await ask('anthropic-messages', history({ type: 'text', text: 'none' }));
  expect(sent).toEqual([history({ type: 'text', text: 'none' })]);
  expect(summaries[0]!.notes).toEqual([]);
});

test.each([
  // serde, pydantic, and servers with words of their own
  'messages[2].content[0].content: unknown variant `tool_reference`, expected one of `text`, `image`',
  "messages.2.content.0.tool_result.content.1: Input tag 'tool_reference' found using 'type' does not match any of the expected tags: 'text', 'image'",
  'unsupported content block type: tool_reference',
])('a vendor that says so gets text, and later requests at once: %s', async (message) => {
  const refused = { status: 400, json: { error: { type: 'invalid_request_error', message } } };
  const { ask, sent } = gateway('none', refused, FINE_ANSWER, FINE_ANSWER);
  for (const _ of [1, 2]) await ask('anthropic-messages', history(...REFERENCES));
  expect(sent).toEqual([history(...REFERENCES), history(...SAID), history(...SAID)]);
});

/** Servers of Chat whose messages have strings alone: lists of text parts become strings, from the refusal on. */

import { expect, test } from 'bun:test';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { FINE, type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const FINE_CHAT = FINE['openai-chat'];
const refused = (message: string, status = 400): Scripted => ({
  status,
  json: { error: { message } },
});
const text = (value: string) => ({ type: 'text', text: value });
const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };

const messages = [
  { role: 'system', content: [text('S')] },
  { role: 'user', content: [text('one'), text('two')] },
  { role: 'user', content: [text('see'), image] },
];
const WANTED = [
  { role: 'system', content: 'S' },
  { role: 'user', content: 'one\ntwo' },
  { role: 'user', content: [text('see'), image] },
];

const gateway = (script: Scripted[], profile = 'none', yaml = '') =>
  scriptedGateway('openai-chat', script, [refusalRetry(), vendorFit()], yaml, { profile });
const sentMessages = (sent: readonly unknown[]) =>
  sent.map((body) => (body as { readonly messages: readonly JsonObject[] }).messages);

test.each([
  [
    'Failed to deserialize the JSON body into the target type: messages[0].content: invalid type: sequence, expected a string at line 5 column 19',
    422,
    'https://github.com/0x676e67/duckai/issues/16',
  ],
  [
    'Failed to deserialize the JSON body into the target type: messages[3]: invalid type: sequence, expected a string at line 1 column 3301',
    422,
    'https://github.com/lastmile-ai/mcp-agent/issues/25',
  ],
  [
    "[{'loc': ('body', 'messages', 0, 'content'), 'msg': 'str type expected', 'type': 'type_error.str'}]",
    400,
    'https://github.com/jeffdapaz/VisualChatGPTStudio/issues/66',
  ],
  [
    "Invalid type for 'messages[0].content': expected a string, but got an array instead",
    400,
    'https://github.com/danny-avila/LibreChat/issues/3111',
  ],
  [
    'messages[0].content: expected string, received array',
    400,
    'https://github.com/8monkey-ai/hebo-gateway/pull/169',
  ],
  [
    'Template render failed: invalid operation: tried to use + operator on unsupported types string and sequence (in chat:98)',
    500,
    'https://github.com/brontoguana/krasis/issues/10',
  ],
  ['can only concatenate str (not "list") to str', 500, 'chat templates under Python'],
  [
    'The model expects a single `text` element per message.',
    400,
    'xAI, https://github.com/nocmt/LLMSearchPlus/issues/2',
  ],
])('%s', async (message, status) => {
  const { ask, sent, summaries } = gateway([refused(message, status), FINE_CHAT]);
  expect((await ask('openai-chat', { model: 'm', messages })).status).toBe(200);
  expect(sentMessages(sent)).toEqual([messages, WANTED]);
  expect(summaries[0]!.notes.map(({ name }) => name)).toContain('content_bridged');
});

test('a configured profile needs no refusal', async () => {
  const yaml = 'profiles: { strings: { contentParts: false } }';
  const { ask, sent } = gateway([FINE_CHAT], 'strings', yaml);
  const input = [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'one' },
        { type: 'input_text', text: 'two' },
      ],
    },
  ];
  expect((await ask('openai-responses', { model: 'm', input })).status).toBe(200);
  expect(sentMessages(sent)).toEqual([[{ role: 'user', content: 'one\ntwo' }]]);
});

test('strings stay as they are, and other vendors get lists', async () => {
  const { ask, sent } = gateway([FINE_CHAT, FINE_CHAT]);
  await ask('openai-chat', { model: 'm', messages });
  expect(sentMessages(sent)).toEqual([messages]);
});

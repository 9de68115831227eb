/** A vendor that refuses cache marks, breakpoints or keys is asked once more without them, and never again with them. */

import { describe, expect, test } from 'bun:test';
import { GatewayError } from '../../../src/conversation/errors.ts';
import { historyRefusal } from '../../../src/conversation/refusal/refusal.ts';
import { PromptCache, RequestTails } from '../../../src/features/prompt-cache/index.ts';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { scriptedGateway } from '../../gateway/scripted.ts';
import { words } from '../../support/prompt-caches/sessions.ts';

type Row = readonly [source: string, message: string, setting: string | undefined];

const MARKS = 'cache_control';
const ROWS: readonly Row[] = [
  [
    'Vertex, https://github.com/Mirascope/mirascope/issues/618',
    'messages.0.content.0.text.cache_control: Extra inputs are not permitted',
    MARKS,
  ],
  [
    'https://github.com/cg-dot/vertexai-cf-workers/pull/21',
    '*.cache_control: Extra inputs are not permitted',
    MARKS,
  ],
  ['the same about instructions', 'system.0.cache_control: Extra inputs are not permitted', MARKS],
  [
    'Bedrock, https://github.com/cline/cline/issues/2064',
    'You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information.',
    MARKS,
  ],
  ['OpenAI’s form', "Unknown parameter: 'messages[0].content[0].cache_control'.", MARKS],
  ['Groq’s form', "'messages.1' : property 'cache_control' is unsupported", MARKS],
  ['serde', 'unknown field `cache_control`, expected one of `type`, `text`', MARKS],
  ['in words', 'This model does not support prompt caching', MARKS],
  ['in words', '`cache_control` is not supported by this endpoint', MARKS],
  [
    'Bedrock, https://github.com/BerriAI/litellm/issues/15880',
    'messages.20.content.0.text.cache_control.ephemeral.ttl: Extra inputs are not permitted',
    'cache_control.ttl',
  ],
  [
    'Meta, https://github.com/BerriAI/litellm/pull/38790',
    '`cache_control.ttl: 1h` is not supported',
    'cache_control.ttl',
  ],
  [
    'OpenAI’s form',
    "Unknown parameter: 'input[0].content[0].prompt_cache_breakpoint'.",
    'prompt_cache_breakpoint',
  ],
  [
    'after https://github.com/router-for-me/CLIProxyAPI/issues/5068',
    'prompt_cache_breakpoint is not supported on this model',
    'prompt_cache_breakpoint',
  ],
  // One mark is wrong, or a field at one place: marks are taken.
  [
    'https://github.com/Wei-Shaw/sub2api/issues/225',
    'messages.13.content.0.thinking.cache_control: Extra inputs are not permitted',
    undefined,
  ],
  [
    'OpenRouter, https://github.com/earendil-works/pi/issues/7938',
    'tools.3.cache_control: Extra inputs are not permitted',
    undefined,
  ],
  ['at the top of the body', 'cache_control: Extra inputs are not permitted', undefined],
  ['', 'messages.0.content.1.text: cache_control cannot be set for empty text blocks', undefined],
  ['', 'A maximum of 4 blocks with cache_control may be provided. Found 5.', undefined],
  [
    'https://github.com/headroomlabs-ai/headroom/issues/2939',
    "messages.15.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
    'cache_control.ttl',
  ],
];

describe('the words of a refusal', () => {
  test.each(ROWS.map((row, i) => [`${i} ${row[1]}`, row] as const))(
    '%s',
    (_, [, message, setting]) => {
      const error = new GatewayError('invalid_request', message, {
        status: 400,
        fromUpstream: true,
      });
      const refusal = historyRefusal(error);
      const found = refusal?.kind === 'setting' ? refusal.setting : undefined;
      expect(found).toBe(setting);
    },
  );
});

const refused = (message: string) => ({
  json: { type: 'error', error: { type: 'invalid_request_error', message } },
  status: 400,
});
const answer = {
  json: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'ok' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  },
};

const done = {
  json: {
    id: 'r',
    object: 'response',
    status: 'completed',
    output: [
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok' }] },
    ],
  },
};

const asked: JsonObject = {
  model: 'm',
  max_tokens: 9,
  tools: [
    {
      type: 'function',
      function: { name: 'read', description: words('read', 1100), parameters: { type: 'object' } },
    },
  ],
  messages: [
    { role: 'system', content: words('rules', 500) },
    { role: 'user', content: 'q' },
  ],
};

test.each(ROWS.filter(([, , setting]) => setting === MARKS).map(([, message]) => message))(
  'asked once more without any mark, and at once without the next time: %s',
  async (message) => {
    const { ask, sent, summaries } = scriptedGateway(
      'anthropic-messages',
      [refused(message), answer, answer],
      [
        refusalRetry(),
        vendorFit(),
        new PromptCache({ owner: '', sessionId: '' }, new RequestTails()),
      ],
      '',
      { profile: 'anthropic' },
    );
    expect((await ask('openai-chat', asked)).status).toBe(200);
    expect((await ask('openai-chat', asked)).status).toBe(200);
    expect(sent.map((body) => JSON.stringify(body).includes('cache_control'))).toEqual([
      true,
      false,
      false,
    ]);
    expect(summaries).toHaveLength(2);
  },
);

test('a client’s own marks go, too, with a note', async () => {
  const { ask, sent } = scriptedGateway(
    'anthropic-messages',
    [refused('system.0.cache_control: Extra inputs are not permitted'), answer],
    [refusalRetry()],
  );
  const mark = { cache_control: { type: 'ephemeral' } };
  const { headers } = await ask('anthropic-messages', {
    model: 'm',
    max_tokens: 9,
    system: [{ type: 'text', text: 's', ...mark }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'q', ...mark }] }],
  });
  expect(JSON.stringify(sent[1])).not.toContain('cache_control');
  expect(headers.get('x-hopgate-notes')).toContain('stripped_after_refusal');
});

test('a long lifetime behind a short one: all are short in this request, and later ones are as they came', async () => {
  const order = ROWS.find(([source]) => source.includes('headroom'))![1];
  const { ask, sent } = scriptedGateway(
    'anthropic-messages',
    [refused(order), answer, answer],
    [refusalRetry()],
  );
  const marked = (ttl: object) => ({
    model: 'm',
    max_tokens: 9,
    system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral' } }],
    messages: [
      {
        role: 'user',
        content: [{ type: 'text', text: 'q', cache_control: { type: 'ephemeral', ...ttl } }],
      },
    ],
  });
  const body = marked({ ttl: '1h' });
  const { status, headers } = await ask('anthropic-messages', body);
  expect(status).toBe(200);
  expect(headers.get('x-hopgate-notes')).toContain('stripped_after_refusal');
  await ask('anthropic-messages', body);
  expect(sent).toEqual([body, marked({}), body]);
});

test('a refused key: the request without it, and none the next time', async () => {
  const { ask, sent } = scriptedGateway(
    'openai-responses',
    [
      {
        json: { error: { message: 'Validation: Unsupported parameter(s): `prompt_cache_key`' } },
        status: 400,
      },
      done,
      done,
    ],
    [
      refusalRetry(),
      vendorFit(),
      new PromptCache({ owner: '', sessionId: '' }, new RequestTails()),
    ],
    'profiles: { own: { breakpointsAt: up.test } }',
    { profile: 'own' },
  );
  await ask('openai-chat', asked);
  await ask('openai-chat', asked);
  expect(sent.map((body) => (body as JsonObject).prompt_cache_key !== undefined)).toEqual([
    true,
    false,
    false,
  ]);
});

test('refused breakpoints: neither they nor a key, the instructions in their usual place', async () => {
  const { ask, sent } = scriptedGateway(
    'openai-responses',
    [
      {
        json: {
          error: { message: "Unknown parameter: 'input[0].content[0].prompt_cache_breakpoint'." },
        },
        status: 400,
      },
      done,
    ],
    [
      refusalRetry(),
      vendorFit(),
      new PromptCache({ owner: '', sessionId: '' }, new RequestTails()),
    ],
    'profiles: { own: { breakpointsAt: up.test } }',
    { profile: 'own' },
  );
  await ask('openai-chat', asked);
  expect((sent[0] as JsonObject).instructions).toBeUndefined();
  expect(JSON.stringify(sent[1])).not.toContain('prompt_cache');
  expect((sent[1] as JsonObject).instructions).toBe(words('rules', 500));
});

/** A vendor that ends a stream with a failure only its own clients know: the client of an agent hears of an error. */

import { describe, expect, test } from 'bun:test';
import type { Feature } from '../../../src/features/feature.ts';
import { scriptedGateway } from '../scripted.ts';

const WATCHING: Feature = {
  name: 'watching',
  intercept: () => ({ event: (event) => event, end: () => [] }),
};

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const SAID = chunk({ role: 'assistant', content: 'Half an ans' });
const DONE = 'data: [DONE]\n\n';
const ASKED = { model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] };

describe.each([
  'network_error',
  'insufficient_system_resource',
  'error',
  // vLLM and SGLang: https://github.com/vllm-project/vllm vllm/v1/engine/__init__.py
  'abort',
  // Google's address for Chat
  'function_call_filter: MALFORMED_FUNCTION_CALL',
])('%s', (reason) => {
  const together = (parts: readonly string[]) => [parts.join('')];
  const apart = (parts: readonly string[]) => parts;
  test.each([
    ['in one chunk, watched', together, [WATCHING], 'none'],
    ['in chunks of one frame, watched', apart, [WATCHING], 'none'],
    ['in one chunk', together, [], 'none'],
    ['in chunks of one frame', apart, [], 'none'],
    ['in one chunk, not looked through', together, [], 'openai'],
    ['in chunks of one frame, not looked through', apart, [], 'openai'],
  ])('%s', async (_, cut, features, profile) => {
    const sse = cut([SAID, chunk({}, reason), DONE]);
    const { ask, summaries } = scriptedGateway('openai-chat', [{ sse }], features, '', { profile });
    const { text } = await ask('openai-chat', ASKED);
    expect(text.startsWith(SAID)).toBe(true);
    const last = JSON.parse(
      text
        .trim()
        .split('\n')
        .at(-1)!
        .replace(/^data: /, ''),
    );
    expect(last.error.message).toContain(reason);
    expect(text).not.toContain('[DONE]');
    expect(summaries[0]!.error?.message).toContain(reason);
  });
});

test.each([
  ['eos', [WATCHING]],
  ['eos', []],
  ['content_filter: PROHIBITED_CONTENT', []],
])('a reason that is new but no failure passes byte for byte: %s', async (reason, features) => {
  const sse = [SAID, chunk({}, reason), DONE];
  const { ask } = scriptedGateway('openai-chat', [{ sse }], features);
  expect((await ask('openai-chat', ASKED)).text).toBe(sse.join(''));
});

test.each([
  ['in a choice', { choices: [{ index: 0, delta: {}, error: { code: 502, message: 'gone' } }] }],
  ["NestJS's", { statusCode: 500, message: 'gone' }],
  ['in base_resp', { choices: [], base_resp: { status_code: 1013, status_msg: 'gone' } }],
])('an error where no client of OpenAI looks, %s', async (_, failed) => {
  const sse = [SAID, `data: ${JSON.stringify(failed)}\n\n`, DONE];
  const { ask } = scriptedGateway('openai-chat', [{ sse }], []);
  const { text } = await ask('openai-chat', ASKED);
  expect(text).toContain('"error":{"message":"gone"');
  expect(text).not.toContain('[DONE]');
});

describe('a Responses stream that ends with [DONE] alone', () => {
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  const item = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'in_progress',
    content: [],
  };
  const content = [{ type: 'output_text', text: 'Half', annotations: [] }];
  const open = [
    event('response.created', {
      response: { id: 'resp_1', object: 'response', status: 'in_progress' },
    }),
    event('response.output_item.added', { output_index: 0, item }),
    event('response.output_text.delta', {
      output_index: 0,
      content_index: 0,
      item_id: 'msg_1',
      delta: 'Half',
    }),
  ];
  const done = event('response.output_item.done', {
    output_index: 0,
    item: { ...item, status: 'completed', content },
  });
  const ASK = { model: 'm', stream: true, input: 'hi' };

  test('in the middle of an item was cut', async () => {
    const { ask } = scriptedGateway('openai-responses', [{ sse: [...open, DONE] }], []);
    expect((await ask('openai-responses', ASK)).text).toContain('event: response.failed');
  });

  test('behind an item lost no more than its last event', async () => {
    const sse = [...open, done, DONE];
    const { ask } = scriptedGateway('openai-responses', [{ sse }], []);
    const { text } = await ask('openai-responses', ASK);
    const end = /data: (\{"type":"response.completed".*\})\n\ndata: \[DONE\]\n\n$/.exec(text)?.[1];
    const finished = { ...item, status: 'completed', content };
    const response = { id: 'resp_1', status: 'completed', output: [finished] };
    expect(JSON.parse(end ?? '')).toMatchObject({ response });
  });
});

describe('an error that stands in the stream as no event of the protocol', () => {
  const error = { error: { code: 503, message: 'gone for now', status: 'UNAVAILABLE' } };
  const data = (value: object, event?: string) =>
    `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(value)}\n\n`;
  const BEGUN: Readonly<Record<string, string>> = {
    'openai-chat': SAID,
    'openai-responses': [
      data({ type: 'response.created', response: { id: 'r', status: 'in_progress' } }),
      data({ type: 'response.output_item.added', output_index: 0, item: { type: 'message' } }),
      data({ type: 'response.output_text.delta', output_index: 0, delta: 'Half' }),
    ].join(''),
    'anthropic-messages': [
      data(
        { type: 'message_start', message: { id: 'm', role: 'assistant', content: [] } },
        'message_start',
      ),
      data(
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        'content_block_start',
      ),
      data(
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Half' } },
        'content_block_delta',
      ),
    ].join(''),
  };
  const ASK = {
    'openai-chat': ASKED,
    'openai-responses': { model: 'm', stream: true, input: 'hi' },
    'anthropic-messages': { ...ASKED, max_tokens: 9 },
  } as const;
  type Name = keyof typeof ASK;
  const CLIENTS = Object.keys(ASK) as readonly Name[];
  const ALL: readonly Name[] = CLIENTS;
  const FORMS: readonly (readonly [string, string, readonly Name[]])[] = [
    // https://github.com/googleapis/js-genai src/_api_client.ts looks for it.
    ['bare JSON', JSON.stringify(error), ALL],
    ['bare JSON in lines', `${JSON.stringify(error, null, 2)}\n`, ALL],
    ['bare JSON in a list', JSON.stringify([error]), ['openai-chat']],
    ['a list in a frame', data([error]), ['openai-chat']],
    ['a frame without a type', data(error), ['openai-responses', 'anthropic-messages']],
    ['a frame without a name', data({ type: 'error', ...error }), ['anthropic-messages']],
  ];
  const NAMED: Readonly<Record<Name, RegExp>> = {
    'openai-chat': /data: \{"error":\{"message":"gone for now"/,
    'openai-responses': /event: response\.failed\n.*gone for now/,
    'anthropic-messages': /event: error\n.*gone for now/,
  };
  for (const [form, tail, vendors] of FORMS) {
    for (const vendor of vendors) {
      test.each(CLIENTS)(`${form} of ${vendor}, for %s`, async (client) => {
        for (const profile of ['none', 'openai']) {
          const script = [{ sse: [BEGUN[vendor]!, tail] }];
          const { ask, summaries } = scriptedGateway(vendor, script, [], '', { profile });
          const { text } = await ask(client, ASK[client]);
          expect(text).toMatch(NAMED[client]);
          expect(summaries[0]!.error?.message).toBe('gone for now');
        }
      });
    }
  }
});

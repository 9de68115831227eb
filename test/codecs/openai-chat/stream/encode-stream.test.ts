/** Encoding of Chat streams: what clients get, and what is left out. */

import { describe, expect, test } from 'bun:test';
import { openaiChat } from '../../../../src/codecs/openai-chat/index.ts';
import { GatewayError } from '../../../../src/conversation/errors.ts';
import type { BlockHead, StreamEvent } from '../../../../src/conversation/events.ts';
import { openSeal } from '../../../../src/conversation/seal.ts';
import type { Conversation } from '../../../../src/conversation/types.ts';
import { client, NOTHING_SENT } from '../recorded.ts';
import { accumulate, encodeAll } from '../streams.ts';

const START: StreamEvent = { type: 'start', id: 'msg_1', model: 'up', created: 7 };
const END: readonly StreamEvent[] = [{ type: 'finish', reason: 'stop' }, { type: 'end' }];
const CALLED: readonly StreamEvent[] = [{ type: 'finish', reason: 'tool-calls' }, { type: 'end' }];

function block(
  index: number,
  head: BlockHead,
  ...inner: readonly (string | StreamEvent)[]
): StreamEvent[] {
  return [
    { type: 'block-start', index, head },
    ...inner.map(
      (i): StreamEvent => (typeof i === 'string' ? { type: 'delta', index, text: i } : i),
    ),
    { type: 'block-stop', index },
  ];
}
const call = (id: string, name: string, more: object = {}): BlockHead => ({
  type: 'tool-call',
  id,
  name,
  kind: 'function',
  by: 'client',
  ...more,
});

/** The JSON of every data frame, and the text of other frames. */
const frames = (text: string): unknown[] =>
  text
    .split('\n\n')
    .filter((f) => f !== '')
    .map((f) => (f.startsWith('data: {') ? JSON.parse(f.slice(6)) : f));
const deltas = (text: string) =>
  frames(text).flatMap((f) =>
    typeof f === 'object'
      ? (f as { choices: { delta: object }[] }).choices.map((c) => c.delta)
      : [],
  );
const asking = (streamUsage: boolean): Conversation => ({
  ...NOTHING_SENT,
  settings: { stream: true, streamUsage },
});

describe('the structure of a stream', () => {
  test('role, text, finish and [DONE] have the same head', () => {
    const head = { id: 'msg_1', object: 'chat.completion.chunk', created: 7, model: 'up' };
    const choice = (delta: object, finish_reason: string | null = null) => ({
      ...head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    });
    expect(frames(encodeAll([START, ...block(0, { type: 'text' }, 'a"b\n', 'c'), ...END]))).toEqual(
      [
        choice({ role: 'assistant', content: '' }),
        choice({ content: 'a"b\n' }),
        choice({ content: 'c' }),
        choice({}, 'stop'),
        'data: [DONE]',
      ],
    );
  });

  test('usage only for clients that asked for it, with null before its own chunk', () => {
    const usage: StreamEvent = {
      type: 'usage',
      usage: { input: 3, cacheRead: 4, output: 5, reasoning: 6 },
    };
    const events = [START, ...block(0, { type: 'text' }, 'x'), usage, ...END];
    expect(encodeAll(events, asking(false))).not.toContain('usage');
    const all = frames(encodeAll(events, asking(true))) as {
      usage?: object | null;
      choices: unknown[];
    }[];
    expect(all.slice(0, -2).map((f) => f.usage)).toEqual([null, null, null]);
    expect(all.at(-2)).toMatchObject({
      choices: [],
      usage: {
        prompt_tokens: 7,
        completion_tokens: 11,
        total_tokens: 18,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 6 },
      },
    });
    expect(all.at(-1)).toBe('data: [DONE]' as never);
  });

  test('an upstream without id or model still gives every chunk both', () => {
    const [first] = frames(encodeAll([{ type: 'start', id: '', model: '' }])) as [
      { id: string; model: string; created: number },
    ];
    expect(first.id).toBe('chatcmpl-req_1_abc');
    expect(first.model).toBe('model-x');
    expect(first.created).toBeGreaterThan(1e9);
  });

  test('a ping is a comment, before the start too', () => {
    expect(openaiChat.encodeStream(client()).ping()).toBe(': keep-alive\n\n');
  });

  test('a failure is one error chunk, never [DONE], and nothing follows', () => {
    const encoder = openaiChat.encodeStream(client());
    encoder.event(START);
    const [error] = frames(encoder.fail(new GatewayError('upstream', 'cut', { code: 'x' })));
    expect(error).toEqual({
      error: { message: 'cut', type: 'server_error', param: null, code: 'x' },
    });
    expect(encoder.event({ type: 'end' }) + encoder.fail(new GatewayError('internal', 'b'))).toBe(
      '',
    );
  });

  test('fields of other protocols are dropped; those of Chat go in every chunk', () => {
    const text = encodeAll([
      {
        ...START,
        rest: { system_fingerprint: 'fp', container: { id: 1 }, instructions: 'secret' },
      },
    ]);
    expect(text).toContain('"system_fingerprint":"fp"');
    expect(text).not.toMatch(/container|secret/);
  });
});

describe('calls', () => {
  test('indices count from 0, whatever blocks are in between', async () => {
    const text = encodeAll([
      START,
      ...block(0, { type: 'text' }, 'a'),
      ...block(1, call('c1', 'f'), '{"x":', '1}'),
      ...block(2, { type: 'text' }, 'b'),
      ...block(3, call('c2', 'g')),
      ...CALLED,
    ]);
    expect(deltas(text).filter((d) => 'tool_calls' in d)).toEqual([
      {
        tool_calls: [
          { index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '' } },
        ],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"x":' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '1}' } }] },
      {
        tool_calls: [
          { index: 1, id: 'c2', type: 'function', function: { name: 'g', arguments: '' } },
        ],
      },
      { tool_calls: [{ index: 1, function: { arguments: '{}' } }] },
    ]);
    const { message, finish_reason } = (await accumulate(text)).choices[0]!;
    expect([message.content, message.tool_calls?.length, finish_reason]).toEqual([
      'ab',
      2,
      'tool_calls',
    ]);
  });

  test('freeform calls go out as custom', () => {
    expect(
      deltas(
        encodeAll([START, ...block(0, call('c', 'p', { kind: 'custom' }), 'x'), ...CALLED]),
      ).slice(1, 3),
    ).toEqual([
      { tool_calls: [{ index: 0, id: 'c', type: 'custom', custom: { name: 'p', input: '' } }] },
      { tool_calls: [{ index: 0, custom: { input: 'x' } }] },
    ]);
  });

  test("the vendor's and the gateway's own calls are hidden, and nothing waits for them", () => {
    const text = encodeAll([
      START,
      ...block(0, call('s', 'web_search', { by: 'provider' }), '{"query":"x"}'),
      ...block(1, {
        type: 'whole',
        block: {
          type: 'tool-result',
          callId: 's',
          kind: 'function',
          content: [],
          isError: false,
          by: 'provider',
        },
      }),
      ...block(2, call('g', 'vision', { by: 'gateway' }), '{}'),
      ...block(3, { type: 'text' }, 'found'),
      ...CALLED,
    ]);
    expect(text).not.toMatch(/tool_calls|web_search|vision/);
    expect(text).toContain('"finish_reason":"stop"');
  });

  test('a client of functions gets function_call', async () => {
    const request = openaiChat.decodeRequest({
      model: 'm',
      messages: [{ role: 'user', content: 'x' }],
      functions: [{ name: 'f' }],
    });
    const text = encodeAll([START, ...block(0, call('c', 'f'), '{"a":1}'), ...CALLED], request);
    const { message, finish_reason } = (await accumulate(text)).choices[0]!;
    expect(message.function_call).toEqual({ name: 'f', arguments: '{"a":1}' });
    expect(finish_reason as string).toBe('function_call');
  });
});

describe('vendor-specific content', () => {
  test('reasoning goes out as reasoning_content; its seal comes back from the next request', () => {
    const sealed = {
      protocol: 'anthropic-messages',
      provider: 'a',
      kind: 'signature',
      value: 'SIG',
    } as const;
    const text = encodeAll([
      START,
      ...block(0, { type: 'reasoning' }, 'hm', { type: 'sealed', index: 0, sealed }),
      ...block(1, { type: 'text' }, 'ok'),
      ...END,
    ]);
    const [, message, seal] = deltas(text) as [
      unknown,
      object,
      { reasoning_details: [{ data: string }] },
    ];
    expect(message).toEqual({ reasoning_content: 'hm' });
    expect(openSeal(seal.reasoning_details[0].data)).toEqual(sealed);
    const next = openaiChat.decodeRequest({
      model: 'm',
      messages: [
        { role: 'user', content: 'x' },
        {
          role: 'assistant',
          content: 'ok',
          reasoning_content: 'hm',
          reasoning_details: seal.reasoning_details,
        },
      ],
    });
    expect(next.turns[1]!.blocks[0]).toEqual({ type: 'reasoning', text: 'hm', sealed });
  });

  test('refusals', async () => {
    const text = encodeAll([
      START,
      ...block(0, { type: 'refusal' }, 'no'),
      { type: 'finish', reason: 'refusal' },
      { type: 'end' },
    ]);
    const { message, finish_reason } = (await accumulate(text)).choices[0]!;
    expect([message.refusal, message.content, finish_reason]).toEqual(['no', '', 'stop']);
    expect(encodeAll([START, { type: 'finish', reason: 'refusal' }])).toContain(
      '"finish_reason":"content_filter"',
    );
  });

  test('citations go out once, all together, with positions in the whole text', async () => {
    const cite = (index: number, url: string, more: object = {}): StreamEvent => ({
      type: 'citation',
      index,
      citation: { url, title: 'T', ...more },
    });
    const text = encodeAll([
      START,
      ...block(0, { type: 'text' }, 'Hello '),
      ...block(
        1,
        { type: 'text' },
        cite(1, 'https://a'),
        'world',
        cite(1, 'https://b', { start: 1, end: 3 }),
        { type: 'citation', index: 1, citation: { title: 'a document' } },
      ),
      ...END,
    ]);
    const { message } = (await accumulate(text)).choices[0]!;
    expect(message.annotations).toEqual([
      {
        type: 'url_citation',
        url_citation: { url: 'https://a', title: 'T', start_index: 6, end_index: 11 },
      },
      {
        type: 'url_citation',
        url_citation: { url: 'https://b', title: 'T', start_index: 7, end_index: 9 },
      },
    ]);
  });

  test('log-probabilities', async () => {
    const content = [{ token: '$&', logprob: -1 }];
    const text = encodeAll([
      START,
      ...block(0, { type: 'text' }, 'x', { type: 'logprobs', index: 0, content }),
      ...END,
    ]);
    expect((await accumulate(text)).choices[0]!.logprobs?.content as unknown).toEqual(content);
  });

  test('finish reasons', () => {
    for (const [reason, word] of [
      ['length', 'length'],
      ['context-overflow', 'length'],
      ['content-filter', 'content_filter'],
      ['pause', 'length'],
      ['stop-sequence', 'stop'],
    ] as const) {
      expect(encodeAll([START, { type: 'finish', reason }])).toContain(`"finish_reason":"${word}"`);
    }
  });

  test('opaque events pass only in their own protocol', () => {
    const event = (protocol: 'openai-chat' | 'openai-responses'): StreamEvent => ({
      type: 'opaque',
      name: 'x',
      wire: { protocol, value: { choices: [] } },
    });
    expect(encodeAll([event('openai-chat')])).toBe('data: {"choices":[]}\n\n');
    expect(encodeAll([event('openai-responses')])).toBe('');
  });
});

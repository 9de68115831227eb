/** The fake vendor works with the official SDK clients, and plays its scripted faults. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { call, type FakeUpstream, say, startFakeUpstream, think } from './fake-upstream/index.ts';

let upstream: FakeUpstream;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-test'] });
  openai = new OpenAI({ apiKey: 'sk-test', baseURL: `${upstream.origin}/v1`, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: 'sk-test', baseURL: upstream.origin, maxRetries: 0 });
});
afterEach(() => upstream.clear());
afterAll(() => upstream.stop());

const weather = {
  name: 'get_weather',
  schema: { type: 'object' as const, properties: { city: { type: 'string' } } },
};
const user = (content: string) => ({ role: 'user' as const, content });

describe('official clients', () => {
  test('Chat: text and reasoning, streamed and whole, give the same answer', async () => {
    upstream.enqueue(think('Hm.', 'Grüße 👋🏽!'), think('Hm.', 'Grüße 👋🏽!'));
    const ask = { model: 'm', messages: [user('hi')] };
    const whole = await openai.chat.completions.create(ask);
    const final = await openai.chat.completions
      .stream({ ...ask, stream_options: { include_usage: true } })
      .finalChatCompletion();
    for (const answer of [whole, final]) {
      expect(answer.choices[0]?.message.content).toBe('Grüße 👋🏽!');
      expect(answer.choices[0]?.finish_reason).toBe('stop');
      expect(answer.usage?.total_tokens).toBeGreaterThan(0);
    }
    expect(whole.choices[0]?.message).toHaveProperty('reasoning_content', 'Hm.');
  });

  test('Chat: parallel calls keep their ids through a round trip', async () => {
    upstream.enqueue(
      call(
        { name: 'get_weather', arguments: { city: 'Paris' } },
        { name: 'get_weather', arguments: { city: 'Oslo' } },
      ),
      say('done'),
    );
    const tools = [
      {
        type: 'function' as const,
        function: { name: weather.name, parameters: weather.schema },
      },
    ];
    const first = await openai.chat.completions
      .stream({ model: 'm', messages: [user('weather?')], tools })
      .finalChatCompletion();
    const message = first.choices[0]!.message;
    expect(message.tool_calls).toHaveLength(2);
    const second = await openai.chat.completions.create({
      model: 'm',
      tools,
      messages: [
        user('weather?'),
        { role: 'assistant', content: null, tool_calls: message.tool_calls },
        ...message.tool_calls!.map((one) => ({
          role: 'tool' as const,
          tool_call_id: one.id,
          content: '12°',
        })),
      ],
    });
    expect(second.choices[0]?.message.content).toBe('done');
    expect(upstream.refusals).toEqual([]);
  });

  test('Responses: the SDK accumulator accepts every kind of item', async () => {
    upstream.enqueue({
      parts: [
        { kind: 'reasoning', text: 'Thinking about it.' },
        { kind: 'search', query: 'q', results: [] },
        { kind: 'text', text: 'Look.', citations: [{ url: 'https://e.com', title: 'E' }] },
        { kind: 'call', name: 'get_weather', arguments: '{"city":"Bern"}' },
        { kind: 'custom', name: 'apply_patch', input: '*** Begin Patch' },
      ],
    });
    const response = await openai.responses
      .stream({ model: 'm', input: 'hi', include: ['reasoning.encrypted_content'], store: false })
      .finalResponse();
    expect(response.output.map((item) => item.type)).toEqual([
      'reasoning',
      'web_search_call',
      'message',
      'function_call',
      'custom_tool_call',
    ]);
    expect(response.output_text).toBe('Look.');
    expect(response.status).toBe('completed');
  });

  test('Responses: the output of a whole answer can be sent back', async () => {
    upstream.enqueue(
      {
        parts: [
          { kind: 'reasoning', text: 'Thinking about it.' },
          { kind: 'call', name: 'get_weather', arguments: '{"city":"Bern"}' },
          { kind: 'custom', name: 'apply_patch', input: '*** Begin Patch' },
        ],
      },
      say('ok'),
    );
    const response = await openai.responses.create({
      model: 'm',
      input: 'hi',
      include: ['reasoning.encrypted_content'],
      store: false,
    });
    const results = response.output.flatMap((item): OpenAI.Responses.ResponseInputItem[] => {
      if (item.type === 'function_call') {
        return [{ type: 'function_call_output', call_id: item.call_id, output: '9°' }];
      }
      if (item.type !== 'custom_tool_call') return [];
      return [{ type: 'custom_tool_call_output', call_id: item.call_id, output: 'ok' }];
    });
    await openai.responses.create({
      model: 'm',
      store: false,
      input: [user('hi'), ...(response.output as OpenAI.Responses.ResponseInputItem[]), ...results],
    });
    expect(upstream.refusals).toEqual([]);
  });

  test('Messages: the SDK accumulator accepts every kind of block, and signatures are valid on the way back', async () => {
    upstream.enqueue({
      parts: [
        { kind: 'reasoning', text: 'Thinking about it.' },
        { kind: 'redacted', data: 'secret' },
        { kind: 'search', query: 'q', results: [{ url: 'https://e.com', title: 'E' }] },
        { kind: 'text', text: 'Look.', citations: [{ url: 'https://e.com', title: 'E' }] },
        { kind: 'call', name: 'get_weather', arguments: '{"city":"Bern"}' },
      ],
      usage: { input: 100, cached: 60, output: 30, reasoning: 9 },
    });
    const tools = [{ name: weather.name, input_schema: weather.schema }];
    const ask = {
      model: 'm',
      max_tokens: 4000,
      tools,
      thinking: { type: 'enabled' as const, budget_tokens: 1024 },
    };
    const message = await anthropic.messages
      .stream({ ...ask, messages: [user('hi')] })
      .finalMessage();
    expect(message.content.map((block) => block.type)).toEqual([
      'thinking',
      'redacted_thinking',
      'server_tool_use',
      'web_search_tool_result',
      'text',
      'tool_use',
    ]);
    expect(message.usage.input_tokens).toBe(40);
    expect(message.usage.cache_read_input_tokens).toBe(60);
    const use = message.content.at(-1) as Anthropic.ToolUseBlock;
    expect(use.input).toEqual({ city: 'Bern' });
    await anthropic.messages.create({
      ...ask,
      messages: [
        user('hi'),
        { role: 'assistant', content: message.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: '9°' }] },
      ],
    });
    expect(upstream.refusals).toEqual([]);
    const count = await anthropic.messages.countTokens({ model: 'm', messages: [user('hi')] });
    expect(count.input_tokens).toBeGreaterThan(0);
  });

  test('models are listed', async () => {
    const page = await openai.models.list();
    expect(page.data.map((model) => model.id)).toEqual(['fake-model']);
  });
});

const ask = (path: string, body: unknown, signal?: AbortSignal) =>
  fetch(`${upstream.origin}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer sk-test',
      'anthropic-version': '2023-06-01',
    },
    body: JSON.stringify(body),
    signal,
  });
const chat = { model: 'm', messages: [user('hi')], stream: true };
const messages = { ...chat, max_tokens: 10 };

describe('faults', () => {
  test.each([
    ['reset', 'ECONNRESET'],
    ['truncate', 'ECONNRESET'],
  ] as const)(
    'a stream cut by %s fails the read, after the content before it',
    async (by, code) => {
      upstream.enqueue(
        say('A longer text to cut.', { delivery: { piece: 1, cut: { at: 6, by } } }),
      );
      const response = await ask('/v1/chat/completions', chat);
      expect(response.status).toBe(200);
      const reader = response.body!.getReader();
      let text = '';
      const read = async () => {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) return;
          text += Buffer.from(value).toString();
        }
      };
      await expect(read()).rejects.toMatchObject({ code });
      expect(text).toContain('"content":"A"');
      expect(upstream.received[0]?.abortedAfterMs).toBeUndefined();
    },
  );

  test('a reset before the status line fails the request', async () => {
    upstream.enqueue(say('x', { delivery: { before: 'reset' } }));
    await expect(ask('/v1/chat/completions', chat)).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  test('a clean end in mid-stream lacks the terminal event', async () => {
    upstream.enqueue(say('A longer text.', { delivery: { cut: { at: 0.5, by: 'end' } } }));
    const text = await (await ask('/v1/messages', messages)).text();
    expect(text).toContain('event: message_start');
    expect(text).not.toContain('message_delta');
  });

  test('hanging in mid-stream and before the headers ends with the peer, and is recorded', async () => {
    for (const delivery of [{ before: 'hang' as const }, { cut: { at: 2, by: 'hang' as const } }]) {
      upstream.clear();
      upstream.enqueue(say('x', { delivery }));
      const abort = new AbortController();
      const asking = ask('/v1/messages', messages, abort.signal).then((one) => one.text());
      const result = await upstream.request(0);
      setTimeout(() => abort.abort(), 40);
      await expect(asking).rejects.toThrow();
      await result.over;
      expect(result.abortedAfterMs).toBeGreaterThan(20);
    }
  });

  test('an error event in mid-stream is the last one', async () => {
    const cut = { at: 3, by: 'error' as const };
    upstream.enqueue(say('text', { delivery: { cut } }));
    const text = await (
      await ask('/v1/responses', { model: 'm', input: 'x', stream: true })
    ).text();
    expect(text).toContain('event: error');
    expect(text.trimEnd().split('\n\n').at(-1)).toStartWith('event: response.failed');
  });

  test('splits, CRLF, comments and gzip do not change the events', async () => {
    const answers: string[] = [];
    for (const delivery of [
      {},
      { split: (bytes: Uint8Array) => [bytes.slice(0, 100), bytes.slice(100)] },
      { crlf: true },
      { comments: true },
      { gzip: true },
    ]) {
      upstream.enqueue(say('Grüße 👋🏽', { delivery }));
      const stream = anthropic.messages.stream({
        model: 'm',
        max_tokens: 10,
        messages: [user('x')],
      });
      answers.push(await stream.finalText());
    }
    expect(new Set(answers)).toEqual(new Set(['Grüße 👋🏽']));
  });

  test('status errors come in the vendor’s shape, with their headers', async () => {
    upstream.enqueue({ status: 429, headers: { 'retry-after': '3' } }, { status: 529 });
    const limited = await ask('/v1/chat/completions', chat);
    expect(limited.status).toBe(429);
    expect(limited.headers.get('retry-after')).toBe('3');
    expect(await limited.json()).toMatchObject({ error: { type: 'rate_limit_error' } });
    const overloaded = await ask('/v1/messages', messages);
    expect(await overloaded.json()).toMatchObject({
      type: 'error',
      error: { type: 'overloaded_error' },
    });
  });
});

/** What vendors report of an answer besides its tokens at the end: zeros, failures, served tiers, searches. */

import { describe, expect, test } from 'bun:test';
import {
  mergeUsage,
  digestStream as messagesStream,
} from '../../src/codecs/anthropic-messages/reply/digest.ts';
import { decodeUsage as messagesUsage } from '../../src/codecs/anthropic-messages/reply/usage.ts';
import { decodeUsage as geminiUsage } from '../../src/codecs/google-gemini/reply/usage.ts';
import {
  digestReply as chatReply,
  digestStream as chatStream,
} from '../../src/codecs/openai-chat/reply/digest.ts';
import { decodeUsage as chatUsage } from '../../src/codecs/openai-chat/reply/usage.ts';
import { digestReply, digestStream } from '../../src/codecs/openai-responses/reply/digest.ts';
import { decodeUsage as responsesUsage } from '../../src/codecs/openai-responses/reply/usage.ts';
import { cataloguePrice } from '../../src/config/models/model-facts.ts';
import { modelPrice } from '../../src/config/sections/prices.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { PriceBook } from '../../src/money/price.ts';
import { startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';

const START = { input_tokens: 120, cache_read_input_tokens: 50, output_tokens: 1 };

test.each([
  ['zeros', { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 5 }, [120, 50]],
  ['one zero', { input_tokens: 0, output_tokens: 5 }, [120, 50]],
  ['null', { input_tokens: null, output_tokens: 5 }, [120, 50]],
  ['output alone', { output_tokens: 5 }, [120, 50]],
  ['a greater count', { input_tokens: 300, output_tokens: 5 }, [300, 50]],
  [
    'a smaller input whose parts add up',
    { input_tokens: 20, cache_read_input_tokens: 150 },
    [20, 150],
  ],
])('a delta never makes the prompt smaller: %s', (_, later, [input, cached]) => {
  const usage = messagesUsage(mergeUsage(START, later))!;
  expect([usage.input, usage.cacheRead]).toEqual([input, cached]);
});

test('a delta of zeros keeps the searches that were counted', () => {
  const merged = mergeUsage(
    { ...START, server_tool_use: { web_search_requests: 3 } },
    { output_tokens: 5, server_tool_use: { web_search_requests: 0 } },
  );
  expect(messagesUsage(merged)!.hosted).toEqual({ web_search_requests: 3 });
});

const frame = (value: object) => ({ event: '', data: JSON.stringify(value) }) as never;
const USAGE = {
  input_tokens: 100,
  output_tokens: 30,
  output_tokens_details: { reasoning_tokens: 20 },
};

test.each(['failed', 'incomplete'])(
  'usage that response.%s reports counts as reported',
  (status) => {
    const end = {
      type: `response.${status}`,
      response: { status, usage: USAGE, error: { code: 'server_error', message: 'x' } },
    };
    const digest = digestStream([frame(end)]);
    expect(digest.counted).toBe(true);
    expect(digest.usage).toMatchObject({ input: 100, output: 10, reasoning: 20 });
  },
);

test('usage at the start of a Messages stream that fails counts the prompt only', () => {
  const start = frame({ type: 'message_start', message: { usage: START } });
  const failed = { type: 'error', error: { type: 'overloaded_error', message: 'x' } };
  expect(messagesStream([start, frame(failed)]).counted).toBe(false);
  const told = { ...failed, usage: { input_tokens: 120, output_tokens: 7 } };
  expect(messagesStream([start, frame(told)])).toMatchObject({
    counted: true,
    usage: { output: 7 },
  });
});

test('the served tier is the one that the answer names, in each protocol', () => {
  const chat = {
    choices: [{ message: { content: 'x' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1 },
    service_tier: 'default',
  };
  const response = { status: 'completed', output: [], usage: USAGE, service_tier: 'flex' };
  expect(chatReply(chat).usage?.serviceTier).toBe('default');
  expect(digestReply(response).usage?.serviceTier).toBe('flex');
  expect(messagesUsage({ ...START, service_tier: 'priority' })?.serviceTier).toBe('priority');
  expect(geminiUsage({ promptTokenCount: 1, trafficType: 'ON_DEMAND_FLEX' })?.serviceTier).toBe(
    'flex',
  );
});

const KINDS = [
  ['Chat', chatUsage, 'prompt_tokens', 'completion_tokens', 'total_tokens'],
  ['Responses', responsesUsage, 'input_tokens', 'output_tokens', 'total_tokens'],
  ['Messages', messagesUsage, 'input_tokens', 'output_tokens', undefined],
  ['Gemini', geminiUsage, 'promptTokenCount', 'candidatesTokenCount', 'totalTokenCount'],
] as const;

describe.each(KINDS)('a count of %s that is', (_, decode, input, output, total) => {
  test.each([undefined, null, -500, 1e200, 'many', '-5', {}, '1'.repeat(20)])(
    'no count (%j) is unknown, and no 0',
    (bad) => {
      expect(decode({ [input]: 10, [output]: bad })).toMatchObject({ unknown: 'output' });
      expect(decode({ [input]: bad, [output]: 10 })).toMatchObject({
        unknown: 'input',
        output: 10,
      });
    },
  );

  test('its digits is read', () => {
    expect(decode({ [input]: '10', [output]: '500' })).toEqual({ input: 10, output: 500 });
  });

  // Messages has no total.
  if (total === undefined) return;
  test('missing is what the total says beside the other', () => {
    expect(decode({ [input]: 10, [total]: 510 })).toEqual({ input: 10, output: 500 });
    expect(decode({ [output]: 10, [total]: 510 })).toEqual({ input: 500, output: 10 });
  });
});

test('zeros at the end of a stream do not take back the output', () => {
  const chunk = (usage: object) => frame({ choices: [{ finish_reason: 'stop' }], usage });
  const zeros = { prompt_tokens: 0, completion_tokens: 0 };
  const told = { prompt_tokens: 10, completion_tokens: 500 };
  expect(chatStream([chunk(told), chunk(zeros)]).usage).toMatchObject({ input: 10, output: 500 });
  const delta = (usage: object) => frame({ type: 'message_delta', delta: {}, usage });
  const start = frame({ type: 'message_start', message: { usage: START } });
  const frames = [start, delta({ output_tokens: 40 }), delta({ output_tokens: 0 })];
  expect(messagesStream(frames).usage).toMatchObject({ output: 40 });
  expect(messagesStream([start, delta({ output_tokens: 0 })]).usage).toMatchObject({ output: 0 });
});

test('a prompt of 0 at the end of a stream does not take back the prompt', () => {
  const chunk = (usage: object) => frame({ choices: [{ delta: {} }], usage });
  const told = {
    prompt_tokens: 10,
    completion_tokens: 1,
    prompt_tokens_details: { cached_tokens: 4 },
  };
  const later = { prompt_tokens: 0, completion_tokens: 7 };
  const { usage } = chatStream([chunk(told), chunk(later)]);
  expect(usage).toMatchObject({ input: 6, cacheRead: 4, output: 7 });
});

// https://github.com/earendil-works/pi/issues/2326
test.each<[string, object, object]>([
  ['alone', {}, { input: 100, output: 30 }],
  ['with a total', { total_tokens: 130 }, { input: 100, output: 30 }],
  [
    'with cached tokens beside it',
    { cache_read_input_tokens: 50, cache_creation_input_tokens: 10 },
    { input: 100, output: 30, cacheRead: 50, cacheWrite: 10 },
  ],
  ['beside those of Chat', { prompt_tokens: 7, completion_tokens: 3 }, { input: 7, output: 3 }],
])('usage under the names of Messages in a Chat answer is paid for: %s', (_, more, expected) => {
  expect(chatUsage({ input_tokens: 100, output_tokens: 30, ...more })).toMatchObject(expected);
});

test('the output at the start of a Messages stream is no count of it', () => {
  const start = frame({ type: 'message_start', message: { usage: START } });
  const end = (usage?: object) =>
    frame({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage });
  for (const usage of [undefined, {}, { input_tokens: 3 }, { output_tokens: 'x' }])
    expect(messagesStream([start, end(usage)]).usage).toMatchObject({ unknown: 'output' });
  expect(messagesStream([start, end({ output_tokens: 7 })]).usage).not.toHaveProperty('unknown');
});

test('only searches count as searches, not pages that are opened', () => {
  const call = (action?: object, status = 'completed') => ({
    type: 'web_search_call',
    status,
    action,
  });
  const output = [
    call({ type: 'search', query: 'a' }),
    call(),
    call({ type: 'open_page' }),
    call({ type: 'find_in_page' }),
    call({ type: 'search' }, 'failed'),
  ];
  const { usage } = digestReply({ status: 'completed', output, usage: USAGE } as never);
  expect(usage?.hosted).toEqual({ web_search_requests: 2 });
});

test('built-in prices know what a search costs, or say that they do not', () => {
  expect(cataloguePrice('anthropic', 'claude-haiku-4-5')?.search).toBe(10);
  const book = new PriceBook({
    providers: {
      o: { vendor: 'openai', prices: [] },
      p: { prices: [modelPrice('*', { input: 1, output: 1 })] },
    },
  });
  expect(book.of('o/gpt-4o').at(Date.now())?.pricesSearches).toBe(false);
  expect(book.of('p/m').at(Date.now())?.pricesSearches).toBe(true);
});

test("a tier's own input and output are the defaults of the kinds that follow them", () => {
  const price = { input: 3, output: 6, cached: 0.3, cache_write: 4, reasoning: 7, search: 10 };
  const [long, dear] = modelPrice('m', {
    ...price,
    tiers: [
      { above: 10, input: 6 },
      { output: 9, cached: 1 },
    ],
  }).tiers;
  expect(long!.rates).toMatchObject({
    input: 6,
    cached: 6,
    cacheWrite: 6,
    cacheWrite1h: 6,
    output: 6,
    reasoning: 7,
    search: 10,
  });
  expect(dear!.rates).toMatchObject({
    input: 3,
    cached: 1,
    cacheWrite: 4,
    output: 9,
    reasoning: 9,
  });
});

test('an answer whose usage leaves out the output is counted by its length, and marked', async () => {
  const content = 'x'.repeat(400);
  const vendor = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () =>
      Response.json({
        id: 'x',
        object: 'chat.completion',
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 10, completion_tokens: -500 },
      }),
  });
  const gateway = await startInProcess({
    providers: {
      up: { protocol: 'openai-chat', base_url: `http://127.0.0.1:${vendor.port}`, models: ['m'] },
    },
    auth: { keys: [{ name: 'ci', key: 'k'.repeat(32) }] },
    samples: { mode: 'off' },
  });
  const headers = { authorization: `Bearer ${'k'.repeat(32)}` };
  const spent = async () => {
    const answer = await fetch(`${gateway.url}/v1/usage`, { headers });
    return ((await answer.json()) as { spent: { today: { tokens: number } } }).spent.today.tokens;
  };
  try {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi.' }] });
    await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body });
    await until(async () => (await spent()) >= 90);
  } finally {
    await gateway.stop();
    await vendor.stop(true);
  }
});

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
/** Streams whose first words are that nothing came of the answer, with what it costs. */
const FAILED_AT_ONCE = {
  'openai-chat': `${event({
    id: 'c',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: {}, finish_reason: 'error' }],
    usage: { prompt_tokens: 100, completion_tokens: 30, total_tokens: 130 },
  })}data: [DONE]\n\n`,
  // https://ai.google.dev/api/generate-content#FinishReason
  'google-gemini': event({
    candidates: [{ index: 0, finishReason: 'MALFORMED_FUNCTION_CALL' }],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 30, totalTokenCount: 130 },
  }),
};

test.each(Object.entries(FAILED_AT_ONCE))(
  'a stream of %s that fails before its first word costs what the vendor says',
  async (protocol, stream) => {
    const vendor = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () => new Response(stream, { headers: { 'content-type': 'text/event-stream' } }),
    });
    const gateway = await startInProcess({
      providers: {
        up: {
          protocol,
          base_url: `http://127.0.0.1:${vendor.port}/v1`,
          keys: ['k'],
          models: ['m'],
        },
      },
      auth: { keys: [{ name: 'ci', key: 'k'.repeat(32) }] },
      retry: { attempts: 1 },
      samples: { mode: 'off' },
    });
    const headers = { authorization: `Bearer ${'k'.repeat(32)}` };
    const messages = [{ role: 'user', content: 'Hi.' }];
    const paths = {
      '/v1/chat/completions': { model: 'm', stream: true, messages },
      '/v1/messages': { model: 'm', stream: true, max_tokens: 9, messages },
      '/v1/responses': { model: 'm', stream: true, input: 'Hi.', store: false },
      '/v1beta/models/m:streamGenerateContent?alt=sse': {
        contents: [{ role: 'user', parts: [{ text: 'Hi.' }] }],
      },
    };
    const spent = async () => {
      const answer = await fetch(`${gateway.url}/v1/usage`, { headers });
      return ((await answer.json()) as { spent: { today: { tokens: number } } }).spent.today.tokens;
    };
    try {
      for (const [at, [path, body]] of Object.entries(paths).entries()) {
        const sent = { method: 'POST', headers, body: JSON.stringify(body) };
        const answer = await fetch(gateway.url + path, sent);
        await answer.text().catch(() => {});
        await until(async () => (await spent()) >= 130 * (at + 1));
      }
      expect(await spent()).toBe(130 * 4);
    } finally {
      await gateway.stop();
      await vendor.stop(true);
    }
  },
);

// Each cause from a public report; the counts that exclude each other are what is paid for.
test.each<[string, object, object]>([
  [
    'thoughts that the total alone has, as Gemini counts in this form (Clarifai/clarifai-python#978)',
    { prompt_tokens: 20, completion_tokens: 424, total_tokens: 1016 },
    { input: 20, output: 424, reasoning: 572 },
  ],
  [
    'cached tokens beside the prompt, which the total shows',
    {
      prompt_tokens: 60,
      completion_tokens: 10,
      total_tokens: 110,
      prompt_tokens_details: { cached_tokens: 40 },
    },
    { input: 60, output: 10, cacheRead: 40 },
  ],
  [
    "writes under LiteLLM's name",
    {
      prompt_tokens: 100,
      completion_tokens: 10,
      prompt_tokens_details: { cached_tokens: 40, cache_creation_tokens: 20 },
    },
    { input: 40, output: 10, cacheRead: 40, cacheWrite: 20 },
  ],
  [
    'reasoning beside the completion (xAI)',
    {
      prompt_tokens: 100,
      completion_tokens: 10,
      total_tokens: 160,
      completion_tokens_details: { reasoning_tokens: 50 },
    },
    { input: 100, output: 10, reasoning: 50 },
  ],
  [
    'a total that is too small',
    { prompt_tokens: 100, completion_tokens: 10, total_tokens: 10 },
    { input: 100, output: 10 },
  ],
  [
    "writes for an hour in LiteLLM's details (BerriAI/litellm#20293)",
    {
      prompt_tokens: 100,
      completion_tokens: 10,
      prompt_tokens_details: {
        cached_tokens: 40,
        cache_creation_tokens: 20,
        cache_creation_token_details: {
          ephemeral_5m_input_tokens: 5,
          ephemeral_1h_input_tokens: 15,
        },
      },
    },
    { input: 40, output: 10, cacheRead: 40, cacheWrite: 20, cacheWrite1h: 15 },
  ],
  [
    "writes for an hour in Anthropic's details beside the counts",
    {
      prompt_tokens: 100,
      completion_tokens: 10,
      cache_creation_input_tokens: 20,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 20 },
    },
    { input: 80, output: 10, cacheWrite: 20, cacheWrite1h: 20 },
  ],
  [
    "searches under Anthropic's name (OpenRouter, LiteLLM)",
    {
      prompt_tokens: 100,
      completion_tokens: 10,
      server_tool_use: { web_search_requests: 2 },
    },
    { input: 100, output: 10, hosted: { web_search_requests: 2 } },
  ],
])("tokens of an answer of OpenAI's APIs are counted once each: %s", (_, usage, expected) => {
  const items = JSON.parse(
    JSON.stringify(usage).replaceAll('"prompt_', '"input_').replaceAll('"completion_', '"output_'),
  ) as JsonObject;
  // Relays give the usage of Responses by the names of Chat, too.
  const zeros = { ...usage, input_tokens: 0, output_tokens: 0 };
  const forms = [
    chatUsage(usage),
    ...[items, usage, zeros].map((one) => responsesUsage(one as JsonObject)),
  ];
  for (const counted of forms) {
    expect(counted).toMatchObject(expected);
    if (!('reasoning' in expected)) expect(counted?.reasoning).toBeUndefined();
  }
});

test.each<[string, object, object]>([
  ['listed', { thoughtsTokenCount: 30 }, { output: 10, reasoning: 30 }],
  ['in the total alone (Wei-Shaw/sub2api#554)', {}, { output: 10, reasoning: 30 }],
  ['listed in part', { thoughtsTokenCount: 20 }, { output: 10, reasoning: 30 }],
  ['not there', { totalTokenCount: 110 }, { output: 10, reasoning: undefined }],
  [
    'beside the prompt of a tool',
    { toolUsePromptTokenCount: 7, totalTokenCount: 147 },
    { input: 107, output: 10, reasoning: 30 },
  ],
])("Gemini's thoughts count, which are %s", (_, more, expected) => {
  const usage = { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 140, ...more };
  expect(geminiUsage(usage)).toMatchObject(expected);
});

test('writes to the cache that a Messages answer reports by their time alone are counted', () => {
  const cache_creation = { ephemeral_5m_input_tokens: 5, ephemeral_1h_input_tokens: 15 };
  expect(messagesUsage({ input_tokens: 40, output_tokens: 1, cache_creation })).toMatchObject({
    cacheWrite: 20,
    cacheWrite1h: 15,
  });
});

// pydantic/pydantic-ai#5065, ccusage/ccusage#1115
describe('runs of models that the counts of a Messages answer leave out are paid for', () => {
  const own = { input_tokens: 100, output_tokens: 10 };
  const usage = {
    ...own,
    iterations: [
      { type: 'compaction', input_tokens: 1000, output_tokens: 50, cache_read_input_tokens: 2000 },
      { type: 'advisor_message', model: 'dear', input_tokens: 300, output_tokens: 20 },
      { type: 'message', ...own },
      { type: 'fallback_message', model: 'dear', ...own },
    ],
  };
  const events = [
    { type: 'message_start', message: { role: 'assistant', model: 'm', content: [], usage: own } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi.' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
    { type: 'message_stop' },
  ].map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`);
  const whole = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Hi.' }],
    stop_reason: 'end_turn',
    usage,
  };
  const ask = { model: 'up/m', max_tokens: 99, messages: [{ role: 'user', content: 'Hi.' }] };

  test.each([
    ['/v1/messages', false],
    ['/v1/messages', true],
    ['/v1/chat/completions', false],
    ['/v1/chat/completions', true],
  ] as const)('%s, stream: %p', async (path, stream) => {
    const vendor = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () =>
        stream
          ? new Response(events.join(''), { headers: { 'content-type': 'text/event-stream' } })
          : Response.json(whole),
    });
    const gateway = await startInProcess({
      providers: {
        up: {
          protocol: 'anthropic-messages',
          base_url: `http://127.0.0.1:${vendor.port}`,
          keys: ['k'],
          models: ['m'],
          prices: { m: { input: 1, output: 2, cached: 0.1 }, dear: { input: 10, output: 20 } },
        },
      },
      auth: { keys: [{ name: 'ci', key: 'k'.repeat(32) }] },
      samples: { mode: 'off' },
    });
    const headers = { authorization: `Bearer ${'k'.repeat(32)}` };
    try {
      const asked = path === '/v1/messages' ? {} : { stream_options: { include_usage: true } };
      const body = JSON.stringify({ ...ask, stream, ...(stream && asked) });
      const answer = await fetch(gateway.url + path, { method: 'POST', headers, body });
      const text = await answer.text();
      // The context of the conversation is what agents compact by: it stays that of the answer alone.
      expect(text).toMatch(
        path === '/v1/messages' ? /"input_tokens":100\b/ : /"prompt_tokens":100\b/,
      );
      const today = async () => {
        const told = await fetch(`${gateway.url}/v1/usage`, { headers });
        return ((await told.json()) as { spent: { today: { tokens: number; cost_usd: number } } })
          .spent.today;
      };
      await until(async () => (await today()).tokens > 0);
      const paid = await today();
      expect(paid.tokens).toBe(110 + 3050 + 320);
      expect(paid.cost_usd).toBeCloseTo((120 + 1000 + 200 + 100 + 3000 + 400) / 1e6, 9);
    } finally {
      await gateway.stop();
      await vendor.stop(true);
    }
  });
});

/** What vendors report of an answer besides its tokens at the end: zeros, failures, served tiers, searches. */

import { expect, test } from 'bun:test';
import {
  mergeUsage,
  digestStream as messagesStream,
} from '../../src/codecs/anthropic-messages/reply/digest.ts';
import { decodeUsage as messagesUsage } from '../../src/codecs/anthropic-messages/reply/usage.ts';
import { decodeUsage as geminiUsage } from '../../src/codecs/google-gemini/reply/usage.ts';
import { digestReply as chatReply } from '../../src/codecs/openai-chat/reply/digest.ts';
import { digestReply, digestStream } from '../../src/codecs/openai-responses/reply/digest.ts';
import { cataloguePrice } from '../../src/config/models/model-facts.ts';
import { modelPrice } from '../../src/config/sections/prices.ts';
import { PriceBook } from '../../src/money/price.ts';

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

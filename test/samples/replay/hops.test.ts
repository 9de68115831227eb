/** Stages of a sample as hops and tries, also for incomplete exchanges. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../../src/app/codecs.ts';
import { modelPrice } from '../../../src/config/sections/prices.ts';
import { pricesOf } from '../../../src/samples/replay/cost.ts';
import { costOfExchange, hopsOf, triesOf } from '../../../src/samples/replay/hops.ts';
import type { SampleMeta, SampleStage } from '../../../src/samples/sample.ts';

const edge = (stage: string, more: Partial<SampleStage> = {}): SampleStage => ({
  stage,
  file: `req_1_a_${stage}.json`,
  bytes: 2,
  ...more,
});

const meta = (edges: readonly SampleStage[], more: Partial<SampleMeta> = {}): SampleMeta => ({
  id: 'req_1_a',
  entry: 'openai-chat',
  state: 'done',
  time: 1,
  notes: [],
  masked: 0,
  edges,
  ...more,
});

const NONE = pricesOf({ providers: {} });
const parts = { protocols: CODECS };
const nothing = { read: () => undefined };

describe('tries', () => {
  test('ten tries of one hop are in numeric order, the successful one last', () => {
    const stages = ['', ...Array.from({ length: 10 }, (_, i) => `try${i + 1}-`)];
    const edges = stages.flatMap((prefix) => [
      edge(`${prefix}provider-request`),
      edge(`${prefix}provider-${prefix === '' ? 'response' : 'error'}`),
    ]);
    const [tries, ...more] = triesOf(meta(edges));
    expect(more).toEqual([]);
    expect(tries!.map(({ request }) => request!.stage)).toEqual([
      ...stages.slice(1).map((prefix) => `${prefix}provider-request`),
      'provider-request',
    ]);
    expect(tries!.map(({ counted }) => counted)).toEqual([...Array(10).fill(false), true]);
    expect(tries!.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  test('hops beyond nine are in order; other stages are not hops', () => {
    const edges = [12, 2, 10].map((hop) =>
      edge(`hop${hop}-provider-request`, { target: `p/${hop}` }),
    );
    const hops = hopsOf(
      nothing,
      meta([edge('client-request'), edge('provider-request'), ...edges, edge('something-else')]),
      NONE,
      parts,
    );
    expect(hops.map(({ target }) => target)).toEqual([undefined, 'p/2', 'p/10', 'p/12']);
    expect(hops.map(({ number }) => number)).toEqual([1, 2, 10, 12]);
  });
});

describe('the usage of a hop', () => {
  const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const answer = JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi.' } }],
    usage: USAGE,
  });
  const prices = pricesOf({
    providers: {
      p: {
        prices: [modelPrice('*', { input: 1e6, output: 1e6, cached: 0, cache_write: 0 })],
      },
    },
  } as unknown as Parameters<typeof pricesOf>[0]);
  const message = { read: () => new TextEncoder().encode(answer) };
  const response = (stage: string, target: string) =>
    edge(stage, { target, protocol: 'openai-chat', status: 200 });

  test('usage is read from the answer; the exchange costs the sum of its hops', () => {
    const whole = meta([
      response('provider-response', 'p/a'),
      response('hop2-provider-response', 'p/b'),
    ]);
    const hops = hopsOf(message, whole, prices, parts);
    expect(hops.map(({ cost }) => cost)).toEqual([15, 15]);
    expect(hops[0]).toMatchObject({ usage: { input: 10, output: 5 }, finish: 'stop' });
    expect(costOfExchange(whole, hops, prices)).toBe(30);
  });

  test('with a hop without price, the exchange is priced by its own usage', () => {
    const mixed = meta(
      [response('provider-response', 'q/a'), response('hop2-provider-response', 'p/b')],
      {
        target: 'p/b',
        usage: { input: 1, output: 1 },
      },
    );
    expect(costOfExchange(mixed, hopsOf(message, mixed, prices, parts), prices)).toBe(2);
  });

  test('an answer that its codec cannot read has no usage, and causes no error', () => {
    for (const text of ['', 'null', '[]', '{"choices":7}', '\u0000', '<html>']) {
      const odd = { read: () => new TextEncoder().encode(text) };
      const [hop] = hopsOf(odd, meta([response('provider-response', 'p/a')]), prices, parts);
      expect([text, hop!.cost]).toEqual([text, null]);
    }
  });
});

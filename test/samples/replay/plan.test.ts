/** What a replay or a bisection costs, said before it is sent. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../../src/app/codecs.ts';
import { pricesOf } from '../../../src/samples/replay/cost.ts';
import { planBisection, planReplay } from '../../../src/samples/replay/plan.ts';
import type { ReplaySource } from '../../../src/samples/replay/source.ts';
import { good } from '../../config/support.ts';

const provider = (name: string) =>
  `  ${name}: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1", prices: { "*": { input: 10, output: 20, cached: 1, cache_write: 12 } } }\n`;
const config = good(`providers:\n${provider('a')}${provider('b')}`);
const prices = pricesOf(config);

/** A million tokens in, of which the vendor had nine tenths in its cache, and 50,000 out. */
const source: ReplaySource = {
  name: 's',
  protocol: 'openai-chat',
  body: Buffer.from('{"model":"a/m","messages":[]}'),
  headers: new Headers(),
  search: '',
  direct: false,
  target: 'a/m',
  answer: {
    status: 200,
    headers: new Headers({ 'content-type': 'application/json' }),
    reset: false,
    body: Buffer.from(
      JSON.stringify({
        id: 'c',
        object: 'chat.completion',
        choices: [
          { index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' },
        ],
        usage: {
          prompt_tokens: 1_000_000,
          completion_tokens: 50_000,
          total_tokens: 1_050_000,
          prompt_tokens_details: { cached_tokens: 900_000 },
        },
      }),
    ),
  },
};
const plan = (options: object) =>
  planReplay({ config, sources: [source], repair: true, repeat: 1, ...options }, prices, CODECS);

const CACHED = 1 + 0.9 + 1;
const COLD = 10 + 1;

describe('a replay', () => {
  test('at the same target: with what its vendor had in the cache', () => {
    expect(plan({}).usd).toBeCloseTo(CACHED, 9);
    expect(plan({ to: ['a/m'] }).usd).toBeCloseTo(CACHED, 9);
  });

  test.each([
    ['to', { to: ['b/m'] }],
    ['to another model', { to: ['a/n'] }],
    ['compare', { compare: ['to=b/m'] }],
  ])('%s: no other vendor or model has the prompt in its cache', (_, options) => {
    expect(plan(options).usd).toBeCloseTo(COLD, 9);
  });

  test('beside the same target: each has its own price, and they are added up', () => {
    const { requests, targets, usd } = plan({ to: ['a/m', 'b/m'], repeat: 2 });
    expect(requests).toBe(4);
    expect(targets.map((one) => [one.target, one.requests, one.usd?.toFixed(3)])).toEqual([
      ['a/m', 2, (2 * CACHED).toFixed(3)],
      ['b/m', 2, (2 * COLD).toFixed(3)],
    ]);
    expect(usd).toBeCloseTo(2 * (CACHED + COLD), 9);
  });
});

test('a bisection costs at most the whole prompt each time: one that changes is in no cache', () => {
  expect(planBisection(source, { budget: 3 }, prices, CODECS).usd).toBeCloseTo(3 * COLD, 9);
});

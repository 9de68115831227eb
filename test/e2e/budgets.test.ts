/** A budget for ten requests and a hundred at once: exactly ten get through, in each protocol, from every process. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { UsageReport } from '../../src/limits/usage-report.ts';
import { startGateway } from '../support/binary.ts';
import {
  type FakeProtocol,
  type FakeUpstream,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';

import { until } from '../support/until.ts';

setDefaultTimeout(120_000);

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterAll(() => upstream.stop());

const KEY = 'key-of-the-build-server';
const ASKED = 100;

interface Surface {
  readonly path: string;
  /** Where streams have a path of their own. */
  readonly streams?: string;
  readonly body: object;
  readonly status: number;
  readonly type: string;
}

const messages = [{ role: 'user', content: 'hi' }];
const SURFACES: Readonly<Record<FakeProtocol, Surface>> = {
  'openai-chat': {
    path: '/v1/chat/completions',
    body: { model: 'm1', messages },
    status: 429,
    type: 'insufficient_quota',
  },
  'openai-responses': {
    path: '/v1/responses',
    body: { model: 'm1', input: 'hi' },
    status: 429,
    type: 'insufficient_quota',
  },
  'anthropic-messages': {
    path: '/v1/messages',
    body: { model: 'm1', max_tokens: 50, messages },
    status: 402,
    type: 'billing_error',
  },
  'google-gemini': {
    path: '/v1beta/models/m1:generateContent',
    streams: '/v1beta/models/m1:streamGenerateContent?alt=sse',
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    status: 429,
    type: 'RESOURCE_EXHAUSTED',
  },
};

/** Each request costs one dollar, and there are ten. */
const config = (protocol: FakeProtocol, workers: number) => ({
  workers,
  providers: {
    vendor: {
      protocol,
      base_url: upstream.baseUrl(protocol),
      keys: ['sk-upstream'],
      models: ['m1'],
      prices: { m1: { input: 0, output: 0, request: 1000 } },
    },
  },
  samples: { mode: 'off' },
  retry: { base_delay: 0.02, max_delay: 2 },
  auth: { keys: [{ name: 'ci', key: KEY, budgets: [{ name: 'ten', usd: 10, per: 'total' }] }] },
});

const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };

for (const workers of [1, 2]) {
  describe(`with ${workers} process${workers === 1 ? '' : 'es'}`, () => {
    for (const [protocol, surface] of Object.entries(SURFACES)) {
      for (const stream of [false, true]) {
        const { path, streams = path, body, status, type } = surface;
        const isGemini = protocol === 'google-gemini';
        test(`${protocol}${stream ? ', streams' : ''}`, async () => {
          upstream.clear();
          upstream.answerWith(() => say('hello'));
          const gateway = await startGateway(config(protocol as FakeProtocol, workers));
          try {
            // A connection each: the kernel spreads them over the processes.
            const answers = await Promise.all(
              Array.from({ length: ASKED }, async () => {
                const answer = await fetch(`${gateway.url}${stream ? streams : path}`, {
                  method: 'POST',
                  headers: { ...headers, connection: 'close' },
                  body: JSON.stringify(isGemini ? body : { ...body, stream }),
                });
                return { answer, text: await answer.text() };
              }),
            );
            const passed = answers.filter(({ answer }) => answer.ok);
            const refused = answers.filter(({ answer }) => !answer.ok);
            expect(passed).toHaveLength(10);
            expect(upstream.modelRequests).toHaveLength(10);
            for (const { text } of passed) expect(text).toContain('hello');
            for (const { answer, text } of refused) {
              expect(answer.status).toBe(status);
              expect(answer.headers.get('x-should-retry')).toBe(isGemini ? null : 'false');
              expect(answer.headers.get('x-hopgate-budget-remaining-usd')).toBe('0');
              expect(JSON.parse(text)).toMatchObject({
                error: isGemini ? { status: type } : { type },
              });
              expect(text).toContain('The budget \\"ci: ten\\" is used up');
            }
            const budget = async () => {
              const usage = await fetch(`${gateway.url}/v1/usage`, { headers });
              const report = (await usage.json()) as UsageReport;
              expect(report.budgets).toMatchObject([{ remaining_usd: 0, resets_at: null }]);
              return report.budgets[0]!;
            };
            // Another process may tell a moment after its answer that nothing is reserved any more.
            if (workers > 1) await until(async () => (await budget()).reserved_usd === 0);
            expect(await budget()).toMatchObject({ spent_usd: 10, reserved_usd: 0 });
            expect(passed[0]!.answer.headers.get('x-hopgate-budget-remaining-usd')).toMatch(/^\d$/);
          } finally {
            expect(await gateway.stop()).toBe(0);
          }
        });
      }
    }
  });
}

test('a budget that is used up sends its requests by another route, from every process', async () => {
  const protocol = 'openai-chat';
  upstream.clear();
  upstream.answerWith(() => say('hello'));
  const one = config(protocol, 2);
  const { vendor } = one.providers;
  const gateway = await startGateway({
    ...one,
    providers: {
      dear: vendor,
      cheap: { ...vendor, models: ['m2'], prices: { m2: { input: 0, output: 0, request: 1 } } },
    },
    routes: [
      { name: 'usual', when: { model: 'm1' }, to: ['dear/m1'] },
      { name: 'saving', when: { model: 'nothing asks for this' }, to: ['cheap/m2'] },
    ],
    auth: {
      keys: [
        {
          name: 'ci',
          key: KEY,
          budgets: [{ name: 'ten', usd: 10, per: 'total', over: 'saving' }],
        },
      ],
    },
  });
  try {
    const targets: string[] = [];
    for (let i = 0; i < 30; i++) {
      const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { ...headers, connection: 'close' },
        body: JSON.stringify({ model: 'm1', messages }),
      });
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('hello')]);
      targets.push(answer.headers.get('x-hopgate-target') ?? '');
    }
    expect(targets).toEqual([...Array(10).fill('dear/m1'), ...Array(20).fill('cheap/m2')]);
  } finally {
    expect(await gateway.stop()).toBe(0);
  }
});

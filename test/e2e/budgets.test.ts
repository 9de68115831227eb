/** A budget for ten requests and a hundred at once: exactly ten get through, in each protocol, from every process. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { UsageReport } from '../../src/limits/usage-report.ts';
import { startGateway } from '../support/binary.ts';
import {
  type FakeUpstream,
  type Protocol,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';

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
  readonly body: object;
  readonly status: number;
  readonly type: string;
}

const messages = [{ role: 'user', content: 'hi' }];
const SURFACES: Readonly<Record<Protocol, Surface>> = {
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
};

/** Each request costs one dollar, and there are ten. */
const config = (protocol: Protocol, workers: number) => ({
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
    for (const [protocol, { path, body, status, type }] of Object.entries(SURFACES)) {
      for (const stream of [false, true]) {
        test(`${protocol}${stream ? ', streams' : ''}`, async () => {
          upstream.clear();
          upstream.answerWith(() => say('hello'));
          const gateway = await startGateway(config(protocol as Protocol, workers));
          try {
            // A connection each: the kernel spreads them over the processes.
            const answers = await Promise.all(
              Array.from({ length: ASKED }, async () => {
                const answer = await fetch(`${gateway.url}${path}`, {
                  method: 'POST',
                  headers: { ...headers, connection: 'close' },
                  body: JSON.stringify({ ...body, stream }),
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
              expect(answer.headers.get('x-should-retry')).toBe('false');
              expect(JSON.parse(text)).toMatchObject({ error: { type } });
              expect(text).toContain('The budget \\"ci: ten\\" is used up');
            }
            const usage = await fetch(`${gateway.url}/v1/usage`, { headers });
            const report = (await usage.json()) as UsageReport;
            expect(report.budgets).toMatchObject([
              { spent_usd: 10, reserved_usd: 0, remaining_usd: 0, resets_at: null },
            ]);
            expect(passed[0]!.answer.headers.get('x-hopgate-budget-remaining-usd')).toMatch(/^\d$/);
          } finally {
            expect(await gateway.stop()).toBe(0);
          }
        });
      }
    }
  });
}

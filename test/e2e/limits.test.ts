/** Limits in the running program: what the holder of a key sees, from every process. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { UsageReport } from '../../src/limits/usage-report.ts';
import { allProviders, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { ResponsesSocket } from '../support/responses-socket.ts';

setDefaultTimeout(60_000);

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterAll(() => upstream.stop());

const KEY = 'key-of-the-build-server';

const messages = [{ role: 'user', content: 'hi' }];
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }];
const SURFACES = [false, true].flatMap((stream) => {
  const call = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  return [
    ['chat', '/v1/chat/completions', { messages, stream }],
    ['responses', '/v1/responses', { input: 'hi', stream }],
    ['messages', '/v1/messages', { messages, max_tokens: 50, stream }],
    ['gemini', `/v1beta/models/via-chat:${call}`, { contents }],
  ].map(([name, path, body]) => ({
    name: `${name}${stream ? '-stream' : ''}`,
    path: path as string,
    body: { model: 'via-chat', ...(body as object) },
  }));
});

const config = (workers: number) =>
  threeProviders(upstream, {
    workers,
    auth: {
      admin_keys: ['key-of-the-admin'],
      keys: [
        {
          name: 'ci',
          key: KEY,
          labels: { team: 'web' },
          limits: { requests_per_minute: 60, concurrent: 3 },
          budgets: [{ usd: 5, per: 'day', time_zone: 'Asia/Kolkata' }],
        },
      ],
    },
    budgets: [{ name: 'web-team', keys: { team: 'web' }, usd: 200, per: 'month' }],
  });

for (const workers of [1, 2]) {
  describe(`with ${workers} process${workers === 1 ? '' : 'es'}`, () => {
    test('the holder of a key sees its limits and budgets, others do not', async () => {
      const gateway = await startGateway(config(workers));
      try {
        const usage = (key: string) =>
          fetch(`${gateway.url}/v1/usage`, {
            headers: { authorization: `Bearer ${key}`, connection: 'close' },
          });
        // New connections reach every process.
        const answers = await Promise.all(Array.from({ length: 40 }, () => usage(KEY)));
        expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(200));
        const reports = (await Promise.all(answers.map((one) => one.json()))) as UsageReport[];
        const [report] = reports;
        expect(report!.key).toBe('ci');
        expect(report!.limits).toEqual([
          { limit: 'requests_per_minute', amount: 60, used: 0, remaining: 60, reset_seconds: 0 },
          { limit: 'concurrent', amount: 3, used: 0, remaining: 3, reset_seconds: null },
        ]);
        expect(
          report!.budgets.map(({ usd, remaining_usd, per }) => [usd, remaining_usd, per]),
        ).toEqual([
          [5, 5, 'day'],
          [200, 200, 'month'],
        ]);
        expect(report!.budgets[0]!.resets_at).toMatch(/T18:30:00Z$/);
        for (const other of reports) expect(other).toEqual(report!);
        expect((await usage('wrong')).status).toBe(401);
        expect((await usage('key-of-the-admin')).status).toBe(401);
        const budgets = await fetch(`${gateway.url}/admin/v1/budgets`, {
          headers: { authorization: 'Bearer key-of-the-admin' },
        });
        expect(await budgets.json()).toMatchObject({
          object: 'list',
          data: [{ name: 'web-team', usd: 200 }, { usd: 5 }],
        });
      } finally {
        expect(await gateway.stop()).toBe(0);
      }
    });

    test('a refusal says what is left, in each protocol, whole, streamed and over WebSocket', async () => {
      upstream.answerWith(() => say('hello'));
      const keyOf = (surface: string) => `key-of-the-${surface}`;
      const gateway = await startGateway({
        ...allProviders(upstream),
        workers,
        auth: {
          keys: [...SURFACES.map(({ name }) => name), 'socket'].map((name) => ({
            name,
            key: keyOf(name),
            limits: { requests_per_minute: 1, tokens_per_minute: 1_000_000 },
            budgets: [{ usd: 5, per: 'day' }],
          })),
        },
      });
      try {
        for (const { name, path, body } of SURFACES) {
          const ask = () =>
            fetch(gateway.url + path, {
              method: 'POST',
              headers: {
                authorization: `Bearer ${keyOf(name)}`,
                'content-type': 'application/json',
                connection: 'close',
              },
              body: JSON.stringify(body),
            });
          const first = await ask();
          expect([name, first.status, await first.text()]).toEqual([
            name,
            200,
            expect.stringContaining('hello'),
          ]);
          const { status, headers } = await ask();
          expect([name, status]).toEqual([name, 429]);
          expectLeft(Object.fromEntries(headers));
        }
        const socket = await ResponsesSocket.open(gateway.url, {
          authorization: `Bearer ${keyOf('socket')}`,
        });
        socket.create({ model: 'via-chat', input: 'hi' });
        expect((await socket.last()).type).toBe('response.completed');
        socket.create({ model: 'via-chat', input: 'hi' });
        const frame = await socket.last(1);
        expect(frame).toMatchObject({ type: 'error', status: 429 });
        expectLeft(frame.headers as Record<string, string>);
        socket.close();
      } finally {
        expect(await gateway.stop()).toBe(0);
      }
    });
  });
}

function expectLeft(headers: Readonly<Record<string, string>>): void {
  expect(headers).toMatchObject({
    'retry-after': expect.stringMatching(/^[1-6]?\d$/),
    'x-ratelimit-limit-requests': '1',
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': expect.stringMatching(/^([1-5]?\d(\.\d+)?s|1m0s)$/),
    'x-ratelimit-limit-tokens': '1000000',
    'x-ratelimit-remaining-tokens': expect.stringMatching(/^(999\d{3}|1000000)$/),
    'x-hopgate-budget-remaining-usd': '5',
  });
}

/** A try that fails after its answer began leaves no idle timer behind: a timer keeps the whole body in memory. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { runningIdleTimers } from '../../src/lib/loop/idle-timer.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';

const SSE = { 'content-type': 'text/event-stream' };
/** A body that never ends: `first`, then `rest` for as long as it is read. */
function endless(first: string, rest: string, type: Record<string, string> = SSE): Response {
  let started = false;
  return new Response(
    new ReadableStream({
      async pull(controller) {
        controller.enqueue(Buffer.from(started ? rest : first));
        started = true;
        await Bun.sleep(1);
      },
    }),
    { headers: type },
  );
}

const COMMENTS = ': nothing\n\n'.repeat(2000);
const ANSWERS: Readonly<Record<string, () => Response>> = {
  'comments-past-the-limit': () => endless(COMMENTS, COMMENTS),
  'a-frame-past-the-limit': () => endless('data: {"choices":[', 'x'.repeat(20_000)),
  'a-frame-that-is-no-JSON': () => endless('data: {broken}\n\n', COMMENTS),
  'an-error-event': () => endless('data: {"error":{"message":"no"}}\n\n', COMMENTS),
  'JSON-past-the-limit': () =>
    endless('{"choices":[{"message":{"content":"', 'x'.repeat(20_000), {
      'content-type': 'application/json',
    }),
  'a-page': () => endless('<html>', '<p>'.repeat(5000), { 'content-type': 'text/html' }),
};

let vendor: ReturnType<typeof Bun.serve>;
let gateway: InProcess;
beforeAll(async () => {
  vendor = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch: async (request) => {
      const { model } = (await request.json()) as { model: string };
      return ANSWERS[model]!();
    },
  });
  gateway = await startInProcess({
    listen: '127.0.0.1:0',
    providers: {
      up: {
        protocol: 'openai-chat',
        base_url: `http://127.0.0.1:${vendor.port}/v1`,
        keys: ['sk-up-0123456789abcdef'],
        models: ['*'],
      },
    },
    retry: { attempts: 1 },
    limits: { frame_bytes: 100_000, answer_bytes: 100_000 },
    samples: { mode: 'errors' },
  });
});
afterAll(async () => {
  await gateway.stop();
  await vendor.stop(true);
});

const BODIES = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'Hi' }] },
  '/v1/messages': { max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] },
};
const CASES = Object.keys(ANSWERS).flatMap((model) =>
  Object.keys(BODIES).flatMap((path) => [true, false].map((stream) => [model, path, stream])),
) as [string, keyof typeof BODIES, boolean][];

test.each(CASES)('%s, %s, streamed: %p', async (model, path, stream) => {
  const before = runningIdleTimers();
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: `up/${model}`, stream, ...BODIES[path] }),
  });
  await response.text().catch(() => '');
  await until(() => runningIdleTimers() <= before);
});

test.each(['/v1/chat/completions', '/v1/messages', '/v1/embeddings'])(
  '%s: a try that a limit refuses',
  async (path) => {
    const limited = await startInProcess({
      listen: '127.0.0.1:0',
      providers: {
        up: {
          protocol: 'openai-chat',
          base_url: `http://127.0.0.1:${vendor.port}/v1`,
          keys: ['sk-up-0123456789abcdef'],
          models: ['*'],
        },
      },
      auth: { keys: [{ name: 'ann', key: 'sk-ann-0001', limits: { tokens_per_minute: 1 } }] },
    });
    try {
      const before = runningIdleTimers();
      const response = await fetch(limited.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer sk-ann-0001' },
        body: JSON.stringify({
          model: 'up/m',
          input: 'more than one token',
          max_tokens: 10,
          messages: [{ role: 'user', content: 'more than one token' }],
        }),
      });
      expect(response.status).toBe(429);
      await response.text();
      expect(runningIdleTimers()).toBeLessThanOrEqual(before);
    } finally {
      await limited.stop();
    }
  },
);

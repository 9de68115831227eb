/** Vendor faults and what the client must see: retries before the first byte, never a clean end after a cut. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import {
  contextOverflow,
  type FakeUpstream,
  type Protocol,
  refuse,
  type Step,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';
import { PROTOCOLS, plainRequest, post, VIA } from './clients.ts';

let upstream: FakeUpstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await startGateway(threeProviders(upstream));
}, 120_000);
afterEach(() => upstream.clear());
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const TERMINAL: Readonly<Record<Protocol, RegExp>> = {
  'openai-chat': /data: \[DONE\]|"finish_reason":"/,
  'openai-responses': /response\.(completed|incomplete)/,
  'anthropic-messages': /message_stop|"stop_reason":"/,
};
const ERROR: Readonly<Record<Protocol, RegExp>> = {
  'openai-chat': /data: \{"error"/,
  'openai-responses': /event: (error|response\.failed)/,
  'anthropic-messages': /event: error/,
};

/** Everything a client sees of one exchange. */
async function ask(client: Protocol, vendor: Protocol, stream: boolean, signal?: AbortSignal) {
  const { path, body } = plainRequest(client, VIA[vendor], stream);
  const started = performance.now();
  const response = await post(gateway.url, path, body, { signal });
  let text = '';
  let broken = false;
  try {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true });
  } catch {
    broken = true;
  }
  const took = performance.now() - started;
  return { status: response.status, headers: response.headers, text, broken, took };
}

/** The error object of a body in the client's protocol. */
function errorOf(client: Protocol, text: string): { message: string; type: string; code?: string } {
  const body = JSON.parse(text) as { type?: string; error: { message: string; type: string } };
  if (client === 'anthropic-messages') expect(body.type).toBe('error');
  expect(typeof body.error.message).toBe('string');
  expect(typeof body.error.type).toBe('string');
  return body.error;
}

const HTML = '<!doctype html><html><body>502 Bad Gateway</body></html>';
const TEXT = 'A text that is long enough to be cut somewhere in its middle.';

const PASSING: [string, Step][] = [
  ['429 with retry-after', refuse(429, { 'retry-after-ms': '60' })],
  ['500', refuse(500)],
  ['502 with HTML', refuse(502, { 'content-type': 'text/html' }, HTML)],
  ['503', refuse(503)],
  ['529', refuse(529)],
  ['a reset before the headers', say('x', { delivery: { before: 'reset' } })],
  ['an empty completion', { parts: [] }],
  ['HTML with status 200', { raw: HTML, contentType: 'text/html' }],
];

const pairs = PROTOCOLS.flatMap((client) => PROTOCOLS.map((vendor) => [client, vendor] as const));

for (const [client, vendor] of pairs) {
  describe(`${client} → ${vendor}`, () => {
    for (const stream of [true, false]) {
      const how = stream ? 'streamed' : 'whole';
      test.each(PASSING)(
        `%s is retried before the client sees it (${how})`,
        async (_name, fault) => {
          upstream.enqueue(fault, say('Second try.'));
          const result = await ask(client, vendor, stream);
          expect(result).toMatchObject({ status: 200, broken: false });
          const message = stream ? result.text.replaceAll(/\n/g, '') : result.text;
          expect(upstream.modelRequests).toHaveLength(2);
          expect(message).toMatch(stream ? TERMINAL[client] : /Second try\./);
          expect(result.text).not.toContain('<html>');
        },
      );

      test(`repeated empty completions are an error, not an answer (${how})`, async () => {
        upstream.answerWith(() => ({ parts: [] }));
        const result = await ask(client, vendor, stream);
        expect(upstream.modelRequests.length).toBeGreaterThan(1);
        if (result.status === 200) {
          expect(result.text).not.toMatch(TERMINAL[client]);
          expect(result.text).toMatch(ERROR[client]);
        } else {
          expect(result.status).toBeGreaterThanOrEqual(500);
          errorOf(client, result.text);
        }
      });

      test(`a vendor that stays down is an error in the client’s protocol after a few tries (${how})`, async () => {
        upstream.answerWith(() => refuse(503));
        const result = await ask(client, vendor, stream);
        expect(result.status).toBeGreaterThanOrEqual(500);
        errorOf(client, result.text);
        expect(upstream.modelRequests.length).toBeGreaterThan(1);
        expect(upstream.modelRequests.length).toBeLessThanOrEqual(5);
      });

      test(`a context that is too long is reported as such and not retried (${how})`, async () => {
        upstream.answerWith(() => contextOverflow(vendor));
        const result = await ask(client, vendor, stream);
        expect(result.status).toBe(400);
        const error = errorOf(client, result.text);
        expect(upstream.modelRequests).toHaveLength(1);
        // Clients recognize this error by these texts: Claude Code's, and the code of the OpenAI protocols.
        if (client === 'anthropic-messages') expect(error.message).toMatch(/prompt is too long/);
        else expect(error.code).toBe('context_length_exceeded');
      });
    }

    test.each(['reset', 'truncate', 'end'] as const)(
      'a stream cut by %s never ends cleanly',
      async (by) => {
        upstream.enqueue(say(TEXT, { delivery: { piece: 4, cut: { at: 0.7, by } } }));
        const result = await ask(client, vendor, true);
        expect(result.text).toContain('A te');
        expect(result.text).not.toMatch(TERMINAL[client]);
        expect(result.broken || ERROR[client].test(result.text)).toBe(true);
        expect(upstream.modelRequests).toHaveLength(1);
      },
    );

    test('a stream that lacks only its terminal event does not end cleanly', async () => {
      upstream.enqueue(say(TEXT, { delivery: { dropTerminal: true } }));
      const result = await ask(client, vendor, true);
      expect(result.text).not.toMatch(TERMINAL[client]);
      expect(result.broken || ERROR[client].test(result.text)).toBe(true);
    });

    test('an error event in mid-stream reaches the client as an error, and nothing follows', async () => {
      upstream.enqueue(say(TEXT, { delivery: { piece: 4, cut: { at: 0.7, by: 'error' } } }));
      const result = await ask(client, vendor, true);
      expect(result.broken || ERROR[client].test(result.text)).toBe(true);
      expect(result.text).not.toMatch(TERMINAL[client]);
      // Codex gives up at this code.
      expect(result.text).not.toContain('server_is_overloaded');
    });

    test('a whole answer with reasoning alone is retried', async () => {
      upstream.enqueue({ parts: [{ kind: 'reasoning', text: 'Hm.' }] }, say('Second try.'));
      const result = await ask(client, vendor, false);
      expect(result.text).toContain('Second try.');
      expect(upstream.modelRequests).toHaveLength(2);
    });

    test('a whole answer that is cut is retried or an error, never half an answer', async () => {
      const cut = { at: 0.5, by: 'truncate' as const };
      upstream.answerWith(() => say(TEXT, { delivery: { cut } }));
      const result = await ask(client, vendor, false);
      expect(result.status).toBeGreaterThanOrEqual(500);
      errorOf(client, result.text);
    });

    test('Retry-After is obeyed', async () => {
      // In seconds, once for every vendor; far longer than the default pause.
      const [header, ms] =
        client === vendor ? [{ 'retry-after': '1' }, 1000] : [{ 'retry-after-ms': '250' }, 250];
      upstream.enqueue(refuse(429, header), say('ok'));
      await ask(client, vendor, false);
      const [first, second] = upstream.modelRequests;
      expect(second!.at - first!.at).toBeGreaterThanOrEqual(ms * 0.95);
      expect(second!.at - first!.at).toBeLessThan(ms + 10_000);
    });

    test('a vendor’s redirect is not followed, so key and request stay with the vendor', async () => {
      let visits = 0;
      const elsewhere = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        fetch: () => {
          visits++;
          return Response.json({});
        },
      });
      try {
        const place = { location: `http://127.0.0.1:${elsewhere.port}/v1?key=s3cret` };
        upstream.answerWith(() => refuse(307, place, ''));
        // `fetch` follows redirects by default.
        const result = await ask(client, vendor, false);
        expect(result.status).toBe(502);
        expect(errorOf(client, result.text).message).toContain('redirect (307)');
        expect(result.text).not.toContain('s3cret');
        expect(visits).toBe(0);
        expect(upstream.modelRequests).toHaveLength(1);
      } finally {
        await elsewhere.stop(true);
      }
    });

    test('a long Retry-After goes to the client at once', async () => {
      upstream.answerWith(() => refuse(429, { 'retry-after': '3600' }));
      const result = await ask(client, vendor, true);
      expect(result.status).toBe(429);
      expect(Number(result.headers.get('retry-after'))).toBeGreaterThan(3000);
      errorOf(client, result.text);
    });

    test('a provider’s wrong key is reported without the key, and soon given up', async () => {
      upstream.answerWith(() => refuse(401));
      const result = await ask(client, vendor, false);
      expect(result.status).toBeGreaterThanOrEqual(400);
      errorOf(client, result.text);
      expect(result.text).not.toContain('sk-upstream');
      expect(upstream.modelRequests.length).toBeLessThanOrEqual(2);
    });

    test.each([
      ['before the headers', { before: 'hang' }],
      ['in mid-stream', { piece: 4, cut: { at: 0.5, by: 'hang' } }],
    ] as const)(
      'a client that disconnects %s cancels the upstream request',
      async (_when, delivery) => {
        upstream.enqueue(say(TEXT, { delivery }));
        const abort = new AbortController();
        const asking = ask(client, vendor, true, abort.signal).catch(() => undefined);
        const request = await upstream.request(0);
        await Bun.sleep(60);
        abort.abort();
        await until(() => request.abortedAfterMs !== undefined);
        await asking;
        expect(upstream.modelRequests).toHaveLength(1);
      },
    );

    test('a client that disconnects during a whole answer cancels the upstream request', async () => {
      upstream.enqueue(say(TEXT, { delivery: { before: 'hang' } }));
      const abort = new AbortController();
      const asking = ask(client, vendor, false, abort.signal).catch(() => undefined);
      const request = await upstream.request(0);
      await Bun.sleep(30);
      abort.abort();
      await until(() => request.abortedAfterMs !== undefined);
      await asking;
    });
  });
}

/** The end of the drain: what still runs is told so in its protocol, and is no client that left. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allProviders } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { rawPost } from '../support/raw-http.ts';
import { ResponsesSocket } from '../support/responses-socket.ts';
import { until } from '../support/until.ts';

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream({ models: ['m1', 'gemini-3-m1'] });
  upstream.answerWith(() =>
    say('This goes on for a while and then hangs.', {
      delivery: { piece: 2, cut: { at: 9, by: 'hang' } },
    }),
  );
});
afterAll(() => upstream?.stop());

const HI = [{ role: 'user', content: 'hi' }];
const REQUESTS = {
  'openai-chat': (model: string, stream: boolean) => [
    '/v1/chat/completions',
    { model, stream, messages: HI },
  ],
  'openai-responses': (model: string, stream: boolean) => [
    '/v1/responses',
    { model, stream, input: 'hi' },
  ],
  'anthropic-messages': (model: string, stream: boolean) => [
    '/v1/messages',
    { model, stream, max_tokens: 1000, messages: HI },
  ],
  'google-gemini': (model: string, stream: boolean) => [
    `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  ],
} as const;

/** What a client of each protocol is told within a stream. */
const EVENTS = {
  'openai-chat': '"code":"shutting_down"',
  'openai-responses': 'event: response.failed',
  'anthropic-messages': '"type":"overloaded_error"',
  'google-gemini': '"status":"UNAVAILABLE"',
} as const;

const ask = (
  gateway: InProcess,
  client: keyof typeof REQUESTS,
  vendor: string,
  stream: boolean,
) => {
  const [path, body] = REQUESTS[client](`via-${vendor}`, stream);
  return fetch(gateway.url + path, { method: 'POST', body: JSON.stringify(body) });
};

const JSON_TYPE = { 'content-type': 'application/json' };

const exchanges = ({ lines }: InProcess) =>
  lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === 'exchange');

const start = (home?: string) => startInProcess(allProviders(upstream), home);

describe.each(Object.keys(REQUESTS) as (keyof typeof REQUESTS)[])('%s', (client) => {
  test('streams: an error event and a reset; the log has no client that left', async () => {
    const gateway = await start();
    const vendors = ['chat', 'responses', 'messages', 'gemini'];
    let streaming = 0;
    const asking = vendors.map((vendor) => {
      const [path, body] = REQUESTS[client](`via-${vendor}`, true);
      return rawPost(gateway.url + path, JSON.stringify(body), JSON_TYPE, () => streaming++);
    });
    await until(() => streaming === vendors.length);
    await gateway.stop();
    for (const { status, text, broken } of await Promise.all(asking)) {
      expect([status, broken, text]).toEqual([200, true, expect.stringContaining(EVENTS[client])]);
      expect(text).toContain('The gateway is restarting');
    }
    const logged = exchanges(gateway);
    expect(logged).toHaveLength(vendors.length);
    for (const line of logged) {
      expect(line).toMatchObject({ status: 200, error: 'overloaded' });
      expect(line.aborted).toBeUndefined();
    }
  });

  // Messages' own status of an overload.
  const status = client === 'anthropic-messages' ? 529 : 503;

  test('whole answers: a 503 with retry-after; the log has no client that left', async () => {
    const gateway = await start();
    const before = upstream.modelRequests.length;
    const asking = ['chat', 'messages'].map((vendor) => ask(gateway, client, vendor, false));
    await until(() => upstream.modelRequests.length === before + 2);
    await gateway.stop();
    for (const answer of await Promise.all(asking)) {
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([status, '2']);
      expect(await answer.text()).toContain('The gateway is restarting');
    }
    for (const line of exchanges(gateway)) {
      expect(line).toMatchObject({ status, error: 'overloaded' });
      expect(line.aborted).toBeUndefined();
    }
  });
});

test('a lane of a WebSocket: an error frame, then the close that says why', async () => {
  const gateway = await start();
  const socket = await ResponsesSocket.open(gateway.url);
  socket.create({ model: 'via-chat', input: 'Hello.' });
  await until(() => socket.frames.length > 1);
  await gateway.stop();
  expect(await socket.closed()).toMatchObject({ code: 1012 });
  expect(JSON.stringify(socket.frames.at(-1))).toContain('The gateway is restarting');
  expect(exchanges(gateway)[0]).toMatchObject({ error: 'overloaded' });
  expect(exchanges(gateway)[0]!.aborted).toBeUndefined();
});

test('the spend has what was cut as cut, streamed or not', async () => {
  const home = await mkdtemp(join(tmpdir(), 'drain-end-'));
  const gateway = await start(home);
  const before = upstream.modelRequests.length;
  const clients = Object.keys(REQUESTS) as (keyof typeof REQUESTS)[];
  const asking = clients.flatMap((client) => [
    ask(gateway, client, 'messages', true).then((answer) => answer.text().catch(() => '')),
    ask(gateway, client, 'messages', false).then((answer) => answer.text()),
  ]);
  await until(() => upstream.modelRequests.length === before + 2 * clients.length);
  await gateway.stop();
  await Promise.all(asking);
  const db = new Database(join(home, 'state', 'spend.db'), { readonly: true });
  const rows = db.query<{ ended: string }, []>('SELECT ended FROM spend').all();
  db.close();
  await rm(home, { recursive: true, force: true });
  expect(rows.map(({ ended }) => ended)).toEqual(asking.map(() => 'cut'));
});

const JSON_BODY = 'content-type: application/json\r\ncontent-length:';
const FORM_BODY =
  '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nvia-chat\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nxx';
/** Requests whose body is not whole: path, head and what has come of it. */
const UPLOADS: Readonly<Record<string, readonly [string, string, string]>> = {
  'a small body': ['/v1/chat/completions', `${JSON_BODY} 1000`, '{"model":"m"'],
  'a body that is held': ['/v1/messages', `${JSON_BODY} 30000`, '{"model":"m"'],
  'a large body': ['/v1/responses', `${JSON_BODY} 3000000`, '{"model":"m"'],
  'a body in chunks': [
    '/v1beta/models/m:generateContent',
    'content-type: application/json\r\ntransfer-encoding: chunked',
    '5\r\n{"mod\r\n',
  ],
  'a body of an endpoint': ['/v1/embeddings', `${JSON_BODY} 1000`, '{"model":"m"'],
  'a form': [
    '/v1/audio/transcriptions',
    'content-type: multipart/form-data; boundary=b\r\ncontent-length: 3000',
    FORM_BODY,
  ],
};

test.each(Object.entries(UPLOADS))(
  '%s that is under way: a 503 that says why; the log has no client that left',
  async (_, [path, head, body]) => {
    const gateway = await start();
    const { hostname, port, host } = new URL(gateway.url);
    const socket = connect(Number(port), hostname);
    let answer = '';
    const closed = new Promise<void>((done) => {
      socket.on('data', (bytes) => {
        answer += bytes;
      });
      socket.on('error', () => {});
      socket.on('close', () => done());
    });
    socket.write(`POST ${path} HTTP/1.1\r\nhost: ${host}\r\n${head}\r\n\r\n${body}`);
    // Any answer shows that what was sent before has come.
    await fetch(`${gateway.url}/healthz`);
    await Bun.sleep(50);
    await gateway.stop();
    await closed;
    expect(answer).toMatch(/^HTTP\/1\.1 (503|529) /);
    expect(answer.toLowerCase()).toContain('retry-after: 2');
    expect(answer).toContain('The gateway is restarting');
    const [line] = exchanges(gateway);
    expect(line).toMatchObject({ error: 'overloaded' });
    expect(line!.aborted).toBeUndefined();
  },
);

/** Clients that leave before the first event of an answer: how the try is booked, and that nothing counts as an error. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';
import type { Spoken } from './vendor.ts';

const PROTOCOLS: readonly Spoken[] = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'google-gemini',
];

/** Says nothing, or a head and then nothing. */
let vendor: Server;
let requests = 0;
let gateway: InProcess;

beforeAll(async () => {
  vendor = createServer((socket) => {
    let text = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (!text.includes('\r\n\r\n')) return;
      requests++;
      const type = /stream"?:\s*true|streamGenerate/.test(text)
        ? 'text/event-stream'
        : 'application/json';
      if (text.includes('head-'))
        socket.write(
          `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`,
        );
      text = '';
    });
  });
  await new Promise<void>((done) => vendor.listen(0, '127.0.0.1', done));
  const { port } = vendor.address() as { readonly port: number };
  gateway = await startInProcess({
    providers: Object.fromEntries(
      PROTOCOLS.map((protocol) => [
        protocol,
        { protocol, base_url: `http://127.0.0.1:${port}`, keys: ['k'], models: ['*'] },
      ]),
    ),
    samples: { mode: 'off' },
  });
});

afterAll(async () => {
  await gateway.stop();
  vendor.close();
});

function requestOf(client: Spoken, model: string, stream: boolean): readonly [string, object] {
  const text = 'Write something.';
  if (client === 'google-gemini') {
    const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    return [
      `/v1beta/models/${model}:${method}`,
      { contents: [{ role: 'user', parts: [{ text }] }] },
    ];
  }
  if (client === 'openai-responses') return ['/v1/responses', { model, stream, input: text }];
  const path = client === 'openai-chat' ? '/v1/chat/completions' : '/v1/messages';
  return [path, { model, stream, max_tokens: 100, messages: [{ role: 'user', content: text }] }];
}

function rowsOf(target: string): readonly { readonly ended: string }[] {
  try {
    const db = new Database(join(gateway.home, 'state', 'spend.db'), { readonly: true });
    try {
      return db
        .query<{ ended: string }, [string]>('SELECT ended FROM spend WHERE target = ?')
        .all(target);
    } finally {
      db.close();
    }
  } catch {
    // Not there yet.
    return [];
  }
}

const cases = PROTOCOLS.flatMap((client) =>
  PROTOCOLS.flatMap((upstream) =>
    ['none', 'head'].flatMap((when) =>
      [true, false].map((stream) => [client, upstream, when, stream] as const),
    ),
  ),
);

test('a client that leaves before the first event is booked as such, and is no error', async () => {
  const before = requests;
  const leave = new AbortController();
  const asked = cases.map(([client, upstream, when, stream]) => {
    const [path, body] = requestOf(client, `${upstream}/${when}-${client}-${stream}`, stream);
    return fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify(body),
      signal: leave.signal,
    }).catch(() => {});
  });
  await until(() => requests - before === cases.length);
  await Bun.sleep(100);
  leave.abort();
  await Promise.all(asked);
  const booked = await until(() => {
    const rows = cases.map(([client, upstream, when, stream]) =>
      rowsOf(`${upstream}/${when}-${client}-${stream}`).map(({ ended }) => ended),
    );
    return rows.every((one) => one.length > 0) ? rows : undefined;
  });
  const wrong = cases.filter((_, i) => booked[i]!.join() !== 'client_gone');
  expect(wrong).toEqual([]);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics.match(/^hopgate_errors_total\{.*/m)).toBeNull();
});

/** Clients that leave, and gateways that stop, before the first event of an answer: how the try is booked, and that a client that left counts as no error. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
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
  gateway = await startInProcess(configOf());
});

afterAll(async () => {
  await gateway.stop();
  vendor.close();
});

const KEY = 'k'.repeat(32);

function configOf(auth?: object) {
  const { port } = vendor.address() as { readonly port: number };
  const prices = { '*': { input: 1, output: 100 } };
  const provider = (protocol: Spoken) => [
    protocol,
    { protocol, base_url: `http://127.0.0.1:${port}`, keys: ['k'], models: ['*'], prices },
  ];
  return {
    providers: Object.fromEntries(PROTOCOLS.map(provider)),
    samples: { mode: 'off' },
    ...(auth !== undefined && { auth }),
  };
}

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

interface Booked {
  readonly ended: string;
  readonly cost: number | null;
}

function rowsOf(target: string, { home } = gateway): readonly Booked[] {
  try {
    const db = new Database(join(home, 'state', 'spend.db'), { readonly: true });
    try {
      return db
        .query<Booked, [string]>('SELECT ended, cost FROM spend WHERE target = ?')
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

/** Asks for every case, and resolves with what each got once the vendor has all of them. */
async function askAll(url: string, signal?: AbortSignal): Promise<readonly Promise<unknown>[]> {
  const before = requests;
  const asked = cases.map(([client, upstream, when, stream]) => {
    const [path, body] = requestOf(client, `${upstream}/${when}-${client}-${stream}`, stream);
    return fetch(url + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
        'x-api-key': KEY,
      },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    })
      .then((answer) => answer.text())
      .catch(() => {});
  });
  await until(() => requests - before === cases.length);
  await Bun.sleep(100);
  return asked;
}

const bookedIn = (one: InProcess) =>
  until(() => {
    const rows = cases.map(([client, upstream, when, stream]) =>
      rowsOf(`${upstream}/${when}-${client}-${stream}`, one),
    );
    return rows.every((some) => some.length > 0) ? rows : undefined;
  });

test('a client that leaves before the first event is booked as such, and is no error', async () => {
  const leave = new AbortController();
  const asked = await askAll(gateway.url, leave.signal);
  leave.abort();
  await Promise.all(asked);
  const booked = await bookedIn(gateway);
  const ended = (rows: readonly Booked[]) => rows.map((row) => row.ended).join();
  const wrong = cases.filter((_, i) => ended(booked[i]!) !== 'client_gone');
  expect(wrong).toEqual([]);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics.match(/^hopgate_errors_total\{.*/m)).toBeNull();
});

test('what runs when a gateway stops counts for a budget, although no answer has begun', async () => {
  const home = await mkdtemp(join(tmpdir(), 'hopgate-stopped-'));
  const budgets = [{ name: 'b', usd: 1000, per: 'total' }];
  const config = configOf({ keys: [{ name: 'ann', key: KEY, budgets }] });
  const stopping = await startInProcess(config, home);
  const asked = await askAll(stopping.url);
  await stopping.stop();
  await Promise.all(asked);
  const next = await startInProcess(config, home);
  try {
    const booked = (await bookedIn(next)).flat();
    const wrong = booked.filter(({ ended, cost }) => ended !== 'cut' || !cost);
    expect([booked.length, wrong]).toEqual([cases.length, []]);
    const usage = await fetch(`${next.url}/v1/usage`, { headers: { 'x-api-key': KEY } });
    const { budgets: all } = (await usage.json()) as { budgets: { spent_usd: number }[] };
    const cost = booked.reduce((sum, row) => sum + (row.cost ?? 0), 0) / 1e9;
    expect(all[0]!.spent_usd).toBeCloseTo(cost, 2);
  } finally {
    await next.stop();
    await rm(home, { recursive: true });
  }
});

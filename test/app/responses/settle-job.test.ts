/** Background jobs of a vendor: what their answer reports is paid for by the key that made them, once, whoever sees it. */

import { Database } from 'bun:sqlite';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { until } from '../../support/until.ts';

const USAGE = {
  input_tokens: 1000,
  input_tokens_details: { cached_tokens: 200 },
  output_tokens: 50_000,
  output_tokens_details: { reasoning_tokens: 20_000 },
  total_tokens: 51_000,
};
/** At 1, 100 and 0.5 USD per million tokens. */
const COST = 800 * 1000 + 200 * 500 + 50_000 * 100_000;
const ANN = 'key-of-ann-key-of-ann-key-of-ann';
const BOB = 'key-of-bob-key-of-bob-key-of-bob';

let vendor: ReturnType<typeof Bun.serve>;
let home: InProcess;
const gateways: InProcess[] = [];
let made = 0;
let state = 'completed';
let usage: object | null = USAGE;
/** What a stream says of a finished job, piece by piece. */
let pieces: (answer: object) => readonly string[];

const frame = (type: string, more: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const whole = (answer: object) => [
  frame('response.created', { response: { ...answer, status: 'in_progress', usage: null } }),
  frame('response.output_text.delta', { delta: 'all of it' }),
  frame(`response.${state}`, { response: answer }),
];

beforeAll(async () => {
  vendor = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      const job = (id: string, more: object) => ({
        ...{ id, object: 'response', created_at: 1, model: 'm-2026-01-01', background: true },
        ...{ output: [], error: null, ...more },
      });
      if (pathname === '/v1/responses') {
        const { stream } = (await request.json()) as { stream?: boolean };
        const queued = job(`resp_${++made}`, { status: 'queued', usage: null });
        if (stream !== true) return Response.json(queued);
        const text = frame('response.created', { response: queued });
        const body = new ReadableStream({ start: (one) => one.enqueue(Buffer.from(text)) });
        return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
      }
      const [, , , id = '', action] = pathname.split('/');
      if (request.method === 'DELETE') return Response.json({ id, deleted: true });
      const status = action === 'cancel' ? 'cancelled' : state;
      const output = [
        {
          ...{ id: `msg_${id}`, type: 'message', role: 'assistant', status: 'completed' },
          content: [{ type: 'output_text', text: 'all of it', annotations: [] }],
        },
      ];
      const answer = job(id, { status, output, usage });
      if (searchParams.get('stream') !== 'true') return Response.json(answer);
      const queue = [...pieces(answer)];
      const body = new ReadableStream({
        pull(one) {
          const next = queue.shift();
          if (next === undefined) one.close();
          else if (next !== 'wait') one.enqueue(Buffer.from(next));
        },
      });
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    },
  });
  home = await startInProcess(config());
});
afterEach(async () => {
  state = 'completed';
  usage = USAGE;
  pieces = whole;
  for (const one of gateways.splice(0)) await one.stop();
});
afterAll(async () => {
  await home.stop();
  vendor.stop(true);
});
pieces = whole;

const config = (budget?: number) => ({
  workers: 2,
  profiles: { keeping: { storesResponses: true } },
  providers: {
    v: {
      protocol: 'openai-responses',
      base_url: `http://127.0.0.1:${vendor.port}/v1`,
      keys: ['sk-v'],
      profile: 'keeping',
      models: ['m'],
      prices: { m: { input: 1, output: 100, cached: 0.5 } },
    },
  },
  auth: {
    keys: [
      {
        ...{ name: 'ann', key: ANN },
        ...(budget !== undefined && { budgets: [{ name: 'b', usd: budget, per: 'total' }] }),
      },
      { name: 'bob', key: BOB },
    ],
  },
  samples: { mode: 'off' },
});

const ask = (gateway: InProcess, path: string, method = 'GET', key = ANN) =>
  fetch(`${gateway.url}/v1/responses${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
  });

async function begin(gateway: InProcess, more: object = {}) {
  const response = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ANN}`, 'x-session-id': 'session-1' },
    body: JSON.stringify({ model: 'm', input: 'slowly', background: true, ...more }),
  });
  expect(response.status).toBe(200);
  const request = response.headers.get('x-hopgate-request-id')!;
  return { response, request };
}

async function job(gateway: InProcess) {
  const { response, request } = await begin(gateway);
  const { id } = (await response.json()) as { id: string };
  return { id, request };
}

/** Rows of spend of one request, when there are so many. */
const rowsOf = (request: string, wanted: number) =>
  until(() => {
    const path = join(home.home, 'state', 'spend.db');
    if (!existsSync(path)) return undefined;
    const db = new Database(path, { readonly: true });
    db.run('PRAGMA busy_timeout = 5000');
    // The file is there a moment before its tables.
    if (db.query("SELECT 1 FROM sqlite_master WHERE name = 'spend'").get() === null) {
      db.close();
      return undefined;
    }
    const rows = db
      .query<Record<string, number> & { key: string; session: string; model: string }, [string]>(
        'SELECT * FROM spend WHERE request = ? ORDER BY id',
      )
      .all(request);
    db.close();
    return rows.length >= wanted ? rows : undefined;
  });

/** The job is counted with exactly what its answer reports, in two rows: its beginning, and the rest. */
async function expectPaid(request: string): Promise<void> {
  const rows = await rowsOf(request, 2);
  const sum = (name: string) => rows.reduce((all, row) => all + Number(row[name]), 0);
  expect(rows).toHaveLength(2);
  expect(rows[1]).toMatchObject({
    key: 'ann',
    session: 'session-1',
    model: 'm',
    target: 'v/m',
  } as never);
  expect(['input', 'cache_read', 'output', 'reasoning', 'cost'].map(sum)).toEqual([
    ...[800, 200, 30_000, 20_000, COST],
  ]);
}

const ways: readonly (readonly [string, (gateway: InProcess, id: string) => Promise<unknown>])[] = [
  ['polled', async (gateway, id) => (await ask(gateway, `/${id}`)).json()],
  [
    'polled three times',
    async (gateway, id) => {
      for (let i = 0; i < 3; i++) await (await ask(gateway, `/${id}`)).text();
    },
  ],
  ['streamed', async (gateway, id) => (await ask(gateway, `/${id}?stream=true`)).text()],
  [
    'streamed in one piece without its last line',
    async (gateway, id) => {
      pieces = (answer) => [whole(answer).join('').trimEnd()];
      await (await ask(gateway, `/${id}?stream=true`)).text();
    },
  ],
  [
    'incomplete',
    async (gateway, id) => {
      state = 'incomplete';
      await (await ask(gateway, `/${id}`)).text();
    },
  ],
  [
    'failed, with usage',
    async (gateway, id) => {
      state = 'failed';
      await (await ask(gateway, `/${id}?stream=true`)).text();
    },
  ],
  ['cancelled', async (gateway, id) => (await ask(gateway, `/${id}/cancel`, 'POST')).text()],
  [
    'cancelled, then polled',
    async (gateway, id) => {
      await (await ask(gateway, `/${id}/cancel`, 'POST')).text();
      state = 'cancelled';
      await (await ask(gateway, `/${id}`)).text();
    },
  ],
  ['deleted unseen', async (gateway, id) => (await ask(gateway, `/${id}`, 'DELETE')).text()],
  [
    'its usage comes later than its end',
    async (gateway, id) => {
      usage = null;
      await (await ask(gateway, `/${id}`)).text();
      usage = USAGE;
      await (await ask(gateway, `/${id}`)).text();
    },
  ],
  [
    'read as a stream by a client that leaves before the end',
    async (gateway, id) => {
      pieces = (answer) => [...whole(answer).slice(0, 2), 'wait'];
      const left = new AbortController();
      const answer = await fetch(`${gateway.url}/v1/responses/${id}?stream=true`, {
        headers: { authorization: `Bearer ${ANN}` },
        signal: left.signal,
      });
      const reader = answer.body!.getReader();
      let text = '';
      while (!text.includes('all of it'))
        text += Buffer.from((await reader.read()).value!).toString();
      left.abort();
      await reader.read().catch(() => undefined);
    },
  ],
  [
    'at twenty readers at once, in two processes, streamed and not',
    async (gateway, id) => {
      const other = await startInProcess(config(), home.home);
      gateways.push(other);
      const answers = Array.from({ length: 20 }, async (_, i) => {
        const from = i % 2 === 0 ? gateway : other;
        return (await ask(from, `/${id}${i % 3 === 0 ? '?stream=true' : ''}`)).text();
      });
      for (const text of await Promise.all(answers)) expect(text).toContain('all of it');
    },
  ],
  [
    'after a restart',
    async (_, id) => {
      const other = await startInProcess(config(), home.home);
      gateways.push(other);
      for (let i = 0; i < 2; i++) await (await ask(other, `/${id}`)).text();
    },
  ],
];

describe('a background job is counted once, with what it used', () => {
  test.each(ways)('%s', async (_how, see) => {
    const { id, request } = await job(home);
    await see(home, id);
    await expectPaid(request);
    // Once more, after everything: nothing is added.
    await (await ask(home, `/${id}`)).text();
    await Bun.sleep(300);
    await expectPaid(request);
  });

  test('while it runs, and for another key, nothing is counted; the client sees nothing of the account', async () => {
    const { id, request } = await job(home);
    state = 'in_progress';
    for (let i = 0; i < 2; i++) await (await ask(home, `/${id}`)).text();
    state = 'completed';
    expect((await ask(home, `/${id}`, 'GET', BOB)).status).toBe(404);
    await Bun.sleep(300);
    const [first, ...more] = await rowsOf(request, 1);
    expect(more).toEqual([]);
    expect(first).toMatchObject({ estimated: 1 });
    expect(first!.cost).toBeGreaterThan(0);
    const seen = await (await ask(home, `/${id}`)).text();
    expect(seen).not.toContain('hopgate_due');
    await expectPaid(request);
  });

  test('begun as a stream that its client leaves', async () => {
    const { response, request } = await begin(home, { stream: true });
    const reader = response.body!.getReader();
    const { value } = await reader.read();
    const id = /"id":"(resp_\w+)"/.exec(Buffer.from(value!).toString())![1]!;
    await reader.cancel();
    await rowsOf(request, 1);
    await until(async () => (await ask(home, `/${id}`)).status === 200 || undefined);
    await expectPaid(request);
  });
});

test('jobs use up a budget: the next one is refused, and what is done can still be fetched', async () => {
  const gateway = await startInProcess(config(12));
  gateways.push(gateway);
  const jobs = [await job(gateway), await job(gateway), await job(gateway)];
  for (const { id } of jobs) {
    const answer = await ask(gateway, `/${id}`);
    expect(answer.status).toBe(200);
    await answer.text();
  }
  const refused = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ANN}` },
    body: JSON.stringify({ model: 'm', input: 'more', background: true }),
  });
  expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining('budget')]);
  expect((await ask(gateway, `/${jobs[0]!.id}`)).status).toBe(200);
});

/** A kill while many small requests run: what was answered is in the ledger, once; the rest may be missing. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Gateway, startGateway } from '../support/binary.ts';
import { until } from '../support/until.ts';

const REQUESTS = 50;
const KEY = 'k'.repeat(32);

/** Answers as soon as they are asked for, each after a moment of its own. */
function startVendor() {
  let requests = 0;
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { stream } = (await request.json()) as { readonly stream?: boolean };
      await Bun.sleep(requests++ % 20);
      const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
      const choice = { index: 0, finish_reason: 'stop' };
      if (stream !== true) {
        const message = { role: 'assistant', content: 'Hi.' };
        return Response.json({
          id: 'c',
          object: 'chat.completion',
          choices: [{ ...choice, message }],
          usage,
        });
      }
      const chunks = [
        { id: 'c', choices: [{ ...choice, delta: { content: 'Hi.' } }] },
        { id: 'c', choices: [], usage },
      ].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
      return new Response(`${chunks.join('')}data: [DONE]\n\n`, {
        headers: { 'content-type': 'text/event-stream' },
      });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
}

let vendor: ReturnType<typeof startVendor>;
let home: string;
let gateway: Gateway | undefined;

beforeAll(async () => {
  vendor = startVendor();
  home = await mkdtemp(join(tmpdir(), 'hopgate-killed-'));
});
afterAll(async () => {
  await gateway?.stop();
  await vendor.stop();
  await rm(home, { recursive: true, force: true });
});

const start = () =>
  startGateway(
    {
      providers: {
        up: {
          protocol: 'openai-chat',
          base_url: vendor.url,
          models: ['m'],
          prices: { '*': { input: 0, output: 0, request: 1000 } },
        },
      },
      auth: { keys: [{ name: 'ci', key: KEY, budgets: [{ usd: 1000, per: 'total' }] }] },
      samples: { mode: 'off' },
    },
    { env: { HOPGATE_HOME: home } },
  );

interface Row {
  readonly request: string;
  readonly ended: string;
}

/** Undefined before the gateway has made the file, and while it makes its tables. */
function rows(): readonly Row[] | undefined {
  const path = join(home, 'state', 'spend.db');
  if (!existsSync(path)) return undefined;
  const db = new Database(path, { readonly: true });
  try {
    db.run('PRAGMA busy_timeout = 5000');
    const made = db.query("SELECT 1 FROM sqlite_master WHERE name = 'spend'").get() !== null;
    return made ? db.query<Row, []>('SELECT request, ended FROM spend').all() : undefined;
  } finally {
    db.close();
  }
}

/** The id of a request whose answer came to its end. */
async function answered(url: string, stream: boolean): Promise<string> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'Hi.' }] }),
  });
  const text = await answer.text();
  if (answer.status !== 200 || (stream && !text.includes('[DONE]'))) throw new Error(text);
  return answer.headers.get('x-hopgate-request-id')!;
}

// The kill comes at another moment of the writes each time.
test.each([5, 20, 35])(
  'killed after %i of fifty answers: each request that was answered is in the ledger once, and no other twice',
  async (count) => {
    gateway = await start();
    const killed = gateway;
    const done: string[] = [];
    const enough = Promise.withResolvers<void>();
    const asked = Array.from({ length: REQUESTS }, (_, i) =>
      answered(killed.url, i % 2 === 0).then(
        (id) => {
          if (done.push(id) === count) enough.resolve();
        },
        () => {},
      ),
    );
    await enough.promise;
    killed.signal('SIGKILL');
    await Promise.all(asked);
    // Those too whose answers came to their ends in the turn of the kill.
    const before = [...done];
    await killed.stop();
    gateway = await start();
    // Which of the two processes' rows come first is not said: the number of a process may begin anew.
    const last = await answered(gateway.url, false);
    const all = await until(() => {
      const found = rows() ?? [];
      const there = new Set(found.map(({ request }) => request));
      return [...before, last].every((id) => there.has(id)) && found;
    });
    const times = new Map<string, number>();
    for (const { request } of all) times.set(request, (times.get(request) ?? 0) + 1);
    expect(before.filter((id) => times.get(id) !== 1)).toEqual([]);
    expect([...times.values()].filter((number) => number !== 1)).toEqual([]);
    for (const { request, ended } of all) {
      if (before.includes(request)) expect(ended).toBe('done');
    }
    await gateway.stop();
  },
);

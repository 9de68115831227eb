/** A kill while many small requests run: what was answered is in the ledger, once; the rest may be missing. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Gateway, startGateway } from '../support/binary.ts';
import { until } from '../support/until.ts';

const REQUESTS = 60;
/** Longer than from the first answer to the kill: no answer on a WebSocket has its vendor's close by then. */
const CLOSES_AFTER_MS = 150;
const KEY = 'k'.repeat(32);

/** Answers as soon as they are asked for, each after a moment of its own; a stream ends a moment after its last event. */
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
      const body = async function* () {
        yield `${chunks.join('')}data: [DONE]\n\n`;
        await Bun.sleep(CLOSES_AFTER_MS);
      };
      return new Response(body as never, { headers: { 'content-type': 'text/event-stream' } });
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
          models: ['*'],
          prices: { '*': { input: 0, output: 0, request: 1000 } },
        },
      },
      auth: { keys: [{ name: 'ci', key: KEY, budgets: [{ usd: 1000, per: 'total' }] }] },
      samples: { mode: 'off' },
    },
    { env: { HOPGATE_HOME: home } },
  );

interface Row {
  readonly model: string;
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
    return made ? db.query<Row, []>('SELECT model, ended FROM spend').all() : undefined;
  } finally {
    db.close();
  }
}

type Way = (url: string, model: string) => Promise<void>;

const posted =
  (stream: boolean): Way =>
  async (url, model) => {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'Hi.' }] }),
    });
    const text = await answer.text();
    if (answer.status !== 200 || (stream && !text.includes('[DONE]'))) throw new Error(text);
  };

/** Without a poll: the kill is to come right behind the last event, which is the end of the answer. */
function overSocket(url: string, model: string): Promise<void> {
  const headers = { authorization: `Bearer ${KEY}` };
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/responses`, { headers } as never);
  return new Promise((resolve, reject) => {
    socket.onopen = () =>
      socket.send(JSON.stringify({ type: 'response.create', model, input: 'Hi.' }));
    socket.onmessage = ({ data }) => {
      if (JSON.parse(String(data)).type === 'response.completed') resolve();
    };
    socket.onerror = () => reject(new Error('the upgrade was refused'));
    socket.onclose = () => reject(new Error('no answer'));
  });
}

/** Each resolves when the client has the whole answer. */
const WAYS: readonly Way[] = [posted(true), posted(false), overSocket];

// The kill comes at another moment of the writes each time.
test.each([5, 25, 50])(
  'killed after %i of sixty answers: each request that was answered is in the ledger once, and no other twice',
  async (count) => {
    gateway = await start();
    const killed = gateway;
    const done: string[] = [];
    const enough = Promise.withResolvers<void>();
    const asked = Array.from({ length: REQUESTS }, (_, i) =>
      WAYS[i % WAYS.length]!(killed.url, `m-${count}-${i}`).then(
        () => {
          if (done.push(`m-${count}-${i}`) === count) enough.resolve();
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
    const last = `m-${count}-last`;
    await posted(false)(gateway.url, last);
    const all = await until(() => {
      const found = rows() ?? [];
      const there = new Set(found.map(({ model }) => model));
      return [...before, last].every((model) => there.has(model)) && found;
    });
    const times = new Map<string, number>();
    for (const { model } of all) times.set(model, (times.get(model) ?? 0) + 1);
    expect(before.filter((model) => times.get(model) !== 1)).toEqual([]);
    expect([...times.values()].filter((number) => number !== 1)).toEqual([]);
    for (const { model, ended } of all) {
      if (before.includes(model)) expect(ended).toBe('done');
    }
    await gateway.stop();
  },
);

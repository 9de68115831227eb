/** Calls that an exchange makes besides its own are rows of that exchange and of its key: hops of tools, images, searches, vectors. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';

const KEY = 'k'.repeat(32);
let vendor: ReturnType<typeof Bun.serve>;
let gateway: InProcess;

const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
const reply = (message: object, finish: string) =>
  Response.json({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, ...message },
        finish_reason: finish,
      },
    ],
    usage,
  });

beforeAll(async () => {
  vendor = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = (await request.json()) as {
        model: string;
        tools?: unknown[];
        messages: { role: string }[];
      };
      if (
        body.model === 'talker' &&
        body.tools !== undefined &&
        !body.messages.some(({ role }) => role === 'tool')
      ) {
        const call = { name: 'web_search', arguments: '{"query":"hopgate"}' };
        return reply(
          { tool_calls: [{ id: 'call_1', type: 'function', function: call }] },
          'tool_calls',
        );
      }
      return reply({ content: 'A description of what was asked, long enough to be one.' }, 'stop');
    },
  });
  const provider = {
    protocol: 'openai-chat',
    base_url: `http://127.0.0.1:${vendor.port}/v1`,
    models: ['*'],
    prices: { '*': { input: 1, output: 2 } },
  };
  gateway = await startInProcess({
    providers: { up: provider, blind: { ...provider, profile: 'no-images' } },
    profiles: { 'no-images': { images: false } },
    auth: { keys: [{ name: 'ann', key: KEY, labels: { team: 'web' } }] },
    server_tools: {
      vision: { target: 'up/eyes' },
      web_search: { inject: 'force', engines: [{ type: 'model', target: 'up/searcher' }] },
    },
    // Nothing listens there: what is traced is known all the same.
    telemetry: { otlp: { endpoint: 'http://127.0.0.1:1', traces: 1, metrics: false } },
    samples: { mode: 'off' },
  });
});

const TRACE = 'a1b2c3d4e5f60718293a4b5c6d7e8f90';

afterAll(async () => {
  await gateway.stop();
  vendor.stop(true);
});

async function rowsOf(content: unknown, model: string, wanted: number) {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${KEY}`,
      'x-session-id': 'session-1',
      traceparent: `00-${TRACE}-b7ad6b7169203331-01`,
    },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
  });
  expect(response.status).toBe(200);
  await response.text();
  const request = response.headers.get('x-hopgate-request-id')!;
  const path = join(gateway.home, 'state', 'spend.db');
  const rows = await until(() => {
    try {
      const db = new Database(path, { readonly: true });
      const found = db
        .query<
          {
            key: string;
            model: string;
            target: string;
            hop: number;
            session: string;
            cost: number;
          },
          [string]
        >('SELECT * FROM spend WHERE request = ? ORDER BY id')
        .all(request);
      db.close();
      return found.length >= wanted ? found : undefined;
    } catch {
      return undefined;
    }
  });
  for (const row of rows)
    expect(row).toMatchObject({ key: 'ann', session: 'session-1', cost: 120_000, trace: TRACE });
  const total = rows.reduce((sum, { cost }) => sum + cost, 0);
  expect(Number(response.headers.get('x-hopgate-cost-usd'))).toBe(total / 1e9);
  return rows.map(({ target, hop }) => [target, hop] as const);
}

test('hops of server tools, and the model that searches', async () => {
  expect(await rowsOf('Search for it.', 'up/talker', 3)).toEqual([
    ['up/talker', 1],
    ['up/searcher', 1],
    ['up/talker', 2],
  ]);
});

test('the model that describes images', async () => {
  const pixel =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const content = [
    { type: 'text', text: 'What is this?' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } },
  ];
  expect(await rowsOf(content, 'blind/m', 2)).toEqual([
    ['up/eyes', 1],
    ['blind/m', 1],
  ]);
});

test('the vector of a recall is paid for by who recalls, those of stored events by the gateway', async () => {
  const vectors = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { input } = (await request.json()) as { input: readonly string[] };
      const data = input.map((_, index) => ({ index, embedding: [1, 0.5, 0.1] }));
      return Response.json({ data, usage: { prompt_tokens: 100, total_tokens: 100 } });
    },
  });
  const own = await startInProcess({
    providers: {
      up: {
        protocol: 'openai-chat',
        base_url: `http://127.0.0.1:${vectors.port}/v1`,
        models: ['*'],
        prices: { '*': { input: 1, output: 2 } },
      },
    },
    auth: { keys: [{ name: 'ann', key: KEY }] },
    memory: { embeddings: { provider: 'up', model: 'e5' } },
    samples: { mode: 'off' },
  });
  try {
    const post = async (path: string, body: object) => {
      const response = await fetch(`${own.url}/v1/memory/s/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect([response.ok, await response.text()]).toEqual([true, expect.any(String)]);
    };
    const rows = () => {
      try {
        const db = new Database(join(own.home, 'state', 'spend.db'), { readonly: true });
        const found = db
          .query<{ key: string; target: string; cost: number }, []>(
            'SELECT key, target, cost FROM spend ORDER BY id',
          )
          .all();
        db.close();
        return found;
      } catch {
        // Not there yet.
        return [];
      }
    };
    await post('events', { events: [{ text: 'ordered a used Kia' }] });
    const [stored] = await until(() => rows().length === 1 && rows());
    expect(stored).toMatchObject({ target: 'up/e5', cost: 100_000 });
    expect(stored!.key).not.toBe('ann');
    await post('recall', { query: 'Which vehicle?' });
    const [, recalled] = await until(() => rows().length === 2 && rows());
    expect(recalled).toEqual({ key: 'ann', target: 'up/e5', cost: 100_000 });
  } finally {
    await own.stop();
    vectors.stop(true);
  }
});

/** Streams whose client leaves, of keys with a budget or a limit of tokens: what the vendor reports later is still counted. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { ResponsesSocket } from '../support/responses-socket.ts';
import { until } from '../support/until.ts';
import { billFor, PRICE, type Spoken, startVendor, type Vendor, WORD } from './vendor.ts';

const PROTOCOLS: readonly Spoken[] = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'google-gemini',
];
const KEYS = { free: 'f'.repeat(32), money: 'm'.repeat(32), tokens: 't'.repeat(32) };
// A prompt that the body does not show, and reasoning that the answer does not show.
const COUNTED = { input: 9000, cached: 1000, output: 700, reasoning: 90_000 };
/** Messages counts reasoning as output. */
const countsOf = (protocol: Spoken) =>
  protocol === 'anthropic-messages'
    ? { input: 8000, cache_read: 1000, output: 90_700 }
    : { input: 8000, cache_read: 1000, output: 700, reasoning: 90_000 };

let vendor: Vendor;
let home: string;
let gateway: InProcess;

beforeAll(async () => {
  vendor = startVendor();
  home = await mkdtemp(join(tmpdir(), 'left-streams-'));
  gateway = await start();
});

afterAll(async () => {
  await gateway.stop();
  vendor.stop();
  await rm(home, { recursive: true, force: true });
});

const start = () =>
  startInProcess(
    {
      providers: Object.fromEntries(
        PROTOCOLS.map((protocol) => [
          protocol,
          {
            protocol,
            base_url: vendor.url,
            keys: ['k'],
            models: ['*'],
            prices: { '*': { input: PRICE.input, output: PRICE.output, cached: PRICE.cached } },
          },
        ]),
      ),
      auth: {
        keys: [
          { name: 'free', key: KEYS.free },
          { name: 'money', key: KEYS.money, budgets: [{ usd: 1000, per: 'total' }] },
          {
            name: 'tokens',
            key: KEYS.tokens,
            limits: { tokens_per_minute: 100_000_000, concurrent: 1 },
          },
        ],
      },
      samples: { mode: 'all' },
    },
    home,
  );

type Row = Readonly<
  Record<'input' | 'cache_read' | 'output' | 'reasoning' | 'estimated' | 'cost', number>
> & { readonly ended: string };

function rowsOf(target: string): readonly Row[] {
  try {
    const db = new Database(join(home, 'state', 'spend.db'), { readonly: true });
    try {
      return db.query<Row, [string]>('SELECT * FROM spend WHERE target = ?').all(target);
    } finally {
      db.close();
    }
  } catch {
    // Not there yet.
    return [];
  }
}

const rowOf = async (target: string): Promise<Row> => {
  const rows = await until(() => {
    const found = rowsOf(target);
    return found.length > 0 && found;
  });
  expect(rows).toHaveLength(1);
  return rows[0]!;
};

function requestOf(client: Spoken, model: string): readonly [string, object] {
  const text = 'Write something.';
  if (client === 'google-gemini') {
    return [
      `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
      { contents: [{ role: 'user', parts: [{ text }] }] },
    ];
  }
  const body = { model, stream: true, max_tokens: 100_000 };
  if (client === 'openai-responses') return ['/v1/responses', { model, stream: true, input: text }];
  const path = client === 'openai-chat' ? '/v1/chat/completions' : '/v1/messages';
  return [path, { ...body, messages: [{ role: 'user', content: text }] }];
}

const endedExchanges = () =>
  gateway.lines.filter((line) => JSON.parse(line).event === 'exchange').length;

/** Asks, reads until `count` pieces of the text have come, and leaves. Resolves once the exchange is over. */
async function leaveBehind(
  key: string,
  [path, body]: readonly [string, object],
  count: number,
): Promise<void> {
  const before = endedExchanges();
  const leave = new AbortController();
  const answer = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
    },
    body: JSON.stringify(body),
    signal: leave.signal,
  });
  let text = '';
  for await (const chunk of answer.body!) {
    text += Buffer.from(chunk).toString();
    if (text.split(WORD).length > count) break;
  }
  leave.abort();
  await until(() => endedExchanges() > before);
  const line = JSON.parse(gateway.lines.findLast((one) => JSON.parse(one).event === 'exchange')!);
  expect(line).toMatchObject({ status: 499, aborted: true });
}

const PAIRS = PROTOCOLS.flatMap((client) => PROTOCOLS.map((to) => [client, to] as const));

describe.each(PAIRS)('%s → %s', (client, to) => {
  test.each(['money', 'tokens'] as const)(
    'a client with a limit of %s that leaves behind the whole text pays for what it hides',
    async (limit) => {
      vendor.script({ ending: 'held', counted: COUNTED, words: 20 });
      const target = `${to}/whole-${client}-${limit}`;
      await leaveBehind(KEYS[limit], requestOf(client, target), 20);
      // Its place at a time is free at once, though the answer is still read.
      vendor.script({ ending: 'done', counted: COUNTED, words: 2 });
      await leaveNothing(KEYS[limit], requestOf(client, `${to}/next-${client}-${limit}`));
      expect(rowsOf(target)).toEqual([]);
      vendor.letGo();
      const row = await rowOf(target);
      expect(row).toMatchObject({ ended: 'client_gone', estimated: 0, ...countsOf(to) });
      expect(row.cost).toBe(billFor(COUNTED));
    },
  );

  test('without a limit, the request is cancelled at once and counted by estimate', async () => {
    vendor.script({ ending: 'held', counted: COUNTED, words: 20 });
    const { cancelled } = vendor;
    const target = `${to}/free-${client}`;
    await leaveBehind(KEYS.free, requestOf(client, target), 20);
    await until(() => vendor.cancelled > cancelled);
    expect(await rowOf(target)).toMatchObject({ ended: 'client_gone', estimated: 1 });
    vendor.letGo();
  });
});

async function leaveNothing(key: string, [path, body]: readonly [string, object]) {
  const answer = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining(WORD)]);
}

test.each(PROTOCOLS)(
  '%s: an answer that goes on without end is broken off, and counted by its bytes',
  async (to) => {
    vendor.script({ ending: 'endless', counted: COUNTED, words: 20 });
    const { cancelled } = vendor;
    const target = `${to}/endless`;
    await leaveBehind(KEYS.money, requestOf('openai-chat', target), 3);
    vendor.letGo();
    const row = await rowOf(target);
    expect(row).toMatchObject({ ended: 'client_gone', estimated: 1 });
    expect(row.output).toBeGreaterThan(1000);
    await until(() => vendor.cancelled > cancelled);
  },
);

test('a client that leaves many answers behind has only some of them read, and pays the usual output for the others', async () => {
  vendor.script({ ending: 'held', counted: COUNTED, words: 20 });
  const { cancelled } = vendor;
  const target = 'openai-chat/many';
  for (let i = 0; i < 10; i++) {
    await leaveBehind(KEYS.money, requestOf('openai-chat', target), 2);
  }
  await until(() => vendor.cancelled === cancelled + 2);
  vendor.letGo();
  const rows = await until(() => rowsOf(target).length === 10 && rowsOf(target));
  const exact = rows.filter(({ estimated }) => estimated === 0);
  expect(exact).toHaveLength(8);
  for (const row of rows) expect(row.output + row.reasoning).toBeGreaterThanOrEqual(1000);
});

test('a WebSocket that closes in the middle of an answer pays for it', async () => {
  vendor.script({ ending: 'held', counted: COUNTED, words: 20 });
  const target = 'openai-responses/socket';
  const socket = await ResponsesSocket.open(gateway.url, {
    authorization: `Bearer ${KEYS.money}`,
  });
  socket.create({ model: target, input: 'Hi.' });
  await until(() => socket.frames.length > 10);
  const before = endedExchanges();
  socket.close();
  await until(() => endedExchanges() > before);
  vendor.letGo();
  expect(await rowOf(target)).toMatchObject({
    ended: 'client_gone',
    estimated: 0,
    ...countsOf('openai-responses'),
  });
});

test('a stop while an answer is still read counts it by estimate', async () => {
  vendor.script({ ending: 'held', counted: COUNTED, words: 20 });
  const target = 'anthropic-messages/stop';
  await leaveBehind(KEYS.money, requestOf('anthropic-messages', target), 20);
  await gateway.stop();
  const row = await rowOf(target);
  gateway = await start();
  vendor.letGo();
  expect(row).toMatchObject({ ended: 'client_gone', estimated: 1 });
  expect(row.output).toBeGreaterThan(0);
});

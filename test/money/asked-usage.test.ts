/** Keys with a budget or a limit of tokens: what vendors report is counted, whatever the client asks for. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';

const FREE = 'f'.repeat(32);
const LIMITED = { money: 'm'.repeat(32), tokens: 't'.repeat(32) };
const USAGE = { prompt_tokens: 1000, completion_tokens: 900, total_tokens: 1900 };
const COUNTS = { promptTokenCount: 1000, candidatesTokenCount: 900, totalTokenCount: 1900 };

type Layout = (value: object) => string;
const LAYOUTS: Readonly<Record<string, Layout>> = {
  plain: (value) => JSON.stringify(value),
  // As Python writes it.
  spaced: (value) => JSON.stringify(value, null, 1).replace(/\n */g, ' '),
};

/** Chat as OpenAI has it: usage only where it is asked for, as a last chunk, and null in the others. */
function chatStream(asked: boolean, layout: Layout, feed: string): string {
  const chunk = (choices: object[], usage: object | null) =>
    `data: ${layout({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...(asked && { usage }), obfuscation: 'x1' })}${feed}${feed}`;
  const choice = (delta: object, finish_reason: string | null) => ({
    index: 0,
    delta,
    finish_reason,
  });
  return [
    chunk([choice({ role: 'assistant', content: '' }, null)], null),
    chunk([choice({ content: 'Say "usage": null, ünïcode.' }, null)], null),
    chunk([choice({ content: ' More.' }, null)], null),
    chunk([choice({}, 'stop')], null),
    ...(asked ? [chunk([], USAGE)] : []),
    `data: [DONE]${feed}${feed}`,
  ].join('');
}

/** Gemini as Google has it: the query selects what an answer holds. */
function geminiAnswer(query: URLSearchParams, text: string, last: boolean) {
  const mask = query.get('fields') ?? query.get('$fields');
  const whole = {
    candidates: [
      { content: { role: 'model', parts: [{ text }] }, ...(last && { finishReason: 'STOP' }) },
    ],
    usageMetadata: COUNTS,
    modelVersion: 'm',
  };
  if (mask === null) return whole;
  return Object.fromEntries(
    Object.entries(whole).filter(([name]) => mask.split(',').includes(name)),
  );
}

const never = new Set<string>();
let gateway: InProcess;
let vendor: ReturnType<typeof Bun.serve>;
let bytesAtOnce = 0;

beforeAll(async () => {
  vendor = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      const text = await request.text();
      const body = JSON.parse(text);
      if (text.includes('never')) {
        never.add(body.model ?? pathname);
        return new Promise(() => {});
      }
      const layout = LAYOUTS[/spaced/.test(text + pathname) ? 'spaced' : 'plain']!;
      const feed = /crlf/.test(text + pathname) ? '\r\n' : '\n';
      if (!pathname.includes('/models/')) {
        const asked = body.stream_options?.include_usage === true;
        return body.stream === true
          ? events(chatStream(asked, layout, feed))
          : Response.json({
              id: 'c1',
              object: 'chat.completion',
              choices: [
                { index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' },
              ],
              usage: USAGE,
            });
      }
      if (!pathname.endsWith(':streamGenerateContent')) {
        return new Response(layout(geminiAnswer(searchParams, 'Hi.', true)), {
          headers: { 'content-type': 'application/json' },
        });
      }
      const pieces = [
        geminiAnswer(searchParams, 'One', false),
        geminiAnswer(searchParams, 'two', true),
      ];
      return events(pieces.map((piece) => `data: ${layout(piece)}${feed}${feed}`).join(''));
    },
  });
  const base = `http://127.0.0.1:${vendor.port}`;
  const prices = { '*': { input: 3, output: 15 } };
  gateway = await startInProcess({
    providers: {
      chat: { protocol: 'openai-chat', base_url: `${base}/v1`, models: ['*'], prices },
      gemini: { protocol: 'google-gemini', base_url: `${base}/v1beta`, models: ['*'], prices },
    },
    auth: {
      keys: [
        { name: 'free', key: FREE },
        { name: 'money', key: LIMITED.money, budgets: [{ usd: 1000, per: 'total' }] },
        { name: 'tokens', key: LIMITED.tokens, limits: { tokens_per_minute: 10_000_000 } },
      ],
    },
    samples: { mode: 'off' },
  });
});

afterAll(async () => {
  await gateway.stop();
  void vendor.stop(true);
});

/** In pieces of any size. */
function events(text: string): Response {
  const bytes = new TextEncoder().encode(text);
  const size = bytesAtOnce || bytes.length;
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, at + size));
      at += size;
      await Bun.sleep(0);
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

type Row = Readonly<Record<'input' | 'output' | 'estimated' | 'cost', number>> & {
  readonly ended: string;
};

const rowsWhere = (column: 'request' | 'target', value: string) =>
  until(() => {
    try {
      const db = new Database(join(gateway.home, 'state', 'spend.db'), { readonly: true });
      try {
        const found = db
          .query<Row, [string]>(`SELECT * FROM spend WHERE ${column} = ? AND cost > 0`)
          .all(value);
        return found.length > 0 ? found : undefined;
      } finally {
        db.close();
      }
    } catch {
      return undefined;
    }
  });

const send = (key: string, path: string, body: object, signal?: AbortSignal) =>
  fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
    },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });

const messages = [{ role: 'user', content: 'Hi.' }];
const contents = [{ role: 'user', parts: [{ text: 'Hi.' }] }];

/** What a client may send so as not to be told of usage. */
const HIDING: readonly (readonly [string, string, object])[] = [
  ...['chat/m', 'chat/spaced', 'chat/crlf'].flatMap((model): [string, string, object][] => [
    [`${model}: nothing asked`, '/v1/chat/completions', { model, stream: true, messages }],
    ...[{ include_usage: false }, { include_usage: null }, {}, null].map(
      (stream_options): [string, string, object] => [
        `${model}: ${JSON.stringify(stream_options)}`,
        '/v1/chat/completions',
        { model, stream: true, messages, stream_options },
      ],
    ),
  ]),
  ...['chat/m', 'chat/spaced', 'chat/crlf'].flatMap((model) =>
    [undefined, { include_usage: false }].map((stream_options): [string, string, object] => [
      `${model}: completions, ${JSON.stringify(stream_options)}`,
      '/v1/completions',
      { model, stream: true, prompt: 'Hi.', stream_options },
    ]),
  ),
  ...['gemini/m', 'gemini/spaced', 'gemini/crlf'].flatMap((model) =>
    ['fields', '$fields', '%66ields'].flatMap((name) =>
      ['streamGenerateContent?alt=sse&', 'streamGenerateContent?', 'generateContent?'].map(
        (method): [string, string, object] => [
          `${model}: ${method} ${name}`,
          `/v1beta/models/${model}:${method}${name}=candidates`,
          { contents },
        ],
      ),
    ),
  ),
];

/** What a key without limits hears, and the limited ones hear and are counted. */
async function heard(path: string, body: object) {
  const plain = await (await send(FREE, path, body)).text();
  const limited = Object.values(LIMITED).map(async (key) => {
    const answer = await send(key, path, body);
    const text = await answer.text();
    const [row] = await rowsWhere('request', answer.headers.get('x-hopgate-request-id')!);
    return { text, row };
  });
  return { plain, limited: await Promise.all(limited) };
}

describe.each([0, 1])('in pieces of %d bytes', (pieces) => {
  /** All are asked before the first test: their rows are written together. */
  const asked = new Map<string, ReturnType<typeof heard>>();
  beforeAll(async () => {
    bytesAtOnce = pieces;
    for (const [name, path, body] of HIDING) asked.set(name, heard(path, body));
    await Promise.allSettled(asked.values());
    bytesAtOnce = 0;
  }, 60_000);

  test.each(HIDING)(
    '%s: a limited key gets the bytes of one that is not, and is counted exactly',
    async (name) => {
      const { plain, limited } = await asked.get(name)!;
      expect(limited).toHaveLength(2);
      for (const { text, row } of limited) {
        // A list of pieces has line feeds while a piece is under way.
        if (plain.startsWith('[')) expect(JSON.parse(text)).toEqual(JSON.parse(plain));
        else expect(text).toBe(plain);
        expect(text.length).toBeGreaterThan(20);
        expect(row).toMatchObject({ estimated: 0, input: 1000, output: 900, cost: 16_500_000 });
      }
    },
  );
});

test('a client that asks for usage itself still gets it', async () => {
  const body = { model: 'chat/m', stream: true, messages, stream_options: { include_usage: true } };
  const text = await (await send(LIMITED.money, '/v1/chat/completions', body)).text();
  expect(text).toContain('"total_tokens":1900');
});

const CLIENTS: readonly (readonly [string, (model: string) => readonly [string, object]])[] = [
  ['chat', (model) => ['/v1/chat/completions', { model, messages, max_tokens: 500 }]],
  ['responses', (model) => ['/v1/responses', { model, input: 'Hi.' }]],
  ['messages', (model) => ['/v1/messages', { model, messages, max_tokens: 500 }]],
  ['gemini', (model) => [`/v1beta/models/${model}:generateContent`, { contents }]],
];

test.each(
  CLIENTS.flatMap(([name, request]) =>
    ['chat', 'gemini'].map((to) => [name, to, request] as const),
  ),
)(
  '%s → %s: a whole request whose client leaves is counted by estimate',
  async (name, to, request) => {
    for (const [limit, key] of Object.entries(LIMITED)) {
      const model = `never-${name}-${limit}`;
      const leave = new AbortController();
      const [path, body] = request(`${to}/${model}`);
      // The vendor finds the word in the body of every protocol.
      const asked = {
        ...body,
        ...('contents' in body && { contents: [{ parts: [{ text: 'never' }] }] }),
        ...('messages' in body && { messages: [{ role: 'user', content: 'never' }] }),
        ...('input' in body && { input: 'never' }),
      };
      const before = never.size;
      const pending = send(key, path, asked, leave.signal).catch(() => {});
      await until(() => never.size > before);
      leave.abort();
      await pending;
      const [row] = await rowsWhere('target', `${to}/${model}`);
      expect(row).toMatchObject({ ended: 'client_gone', estimated: 1 });
      expect(row!.input).toBeGreaterThan(0);
      expect(row!.output).toBeGreaterThan(0);
    }
  },
);

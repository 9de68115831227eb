/** Streams of endpoints that end early: a client that leaves, and the end of the drain. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { rawPost } from '../support/raw-http.ts';
import { until } from '../support/until.ts';
import { type EndpointVendor, startVendor } from './vendor.ts';

const LIMITED = 'm'.repeat(32);
const FREE = 'f'.repeat(32);
const sse = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

/** What comes before the end of a stream, and its end, which has the usage. */
const STREAMS: Readonly<Record<string, readonly [string, string]>> = {
  // https://developers.openai.com/api/reference/resources/completions (stream_options)
  '/completions': [
    sse({ id: 'c', object: 'text_completion', choices: [{ index: 0, text: 'Hello.' }] }),
    `${sse({ id: 'c', choices: [], usage: { prompt_tokens: 9000, completion_tokens: 70, total_tokens: 9070 } })}data: [DONE]\n\n`,
  ],
  // https://developers.openai.com/api/reference/resources/images (image_generation.completed)
  '/images/generations': [
    sse({ type: 'image_generation.partial_image', partial_image_index: 0, b64_json: 'AAAA' }),
    sse({
      type: 'image_generation.completed',
      b64_json: 'AAAA',
      usage: { input_tokens: 9000, output_tokens: 70, total_tokens: 9070 },
    }),
  ],
  // https://developers.openai.com/api/reference/resources/audio (speech.audio.done)
  '/audio/speech': [
    sse({ type: 'speech.audio.delta', audio: 'AAAA' }),
    sse({
      type: 'speech.audio.done',
      usage: { input_tokens: 9000, output_tokens: 70, total_tokens: 9070 },
    }),
  ],
};

let vendor: EndpointVendor;
let release = Promise.withResolvers<void>();
let cancelled = 0;
let home: string;
let gateway: InProcess;

beforeAll(async () => {
  vendor = startVendor(({ path }) => {
    const [begin, end] = STREAMS[path.replace('/v1', '')]!;
    const parts = [begin, end];
    const { promise } = release;
    const body = new ReadableStream<string>({
      async pull(controller) {
        const next = parts.shift();
        if (next === undefined) return controller.close();
        if (next === end) await promise;
        controller.enqueue(next);
      },
      cancel() {
        cancelled++;
      },
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  });
  home = await mkdtemp(join(tmpdir(), 'left-endpoints-'));
  gateway = await start();
});

afterAll(async () => {
  await gateway.stop();
  await vendor.stop();
  await rm(home, { recursive: true, force: true });
});

const start = () =>
  startInProcess(
    {
      providers: {
        v: {
          protocol: 'openai-chat',
          base_url: vendor.url,
          keys: ['k'],
          models: ['*'],
          prices: { '*': { input: 3, output: 15 } },
        },
      },
      auth: {
        keys: [
          { name: 'free', key: FREE },
          { name: 'money', key: LIMITED, budgets: [{ usd: 1000, per: 'total' }] },
        ],
      },
      samples: { mode: 'all' },
    },
    home,
  );

type Row = Readonly<Record<'input' | 'output' | 'estimated' | 'cost', number>> & {
  readonly ended: string;
};

const rowOf = (target: string) =>
  until(() => {
    try {
      const db = new Database(join(home, 'state', 'spend.db'), { readonly: true });
      try {
        return (
          db.query<Row, [string]>('SELECT * FROM spend WHERE target = ?').get(target) ?? undefined
        );
      } finally {
        db.close();
      }
    } catch {
      return undefined;
    }
  });

const exchanges = () =>
  gateway.lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === 'exchange');

const headersOf = (key: string) => ({
  authorization: `Bearer ${key}`,
  'content-type': 'application/json',
});
const bodyOf = (model: string) =>
  JSON.stringify({ model, prompt: 'Hi.', input: 'Hi.', stream: true, stream_format: 'sse' });
const ask = (key: string, path: string, model: string, signal?: AbortSignal) =>
  fetch(`${gateway.url}/v1${path}`, {
    method: 'POST',
    headers: headersOf(key),
    body: bodyOf(model),
    signal: signal ?? null,
  });

async function leaveBehind(key: string, path: string, model: string): Promise<void> {
  const before = exchanges().length;
  const leave = new AbortController();
  const answer = await ask(key, path, model, leave.signal);
  await answer.body!.getReader().read();
  leave.abort();
  await until(() => exchanges().length > before);
  expect(exchanges().at(-1)).toMatchObject({ status: 499, aborted: true });
}

test.each(Object.keys(STREAMS))(
  '%s: a client with a budget that leaves before the end pays what the vendor reports',
  async (path) => {
    const model = `money-${path.replaceAll('/', '-')}`;
    await leaveBehind(LIMITED, path, `v/${model}`);
    release.resolve();
    release = Promise.withResolvers();
    expect(await rowOf(`v/${model}`)).toMatchObject({
      ended: 'client_gone',
      estimated: 0,
      input: 9000,
      output: 70,
      cost: 28_050_000,
    });
  },
);

test.each(Object.keys(STREAMS))(
  '%s: without a limit, the vendor is cancelled at once',
  async (path) => {
    const model = `free-${path.replaceAll('/', '-')}`;
    const before = cancelled;
    await leaveBehind(FREE, path, `v/${model}`);
    await until(() => cancelled > before);
    expect(await rowOf(`v/${model}`)).toMatchObject({ ended: 'client_gone' });
  },
);

test('the end of the drain: an error event and a reset; a cut, no client that left', async () => {
  const paths = Object.keys(STREAMS);
  let streaming = 0;
  const asking = paths.map((path) =>
    rawPost(
      `${gateway.url}/v1${path}`,
      bodyOf(`v/drain-${path.replaceAll('/', '-')}`),
      headersOf(LIMITED),
      () => streaming++,
    ),
  );
  await until(() => streaming === paths.length);
  await gateway.stop();
  for (const { text, broken } of await Promise.all(asking)) {
    expect([text, broken]).toEqual([expect.stringContaining('The gateway is restarting'), true]);
  }
  const logged = exchanges().slice(-paths.length);
  for (const line of logged) {
    expect(line).toMatchObject({ status: 200, error: 'overloaded' });
    expect(line.aborted).toBeUndefined();
  }
  for (const path of paths) {
    const row = await rowOf(`v/drain-${path.replaceAll('/', '-')}`);
    expect(row.ended).toBe('cut');
  }
  gateway = await start();
});

/** What is refused before it reaches a vendor: on every path, for what it may cost, and without taking anything. */

import { afterEach, describe, expect, test } from 'bun:test';
import { jsonRequest } from '../../src/endpoints/json-request.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';

const KEY = 'k'.repeat(32);
let gateway: InProcess | undefined;
let vendor: ReturnType<typeof startVendor> | undefined;

afterEach(async () => {
  vendor?.release();
  await gateway?.stop();
  await vendor?.stop();
});

/** Counts what reaches it by model, and keeps its answers back until it is told. */
function startVendor(holds = false) {
  const models: string[] = [];
  const gate = Promise.withResolvers<void>();
  if (!holds) gate.resolve();
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const text = await request.text();
      const inPath = /models\/([^:/]+)/.exec(pathname)?.[1];
      models.push(inPath ?? (text.startsWith('{') ? String(JSON.parse(text).model) : 'form'));
      await gate.promise;
      return Response.json({
        id: 'x',
        object: 'chat.completion',
        model: 'm',
        data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
        text: 'x',
        input_tokens: 5,
        totalTokens: 5,
        choices: [
          { index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' },
        ],
        usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
      });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    models,
    release: () => gate.resolve(),
    stop: () => server.stop(true),
  };
}

async function start(key: object, holds = false) {
  vendor = startVendor(holds);
  const free = { input: 0, output: 0 };
  const prices = {
    dear: { input: 0, output: 100 },
    cheap: free,
    sound: { ...free, input_audio: 5000 },
    film: { input: 100, output: 0 },
    voice: { ...free, output_audio: 2000 },
    spoken: { ...free, character: 1_000_000 },
    noted: { ...free, minute: 600_000 },
  };
  gateway = await startInProcess({
    providers: {
      up: {
        protocol: 'openai-chat',
        base_url: `${vendor.url}/v1`,
        models: Object.keys(prices),
        prices,
      },
      ant: { protocol: 'anthropic-messages', base_url: `${vendor.url}/v1`, models: ['claude'] },
      gem: { protocol: 'google-gemini', base_url: `${vendor.url}/v1beta`, models: ['gemini'] },
    },
    routes: [{ name: 'saving', when: { model: 'nothing-has-this-name' }, to: ['up/cheap'] }],
    auth: { keys: [{ name: 'ci', key: KEY, ...key }] },
    samples: { mode: 'off' },
  });
  return { vendor, gateway };
}

const post = (path: string, body: object) =>
  fetch(gateway!.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${KEY}`,
      'x-goog-api-key': KEY,
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });

const CHAT = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'Hi.' }];
const contents = [{ role: 'user', parts: [{ text: 'Hi.' }] }];

describe('a spent budget with a route', () => {
  test.each([
    ['/v1/embeddings', { input: 'a' }],
    ['/v1/completions', { prompt: 'a', max_tokens: 1 }],
    ['/v1/moderations', { input: 'a' }],
    ['/v1/images/generations', { prompt: 'a' }],
    ['/v1/audio/speech', { input: 'a', voice: 'alloy' }],
    ['/v1/chat/completions', { messages }],
  ])('%s goes that way, too', async (path, body) => {
    const { vendor } = await start({ budgets: [{ usd: 0, per: 'day', over: 'saving' }] });
    await (await post(path, { model: 'dear', ...body })).arrayBuffer();
    expect(vendor.models).not.toContain('dear');
    expect(vendor.models).toContain('cheap');
  });
});

const BESIDE: readonly (readonly [string, object])[] = [
  ['/v1/messages/count_tokens', { model: 'claude', messages }],
  ['/v1beta/models/gemini:countTokens', { contents }],
  ['/v1/responses/input_tokens', { model: 'dear', input: 'a' }],
  ['/v1/alpha/search', { query: 'a' }],
  ['/v1/embeddings', { model: 'dear', input: 'a' }],
];

describe.each(BESIDE)('%s', (path, body) => {
  test('is under the rate of requests', async () => {
    const { vendor } = await start({ limits: { requests_per_minute: 2 } });
    const statuses: number[] = [];
    for (let i = 0; i < 5; i++) statuses.push((await post(path, body)).status);
    expect(statuses.slice(2)).toEqual([429, 429, 429]);
    expect(statuses.slice(0, 2)).not.toContain(429);
    expect(vendor.models.length).toBeLessThanOrEqual(2);
  });

  test('is refused where a budget is used up', async () => {
    const { vendor } = await start({ budgets: [{ usd: 0, per: 'day' }] });
    expect([402, 429]).toContain((await post(path, body)).status);
    expect(vendor.models).toEqual([]);
  });
});

test('the list of models and stored responses are under the rate alone', async () => {
  await start({ limits: { requests_per_minute: 1 }, budgets: [{ usd: 0, per: 'day' }] });
  const get = async (path: string) =>
    (await fetch(gateway!.url + path, { headers: { authorization: `Bearer ${KEY}` } })).status;
  expect(await get('/v1/models')).toBe(200);
  expect(await get('/v1/models')).toBe(429);
  expect(await get('/v1/responses/resp_1')).toBe(429);
  expect(await get('/v1/usage')).toBe(200);
});

test('the memory is under the rate alone', async () => {
  await start({ limits: { requests_per_minute: 2 }, budgets: [{ usd: 0, per: 'day' }] });
  const recall = async () => (await post('/v1/memory/s/recall', { query: 'tea' })).status;
  expect([await recall(), await recall(), await recall()]).toEqual([200, 200, 429]);
});

test('a frame that only warms up is under the rate alone', async () => {
  const { vendor } = await start({
    limits: { requests_per_minute: 2 },
    budgets: [{ usd: 0, per: 'day' }],
  });
  const socket = new WebSocket(`${gateway!.url.replace('http', 'ws')}/v1/responses`, {
    headers: { authorization: `Bearer ${KEY}` },
  } as never);
  const ends: string[] = [];
  socket.onmessage = ({ data }) => {
    const { type, error } = JSON.parse(String(data));
    if (type === 'response.completed' || error !== undefined) ends.push(error?.code ?? type);
  };
  await new Promise((open) => socket.addEventListener('open', open));
  const frame = { type: 'response.create', model: 'cheap', input: 'Hi.', generate: false };
  for (let i = 1; i <= 3; i++) {
    socket.send(JSON.stringify(frame));
    await until(() => ends.length === i);
  }
  socket.close();
  expect(ends).toEqual(['response.completed', 'response.completed', 'rate_limit_exceeded']);
  expect(vendor.models).toEqual([]);
});

describe('what a request allows is reserved', () => {
  // A dollar buys 10,000 tokens.
  test.each([
    ['/v1/chat/completions', { model: 'dear', max_tokens: 100, n: 100, messages }],
    ['/v1/chat/completions', { model: 'dear', max_completion_tokens: 10_000, messages }],
    ['/v1/responses', { model: 'dear', max_output_tokens: 10_000, input: 'Hi.' }],
    ['/v1/messages', { model: 'dear', max_tokens: 10_000, messages }],
    [
      '/v1beta/models/dear:generateContent',
      { contents, generationConfig: { candidateCount: 10, maxOutputTokens: 1000 } },
    ],
    ['/v1/completions', { model: 'dear', prompt: 'a', max_tokens: 100, n: 2, best_of: 100 }],
    // What vendors read in another way, or in another place.
    [CHAT, { model: 'dear', max_completion_tokens: 1, max_tokens: 10_000, messages }],
    [CHAT, { model: 'dear', max_completion_tokens: 10_000, max_tokens: 1, messages }],
    [CHAT, { model: 'dear', max_tokens: 1, max_completion_tokens: -1, messages }],
    [CHAT, { model: 'dear', max_tokens: 100, n: '100', messages }],
    [CHAT, { model: 'dear', max_tokens: 100, best_of: 100, messages }],
    ['/v1/completions', { model: 'dear', prompt: Array(100).fill('a'), max_tokens: 100 }],
    ['/v1/completions', { model: 'dear', prompt: Array(50).fill([1]), max_tokens: 100, n: '2' }],
  ])('%s %j', async (path, body) => {
    const { vendor } = await start({ budgets: [{ usd: 1, per: 'day' }] }, true);
    const asked = Array.from({ length: 30 }, () => post(path, body));
    const first = await Promise.race(asked);
    expect([402, 429]).toContain(first.status);
    await Bun.sleep(100);
    // One that has its whole reservation, and four that reserve what they are likely to cost.
    expect(vendor.models.length).toBeLessThanOrEqual(5);
    vendor.release();
    await Promise.all(asked);
  });

  test('as many prompts as a large body holds are counted, none in a single one', async () => {
    const prompts = async (prompt: unknown) => {
      const body = { model: 'm', prompt, pad: 'x'.repeat(2 ** 21) };
      const { allowed } = await jsonRequest(Buffer.from(JSON.stringify(body)));
      return allowed!.choices;
    };
    expect(await prompts('["a","b"]')).toBe(1);
    expect(await prompts([1, 2, 3])).toBe(1);
    expect(await prompts(['a', '","', '\\"'])).toBe(3);
    expect(await prompts([[1, 2], [3]])).toBe(2);
  });

  test.each([
    ['/v1/chat/completions', { model: 'dear', max_tokens: 64_000, n: 128, messages }],
    ['/v1/chat/completions', { model: 'dear', n: 5, messages }],
    [
      '/v1beta/models/dear:generateContent',
      { contents, generationConfig: { candidateCount: 8, maxOutputTokens: 64_000 } },
    ],
    ['/v1/completions', { model: 'dear', prompt: 'a', max_tokens: 64_000, best_of: 20 }],
  ])('%s %j: so many answers never run on what they are likely to cost', async (path, body) => {
    // With answers as short as these before, the likely cost of many is small.
    const { vendor } = await start({ budgets: [{ usd: 1, per: 'day' }] });
    const first = await post('/v1/chat/completions', { model: 'dear', max_tokens: 16, messages });
    expect(first.status).toBe(200);
    const answer = await post(path, body);
    expect([402, 429]).toContain(answer.status);
    expect(await answer.text()).toContain('too little left');
    expect(vendor.models).toHaveLength(1);
  });

  test('answers that run on what they are likely to cost are counted, not requests', async () => {
    const { vendor } = await start({ budgets: [{ usd: 1, per: 'day' }] }, true);
    const body = { model: 'dear', max_tokens: 64_000, n: 2, messages };
    const asked = Array.from({ length: 6 }, () => post('/v1/chat/completions', body));
    await Promise.race(asked);
    vendor.release();
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(2);
  });

  test('a budget with room for the likely cost serves agents that allow more, one after the other', async () => {
    const { vendor } = await start({ budgets: [{ usd: 1, per: 'day' }] });
    for (let i = 0; i < 10; i++) {
      const answer = await post('/v1/chat/completions', {
        model: 'dear',
        max_tokens: 64_000,
        messages,
      });
      expect(answer.status).toBe(200);
    }
    expect(vendor.models).toHaveLength(10);
    expect(gateway!.lines.join('\n')).not.toContain('budget.exhausted');
  });

  test('where too many of them run, it says to come back, since the budget is not used up', async () => {
    const { vendor } = await start({ budgets: [{ usd: 1, per: 'day' }] }, true);
    const body = { model: 'dear', max_tokens: 64_000, messages };
    const asked = Array.from({ length: 6 }, () => post('/v1/chat/completions', body));
    const refused = await Promise.race(asked);
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).not.toBeNull();
    vendor.release();
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(4);
  });
});

/** Nine seconds of 8000 bytes. */
function wav(): string {
  const bytes = Buffer.alloc(72_000);
  bytes.write('RIFF', 0, 'latin1');
  bytes.write('WAVEfmt ', 8, 'latin1');
  bytes.writeUInt32LE(8000, 28);
  return bytes.toString('base64');
}
const of = (...content: object[]) => ({ messages: [{ role: 'user', content }], max_tokens: 1 });
const film = { fileData: { fileUri: 'gs://a/b', mimeType: 'video/mp4' } };
test.each([
  ['sound', CHAT, of({ type: 'input_audio', input_audio: { data: wav(), format: 'wav' } })],
  ['film', CHAT, of({ type: 'video_url', video_url: { url: 'https://a.example/b.mp4' } })],
  ['film', '/v1beta/models/film:generateContent', { contents: [{ role: 'user', parts: [film] }] }],
  ['voice', CHAT, { messages, max_tokens: 1000, modalities: ['text', 'audio'] }],
  ['spoken', '/v1/audio/speech', { input: 'Hi.', voice: 'alloy' }],
])('%s by %s that costs more than the budget never goes out', async (model, path, body) => {
  const { vendor } = await start({ budgets: [{ usd: 1, per: 'day' }] });
  const answer = await post(path, { model, ...body });
  expect([402, 429]).toContain(answer.status);
  expect(vendor.models).toEqual([]);
});

test('a recording that is paid for by the minute and costs more than the budget never goes out', async () => {
  const { vendor, gateway } = await start({ budgets: [{ usd: 1, per: 'day' }] });
  const form = new FormData();
  form.set('model', 'noted');
  form.set('file', new File([Buffer.alloc(72_000)], 'a.wav'));
  const answer = await fetch(`${gateway.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}` },
    body: form,
  });
  expect([402, 429]).toContain(answer.status);
  expect(vendor.models).toEqual([]);
});

test('a key without limits sees what it has spent', async () => {
  await start({});
  await post('/v1/chat/completions', { model: 'dear', max_tokens: 500, messages });
  await post('/v1/chat/completions', { model: 'cheap', max_tokens: 500, messages });
  const answer = await fetch(`${gateway!.url}/v1/usage`, {
    headers: { authorization: `Bearer ${KEY}` },
  });
  const { limits, budgets, spent } = (await answer.json()) as Record<string, object>;
  expect([limits, budgets]).toEqual([[], []]);
  const numbers = { cost_usd: 0.0005, tokens: 30, requests: 2, tries: 2, unpriced: 0 };
  expect(spent).toMatchObject({ today: numbers, this_month: numbers });
});

test('a request that a budget refuses takes nothing from the rate', async () => {
  await start({
    limits: { requests_per_minute: 3 },
    budgets: [{ usd: 0.001, per: 'day' }],
  });
  for (let i = 0; i < 6; i++) {
    const answer = await post('/v1/chat/completions', { model: 'dear', max_tokens: 500, messages });
    expect(await answer.text()).toContain('insufficient_quota');
    expect(answer.headers.get('x-ratelimit-remaining-requests')).toBe('3');
  }
});

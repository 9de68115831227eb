/** Vectors between OpenAI's API and Google's, by their official SDKs: each client at each vendor, whose checks are strict. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { ApiError, GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { type EndpointVendor, type ReceivedRequest, startVendor } from './vendor.ts';

type Body = ReturnType<typeof JSON.parse>;

const bad = (message: string) =>
  Response.json({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }, { status: 400 });

const only = (value: Body, ...names: string[]) =>
  Object.keys(value).find((name) => !names.includes(name));

/** Numbers that tell which text was embedded, and in which size. */
const vectorOf = (text: string, size = 3) =>
  Array.from({ length: size }, (_, at) => text.length / 8 + at);

const textIn = (content: Body): string =>
  content.parts.map(({ text }: { text: string }) => text).join('\n');

/** https://ai.google.dev/api/embeddings */
function geminiApi({ path, body }: ReceivedRequest): Response {
  const [, model, method] = /^\/v1beta\/models\/([^/:]+):(\w+)$/.exec(path) ?? [];
  if (model === undefined) return new Response('', { status: 404 });
  const asked: Body = JSON.parse(body.toString());
  const one = (request: Body) =>
    only(request, 'model', 'content', 'taskType', 'title', 'outputDimensionality');
  if (method === 'embedContent') {
    const unknown = one(asked);
    if (unknown !== undefined) return bad(`Unknown name "${unknown}": Cannot find field.`);
    const values = vectorOf(textIn(asked.content), asked.outputDimensionality);
    return Response.json({ embedding: { values }, usageMetadata: { promptTokenCount: 5 } });
  }
  if (method !== 'batchEmbedContents') return new Response('', { status: 404 });
  const unknown = only(asked, 'requests') ?? asked.requests.map(one).find(Boolean);
  if (unknown !== undefined) return bad(`Unknown name "${unknown}": Cannot find field.`);
  for (const request of asked.requests) {
    if (request.model !== `models/${model}`) return bad(`${request.model} is not ${model}`);
  }
  return Response.json({
    embeddings: asked.requests.map(({ content, outputDimensionality: size }: Body) => ({
      values: vectorOf(textIn(content), size),
    })),
    usageMetadata: { promptTokenCount: 5 * asked.requests.length },
  });
}

/** https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api */
function vertex({ path, body }: ReceivedRequest): Response {
  const [, model, method] = /^\/v1\/publishers\/google\/models\/([^/:]+):(\w+)$/.exec(path) ?? [];
  const isNew = /gemini|maas/.test(model ?? '') && model !== 'gemini-embedding-001';
  if (method !== (isNew ? 'embedContent' : 'predict')) return new Response('', { status: 404 });
  const asked: Body = JSON.parse(body.toString());
  if (isNew) {
    const unknown = only(asked, 'content', 'embedContentConfig');
    if (unknown !== undefined) return bad(`Unknown name "${unknown}": Cannot find field.`);
    const size = asked.embedContentConfig?.outputDimensionality;
    const values = vectorOf(textIn(asked.content), size);
    return Response.json({ embedding: { values }, usageMetadata: { promptTokenCount: 5 } });
  }
  const unknown =
    only(asked, 'instances', 'parameters') ??
    asked.instances.map((one: Body) => only(one, 'content', 'task_type', 'title')).find(Boolean);
  if (unknown !== undefined) return bad(`Unknown name "${unknown}": Cannot find field.`);
  return Response.json({
    predictions: asked.instances.map(({ content }: { content: string }) => ({
      embeddings: {
        statistics: { truncated: false, token_count: 5 },
        values: vectorOf(content, asked.parameters?.outputDimensionality),
      },
    })),
    metadata: { billableCharacterCount: 9 },
  });
}

/** https://platform.openai.com/docs/api-reference/embeddings/create */
function openaiApi({ path, body }: ReceivedRequest): Response {
  if (path !== '/v1/embeddings') return new Response('', { status: 404 });
  const asked: Body = JSON.parse(body.toString());
  const unknown = only(asked, 'model', 'input', 'dimensions', 'encoding_format', 'user');
  if (unknown !== undefined) return bad(`Unknown parameter: '${unknown}'.`);
  const input: string[] = typeof asked.input === 'string' ? [asked.input] : asked.input;
  const data = input.map((text, index) => {
    const vector = vectorOf(text, asked.dimensions);
    const bytes = Buffer.from(new Float32Array(vector).buffer);
    const embedding = asked.encoding_format === 'base64' ? bytes.toString('base64') : vector;
    return { object: 'embedding', index, embedding };
  });
  const tokens = 5 * input.length;
  // Out of order, as the index allows.
  return Response.json({
    object: 'list',
    data: data.reverse(),
    model: asked.model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  });
}

const VENDORS = {
  openai: { answer: openaiApi, model: 'text-embedding-3-small', base: '/v1' },
  gemini: { answer: geminiApi, model: 'gemini-embedding-001', base: '/v1beta' },
  predict: { answer: vertex, model: 'text-embedding-005', base: '/v1/publishers/google' },
  vertex: { answer: vertex, model: 'gemini-embedding-2', base: '/v1/publishers/google' },
} as const;
type VendorName = keyof typeof VENDORS;
const names = Object.keys(VENDORS) as VendorName[];

let gateway: InProcess;
const vendors = {} as Record<VendorName, EndpointVendor>;

beforeAll(async () => {
  const providers: Record<string, unknown> = {};
  for (const name of names) {
    const { answer, model, base } = VENDORS[name];
    vendors[name] = startVendor(answer);
    providers[name] = {
      protocol: name === 'openai' ? 'openai-chat' : 'google-gemini',
      base_url: vendors[name].url.replace('/v1', base),
      keys: ['sk-vendor'],
      models: [model],
      prices: { '*': { input: 1, output: 1 } },
    };
  }
  // Vertex' client asks embedContent where the name has `gemini`, and predict elsewhere.
  const aliases = Object.fromEntries(
    names.flatMap((name, at) =>
      ['text', 'gemini'].map((like) => [`${like}-${at}`, `${name}/${VENDORS[name].model}`]),
    ),
  );
  gateway = await startInProcess({
    providers,
    aliases,
    auth: {
      keys: [
        { name: 'all', key: 'sk-client-of-everything' },
        { name: 'one', key: 'sk-client-of-one-model', models: ['text-0'] },
        { name: 'poor', key: 'sk-client-with-little', budgets: [{ usd: 0.000_02, per: 'day' }] },
      ],
    },
    retry: { attempts: 1 },
  });
});

afterAll(async () => {
  await gateway.stop();
  for (const name of names) await vendors[name].stop();
});

const KEY = 'sk-client-of-everything';
const openai = (apiKey = KEY) =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });
const google = (apiKey = KEY, vertexai = false) =>
  new GoogleGenAI({ apiKey, vertexai, httpOptions: { baseUrl: gateway.url } });

const last = (name: VendorName): Body => JSON.parse(vendors[name].received.at(-1)!.body.toString());
/** Waits for the line of the last exchange. */
async function expectLogged(fields: Body): Promise<void> {
  const of = () =>
    gateway.lines
      .map((line) => JSON.parse(line) as Body)
      .filter(({ event }) => event === 'exchange');
  for (let tries = 0; of().length <= logged && tries < 200; tries++) await Bun.sleep(1);
  logged = of().length;
  expect(of().at(-1)).toMatchObject(fields);
}
let logged = 0;
beforeEach(async () => {
  await Bun.sleep(5);
  logged = gateway.lines.filter((line) => line.includes('"event":"exchange"')).length;
});

const TEXTS = ['tides', 'the sea at noon'];

describe.each(names)('at %s', (name) => {
  /** Of one text alone. */
  const texts = name === 'vertex' ? TEXTS.slice(0, 1) : TEXTS;
  const at = names.indexOf(name);
  const target = `${name}/${VENDORS[name].model}`;

  test.each(['float', 'base64', undefined] as const)(
    "OpenAI's client gets vectors, as %s",
    async (encoding_format) => {
      const { data, usage, model } = await openai().embeddings.create({
        model: `text-${at}`,
        input: texts,
        dimensions: 4,
        ...(encoding_format && { encoding_format }),
      });
      const read = data.map(({ embedding }) =>
        typeof embedding === 'string'
          ? [...new Float32Array(Uint8Array.from(Buffer.from(embedding, 'base64')).buffer)]
          : embedding,
      );
      const sorted = read.sort((a, b) => a[0]! - b[0]!);
      expect(sorted).toEqual(texts.map((text) => vectorOf(text, 4)));
      expect(usage).toEqual({ prompt_tokens: 5 * texts.length, total_tokens: 5 * texts.length });
      expect(model).toBe(VENDORS[name].model);
      await expectLogged({
        client: expect.stringMatching(/^embeddings /),
        target,
        usage: { input: 5 * texts.length },
      });
    },
  );

  test("Google's client gets vectors", async () => {
    const { embeddings, usageMetadata } = await google().models.embedContent({
      model: `text-${at}`,
      contents: texts,
      config: { outputDimensionality: 4, taskType: 'RETRIEVAL_QUERY' },
    });
    expect(embeddings!.map(({ values }) => values!)).toEqual(
      texts.map((text) => vectorOf(text, 4)),
    );
    expect(usageMetadata).toMatchObject({ promptTokenCount: 5 * texts.length });
    await expectLogged({
      client: expect.stringMatching(/^embeddings /),
      target,
      usage: { input: 5 * texts.length },
      ...(name === 'openai' && { notes: 'parameter_dropped' }),
    });
    const sent = last(name);
    const task =
      sent.requests?.[0].taskType ??
      sent.instances?.[0].task_type ??
      sent.embedContentConfig?.taskType;
    expect(task).toBe(name === 'openai' ? undefined : 'RETRIEVAL_QUERY');
  });

  test.each([
    ['predict', 'text'],
    ['embedContent', 'gemini'],
  ])("Vertex' client gets vectors by %s", async (method, like) => {
    const contents = method === 'embedContent' ? texts.slice(0, 1) : texts;
    const { embeddings } = await google(KEY, true).models.embedContent({
      model: `${like}-${at}`,
      contents,
      config: { outputDimensionality: 4 },
    });
    expect(embeddings!.map(({ values }) => values!)).toEqual(
      contents.map((text) => vectorOf(text, 4)),
    );
    await expectLogged({ target, usage: { input: 5 * contents.length } });
  });
});

const post = (path: string, body: unknown, key = KEY) =>
  fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { 'x-goog-api-key': key, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

test.each([
  ['/v1beta/models/gemini-embedding-001:embedContent', 'gemini'],
  ['/v1beta/models/gemini-embedding-001:batchEmbedContents', 'gemini'],
  ['/v1beta1/publishers/google/models/text-embedding-005:predict', 'predict'],
  ['/v1beta1/publishers/google/models/gemini-embedding-2:embedContent', 'vertex'],
] as const)('the bytes of %s stay at a vendor that has it', async (path, name) => {
  const content = '{ "parts": [ {"text":"x"} ] }';
  const asked = path.endsWith('predict')
    ? '{ "instances": [ {"content": "x" } ] }'
    : path.endsWith('batchEmbedContents')
      ? `{ "requests": [{"model": "models/gemini-embedding-001" ,"content": ${content}}] }`
      : `{ "content": ${content}}`;
  const response = await post(path, asked);
  expect(response.status).toBe(200);
  const sent = vendors[name].received.at(-1)!.body.toString();
  expect(sent.replace(/^\{\s*/, '{')).toBe(asked.replace(/^\{\s*/, '{'));
  expect(await response.text()).toBe(await answerTo(name).text());
});

/** What the vendor answered last. */
function answerTo(name: VendorName): Response {
  return VENDORS[name].answer(vendors[name].received.at(-1)!);
}

test('a batch reaches no other model than the one that the key may use', async () => {
  const requests = [
    { model: 'models/text-embedding-3-large', content: { parts: [{ text: 'x' }] } },
  ];
  const named = await post('/v1beta/models/text-1:batchEmbedContents', { requests });
  expect(named.status).toBe(200);
  expect(last('gemini').requests[0].model).toBe('models/gemini-embedding-001');
  const before = vendors.gemini.received.length;
  const refused = await post(
    '/v1beta/models/text-1:batchEmbedContents',
    { requests: [{ ...requests[0], model: 'models/text-0' }] },
    'sk-client-of-one-model',
  );
  expect([403, 404]).toContain(refused.status);
  expect(await refused.json()).toMatchObject({ error: { code: refused.status } });
  expect(vendors.gemini.received).toHaveLength(before);
});

const IMAGE = { inlineData: { mimeType: 'image/png', data: 'AAAA' } };

test.each([
  ['an image at OpenAI', 'text-0:embedContent', { content: { parts: [IMAGE] } }, 'texts'],
  ['no content', 'text-0:embedContent', { content: 7 }, 'content'],
  ['no requests', 'text-0:batchEmbedContents', { requests: [] }, 'requests'],
  [
    'sizes that differ, at OpenAI',
    'text-0:batchEmbedContents',
    {
      requests: [3, 4].map((outputDimensionality) => ({
        content: { parts: [{ text: 'x' }] },
        outputDimensionality,
      })),
    },
    'one size',
  ],
  [
    'two texts where one is taken',
    'text-3:batchEmbedContents',
    { requests: TEXTS.map((text) => ({ content: { parts: [{ text }] } })) },
    'more than one text',
  ],
])("Google's client: %s is a 400 in its form", async (_, method, body, words) => {
  const response = await post(`/v1beta/models/${method}`, body);
  const { error } = (await response.json()) as { error: Body };
  expect(response.status).toBe(400);
  expect(error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' });
  expect(error.message).toContain(words);
});

test("OpenAI's client: tokens are no texts at Google", async () => {
  const asking = openai().embeddings.create({ model: 'text-1', input: [1, 2, 3] });
  const refused = await asking.catch((thrown) => thrown);
  expect(refused.message).toMatch(/^400 .*do not take anything but a text/);
});

test('Imagen is not served as vectors', async () => {
  const instances = [{ prompt: 'a cat' }];
  for (const model of ['text-0', 'text-2']) {
    const response = await post(`/v1/publishers/google/models/${model}:predict`, { instances });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: 404, status: 'NOT_FOUND' } });
  }
});

describe('what goes wrong at a vendor', () => {
  /** A gateway whose vendor of `protocol` answers so. */
  async function at(protocol: string, answer: () => Response, more: object = {}) {
    const vendor = startVendor(answer);
    const base = protocol === 'google-gemini' ? vendor.url.replace('/v1', '/v1beta') : vendor.url;
    const own = await startInProcess({
      providers: { v: { protocol, base_url: base, keys: ['sk-vendor'], models: ['m'] } },
      retry: { attempts: 1 },
      ...more,
    });
    const stop = async () => {
      await own.stop();
      await vendor.stop();
    };
    return {
      own,
      stop,
      vendor,
      openai: new OpenAI({ baseURL: `${own.url}/v1`, apiKey: 'none', maxRetries: 0 }),
      google: new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: own.url } }),
    };
  }

  test('a provider without embeddings is a 404 that names the protocols which have them', async () => {
    const { openai, vendor, stop } = await at('anthropic-messages', () => Response.json({}));
    const refused = await openai.embeddings.create({ model: 'm', input: 'x' }).catch((e) => e);
    await stop();
    expect(refused).toBeInstanceOf(OpenAI.NotFoundError);
    expect(refused.message).toContain('a provider of an OpenAI protocol or google-gemini');
    expect(vendor.received).toEqual([]);
  });

  test("Google's refusal is OpenAI's to its client", async () => {
    const { openai, stop } = await at('google-gemini', () => bad('Text is too long.'));
    const refused = await openai.embeddings.create({ model: 'm', input: 'x' }).catch((e) => e);
    await stop();
    expect(refused).toBeInstanceOf(OpenAI.BadRequestError);
    expect(refused.error).toMatchObject({
      message: 'Text is too long.',
      type: 'invalid_request_error',
    });
  });

  test("OpenAI's refusal is Google's to its client", async () => {
    const { google, stop } = await at('openai-chat', () =>
      Response.json(
        { error: { message: 'The input is odd.', type: 'invalid_request_error' } },
        { status: 400 },
      ),
    );
    const refused = await google.models.embedContent({ model: 'm', contents: 'x' }).catch((e) => e);
    await stop();
    expect(refused).toBeInstanceOf(ApiError);
    expect(JSON.parse(refused.message).error).toMatchObject({
      code: 400,
      message: 'The input is odd.',
    });
  });

  test.each([
    ['no vectors', () => Response.json({ embeddings: [] })],
    ['vectors that are no lists', () => Response.json({ embeddings: [{ values: 'x' }] })],
    ['an error with status 200', () => Response.json({ error: { code: 500, message: 'x' } })],
    [
      'broken JSON',
      () => new Response('{"embeddings":', { headers: { 'content-type': 'application/json' } }),
    ],
    ['a web page', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
  ])('%s are a failed try, not an answer', async (_, answer) => {
    for (const client of ['openai', 'google'] as const) {
      const { stop, own, ...clients } = await at('google-gemini', answer);
      const asking =
        client === 'openai'
          ? clients.openai.embeddings.create({ model: 'm', input: 'x' })
          : clients.google.models.embedContent({ model: 'm', contents: 'x' });
      const failed = await asking.then(
        () => undefined,
        (thrown) => thrown,
      );
      await stop();
      expect(failed?.status).toBeGreaterThanOrEqual(500);
    }
  });

  test.each([
    ['beyond the list', [4e9, 1], 200],
    ['below it', [-1, 1], 200],
    ['no whole number', [0.5, 1], 200],
    ['missing', [undefined, undefined], 200],
    ['said twice', [0, 0], 502],
  ])('a place %s makes no list longer, and no vector is lost untold', async (_, places, status) => {
    const vectors = places.map((index, at) => ({ index, embedding: [at] }));
    const { stop, own } = await at('openai-chat', () => Response.json({ data: vectors }));
    const requests = TEXTS.map((text) => ({ content: { parts: [{ text }] } }));
    const response = await fetch(`${own.url}/v1beta/models/m:batchEmbedContents`, {
      method: 'POST',
      body: JSON.stringify({ requests }),
    });
    const answer = (await response.json()) as Body;
    await stop();
    expect(response.status).toBe(status);
    if (status === 200) expect(answer.embeddings).toEqual([{ values: [0] }, { values: [1] }]);
  });

  test('an answer of more than limits.answer_bytes is refused as soon as it is', async () => {
    let sent = 0;
    const { openai, stop } = await at(
      'google-gemini',
      () =>
        new Response(
          new ReadableStream({
            pull(controller) {
              sent += 65_536;
              controller.enqueue(Buffer.alloc(65_536, 0x20));
              if (sent > 64 * 1024 * 1024) controller.close();
            },
          }),
          { headers: { 'content-type': 'application/json' } },
        ),
      { limits: { answer_bytes: 1024 * 1024 } },
    );
    const failed = await openai.embeddings.create({ model: 'm', input: 'x' }).catch((e) => e);
    await stop();
    expect(failed.message).toContain('limits.answer_bytes');
    expect(sent).toBeLessThan(32 * 1024 * 1024);
  });

  test("tokens that the vendor does not tell are estimated for OpenAI's client, with a note", async () => {
    const { openai, stop } = await at('google-gemini', () =>
      Response.json({ embeddings: [{ values: [0.5] }] }),
    );
    const { data, response } = await openai.embeddings
      .create({ model: 'm', input: 'x' })
      .withResponse();
    await stop();
    expect(data.usage.prompt_tokens).toBeGreaterThan(0);
    expect(response.headers.get('x-hopgate-notes')).toContain('tokens_estimated');
  });

  test('a target that does not take the content is passed over', async () => {
    const vendor = startVendor(geminiApi);
    const own = await startInProcess({
      providers: {
        o: { protocol: 'openai-chat', base_url: vendor.url, keys: ['k'], models: ['o'] },
        g: {
          protocol: 'google-gemini',
          base_url: vendor.url.replace('/v1', '/v1beta'),
          keys: ['k'],
          models: ['gemini-embedding-2'],
        },
      },
      routes: [{ when: { model: 'any' }, to: ['o/o', 'g/gemini-embedding-2'] }],
      retry: { attempts: 1 },
    });
    const parts = [{ text: 'a' }, IMAGE];
    const response = await fetch(`${own.url}/v1beta/models/any:embedContent`, {
      method: 'POST',
      body: JSON.stringify({ content: { parts } }),
    });
    await own.stop();
    await vendor.stop();
    expect(response.status).toBe(200);
    expect(vendor.received).toHaveLength(1);
    expect(JSON.parse(vendor.received[0]!.body.toString())).toEqual({ content: { parts } });
  });
});

test('vectors are paid for, and a budget that is used up refuses the next in the form of the client', async () => {
  const ask = () =>
    post(
      '/v1beta/models/text-1:embedContent',
      { content: { parts: [{ text: 'x' }] } },
      'sk-client-with-little',
    );
  const answers = [await ask(), await ask(), await ask(), await ask(), await ask()];
  expect(answers[0]!.headers.get('x-hopgate-cost-usd')).toBe('0.000005');
  expect(answers[0]!.status).toBe(200);
  expect(answers[4]!.status).toBe(429);
  expect(await answers[4]!.json()).toMatchObject({
    error: { code: 429, status: 'RESOURCE_EXHAUSTED' },
  });
});

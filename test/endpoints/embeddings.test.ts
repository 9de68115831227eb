/** Vectors as base64, which SDKs ask for by default and many vendors do not know; and models that need no name. */

import { afterEach, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import OpenAI from 'openai';
import { EmbeddingFilter } from '../../src/endpoints/embedding-filter.ts';
import { bytewise, type Chunking, everySplit, random, whole } from '../support/chunkings.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { type EndpointVendor, startVendor, type VendorAnswer } from './vendor.ts';

const open: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.stop();
});

async function gatewayTo(answer: VendorAnswer): Promise<[InProcess, EndpointVendor]> {
  const vendor = startVendor(answer);
  const gateway = await startInProcess({
    providers: {
      v: { protocol: 'openai-chat', base_url: vendor.url, keys: ['sk-vendor'], models: ['*'] },
    },
    aliases: { 'omni-moderation-latest': 'v/guard-1' },
    retry: { attempts: 1 },
  });
  open.push(vendor, gateway);
  return [gateway, vendor];
}

const base64Of = (numbers: readonly number[]) =>
  Buffer.from(new Float32Array(numbers).buffer).toString('base64');

function filtered(text: string, { cut }: Chunking = whole): string {
  const filter = new EmbeddingFilter();
  const parts = cut(Buffer.from(text)).map((chunk) => filter.push(chunk));
  return Buffer.concat([...parts, filter.end()].filter((part) => part !== undefined)).toString();
}

describe('vectors become base64', () => {
  const VECTORS = [[0.5, -0.25], [1e-7, 3], [0]];
  const written = (embeddings: readonly unknown[]) =>
    JSON.stringify({
      object: 'list',
      data: embeddings.map((embedding, index) => ({ object: 'embedding', embedding, index })),
      note: 'an "embedding": [1] in words',
    });
  const LISTS = written(VECTORS);

  test.each([whole, bytewise, random(1), random(2, 7), ...everySplit(Buffer.from(LISTS))])(
    'wherever the answer is cut: $name',
    (chunking) => {
      expect(filtered(LISTS, chunking)).toBe(written(VECTORS.map(base64Of)));
    },
  );

  test.each([
    [
      'with white space',
      '{ "embedding" : [ 0.5 , -0.25\n] }',
      `{ "embedding" : "${base64Of([0.5, -0.25])}" }`,
    ],
    ['but not vectors of tokens', '{"embedding":[[0.5],[1]]}', undefined],
    ['but no empty list', '{"embedding":[]}', undefined],
    ['but no texts', '{"embedding":["a"]}', undefined],
    ['but not what is base64 already', '{"embedding":"AAAA"}', undefined],
    ['but no other member', '{"sparse_embedding":[1],"embeddings":[2]}', undefined],
    ['but not half a list', '{"embedding":[0.5,', undefined],
  ])('%s', (_, text, becomes) => {
    for (const chunking of [whole, bytewise])
      expect(filtered(text, chunking)).toBe(becomes ?? text);
  });

  test('whatever the numbers are', () => {
    // JSON has no -0.
    const number = fc.float({ noNaN: true, noDefaultInfinity: true }).map((one) => one + 0);
    fc.assert(
      fc.property(fc.array(fc.array(number, { minLength: 1 })), (vectors) => {
        const text = written(vectors);
        expect(filtered(text, random(3, 5))).toBe(written(vectors.map(base64Of)));
      }),
    );
  });
});

const answerOf = (count: number) => ({
  object: 'list',
  data: Array.from({ length: count }, (_, index) => ({
    object: 'embedding',
    index,
    embedding: [0.5, index],
  })),
  model: 'm',
  usage: { prompt_tokens: 8, total_tokens: 8 },
});

describe("OpenAI's SDK, which asks for base64", () => {
  test.each([1, 2048, 20_000])('gets %i vectors of a vendor that sends lists', async (count) => {
    const [gateway] = await gatewayTo(() => Response.json(answerOf(count)));
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const { data } = await client.embeddings.create({ model: 'm', input: ['x'] });
    expect(data).toHaveLength(count);
    expect(
      data.every(({ embedding, index }) => embedding[0] === 0.5 && embedding[1] === index),
    ).toBe(true);
  });

  test.each([
    [
      'in words',
      {
        error: {
          message: 'encoding_format base64 is not supported',
          type: 'invalid_request_error',
        },
      },
      400,
    ],
    [
      'by the name of the field',
      { error: { message: 'Unknown parameter', param: 'encoding_format' } },
      400,
    ],
    [
      "in FastAPI's words",
      { detail: [{ loc: ['body', 'encoding_format'], msg: 'Extra inputs are not permitted' }] },
      422,
    ],
    [
      "in LiteLLM's words",
      { error: { message: "bedrock does not support parameters: {'encoding_format': 'base64'}" } },
      400,
    ],
  ])('gets vectors of a vendor that refuses it %s', async (_, refusal, status) => {
    const [gateway, vendor] = await gatewayTo(({ body }) =>
      body.includes('encoding_format')
        ? Response.json(refusal, { status })
        : Response.json(answerOf(1)),
    );
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const { data, response } = await client.embeddings
      .create({ model: 'm', input: ['x'] })
      .withResponse();
    expect(data.data[0]!.embedding).toEqual([0.5, 0]);
    expect(response.headers.get('x-hopgate-notes')).toBe('parameter_dropped,parameter_mapped');
    expect(vendor.received.map(({ body }) => JSON.parse(body.toString()))).toEqual([
      { model: 'm', input: ['x'], encoding_format: 'base64' },
      { model: 'm', input: ['x'] },
    ]);
  });

  test('is refused once where the vendor refuses something else', async () => {
    const error = { message: "'input' must not be empty", type: 'invalid_request_error' };
    const [gateway, vendor] = await gatewayTo(() => Response.json({ error }, { status: 400 }));
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const refused = await client.embeddings
      .create({ model: 'm', input: '' })
      .catch((thrown: unknown) => thrown);
    expect((refused as Error).message).toMatch(/must not be empty/);
    expect(vendor.received).toHaveLength(1);
  });
});

async function post(gateway: InProcess, path: string, body: object) {
  const headers = { 'content-type': 'application/json' };
  return fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
}

test.each([
  ['lists of numbers', { encoding_format: 'float' }],
  ['nothing about it', {}],
  ['bytes in base64', { encoding_format: 'base64', output_dtype: 'int8' }],
])('a client that asks for %s gets what the vendor sends', async (_, more) => {
  const [gateway] = await gatewayTo(() => Response.json(answerOf(2)));
  const response = await post(gateway, '/v1/embeddings', {
    model: 'm',
    input: ['a', 'b'],
    ...more,
  });
  expect(response.headers.get('x-hopgate-notes')).toBeNull();
  expect(await response.json()).toEqual(answerOf(2));
});

test.each([
  ['a text', 'x'],
  ['an empty text', ''],
  ['texts', ['a', 'b']],
  ['tokens', [1, 2, 3]],
  ['lists of tokens', [[1], [2, 3]]],
  ['2048 texts', Array.from({ length: 2048 }, (_, i) => `text ${i}`)],
  ['parts with images', [{ type: 'image_url', image_url: { url: 'https://x/y.png' } }]],
  ['an object', { image: 'https://x/y.png', text: 'a' }],
])('an input of %s goes out byte for byte', async (_, input) => {
  const [gateway, vendor] = await gatewayTo(() => Response.json(answerOf(1)));
  const body = {
    model: 'm',
    input,
    dimensions: 256,
    user: 'u',
    task: 'retrieval.query',
    truncate: 'END',
  };
  expect((await post(gateway, '/v1/embeddings', body)).status).toBe(200);
  expect(vendor.received[0]!.body.toString()).toBe(JSON.stringify(body));
});

test.each<[string, { input: string; model?: string | null }, object]>([
  ['no model', { input: 'x' }, { model: 'guard-1', input: 'x' }],
  ['null', { input: 'x', model: null }, { input: 'x', model: 'guard-1' }],
  ['one', { input: 'x', model: 'v/own' }, { input: 'x', model: 'own' }],
])('moderations that name %s', async (_, body, sent) => {
  const [gateway, vendor] = await gatewayTo(() => Response.json({ results: [{ flagged: false }] }));
  const response = await post(gateway, '/v1/moderations', body);
  expect(response.status).toBe(200);
  expect(response.headers.get('x-hopgate-notes')).toBe(body.model ? null : 'parameter_defaulted');
  expect(vendor.received[0]!.body.toString()).toBe(JSON.stringify(sent));
});

test.each([
  ['/v1/embeddings', {}],
  ['/v1/embeddings', { model: null }],
  ['/v1/embeddings', { model: '' }],
  ['/v1/moderations', { model: '' }],
  ['/v1/moderations', { model: 7 }],
  ['/v1/images/generations', { prompt: 'x' }],
  ['/v1/rerank', { query: 'x', texts: [] }],
])('%s without a name of a model is refused: %j', async (path, body) => {
  const [gateway] = await gatewayTo(() => Response.json({}));
  const response = await post(gateway, path, body);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { param: 'model' } });
});

test.each([
  ['/v2/rerank', '/v1/rerank'],
  ['/rerank', '/v1/rerank'],
  ['/v1/v1/embeddings', '/v1/embeddings'],
  ['/v1beta/openai/embeddings', '/v1/embeddings'],
  ['/openai/v1/embeddings', '/v1/embeddings'],
  ['/openai/deployments/m/images/generations?api-version=1', '/v1/images/generations'],
])('%s is understood', async (path, at) => {
  const [gateway, vendor] = await gatewayTo(() => Response.json({ data: [1], results: [1] }));
  expect((await post(gateway, path, { model: 'm' })).status).toBe(200);
  expect(vendor.received[0]!.path).toBe(at);
});

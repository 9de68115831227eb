/** What official SDKs get of APIs that are not served, and of models by name: an answer in their own form. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import Anthropic from '@anthropic-ai/sdk';
import { ApiError, GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const MODELS = [
  'glm-4',
  'meta-llama/Llama-3.3-70B',
  'qwen3:latest',
  'org/model:free',
  'a b',
  'ü/é',
  'x@1',
  'ft:gpt-4o:acme::id',
];

let gateway: InProcess;
let openai: OpenAI;
let anthropic: Anthropic;
let google: GoogleGenAI;

beforeAll(async () => {
  gateway = await startInProcess({
    providers: {
      v: { protocol: 'openai-chat', base_url: 'http://127.0.0.1:9/v1', models: MODELS },
    },
  });
  const { url } = gateway;
  openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
  google = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: url } });
});

afterAll(() => gateway.stop());

describe.each(MODELS)('the model %s', (id) => {
  test("is OpenAI's to its SDK", async () => {
    expect(await openai.models.retrieve(id)).toMatchObject({ id, object: 'model', owned_by: 'v' });
  });

  test("is Anthropic's to its SDK", async () => {
    expect(await anthropic.models.retrieve(id)).toMatchObject({ id, type: 'model' });
  });

  test("is Google's to its SDK", async () => {
    expect(await google.models.get({ model: id })).toMatchObject({ name: `models/${id}` });
  });
});

test('lists are the same page by page', async () => {
  const pages: string[][] = [[], [], []];
  for await (const { id } of openai.models.list()) pages[0]!.push(id);
  for await (const { id } of anthropic.models.list({ limit: 3 })) pages[1]!.push(id);
  for await (const { name } of await google.models.list({ config: { pageSize: 3 } })) {
    pages[2]!.push(name!.slice('models/'.length));
  }
  expect(pages[0]!.slice(0, MODELS.length)).toEqual(MODELS);
  expect(pages[1]).toEqual(pages[0]!);
  expect(pages[2]).toEqual(pages[0]!);
});

const OPENAI: Record<string, () => Promise<unknown>> = {
  'fine-tuning': () => openai.fineTuning.jobs.create({ model: 'm', training_file: 'file-1' }),
  'vector stores': () => openai.vectorStores.create({}),
  uploads: () =>
    openai.uploads.create({ bytes: 1, filename: 'x', mime_type: 'x', purpose: 'batch' }),
  evals: () => openai.evals.list().then(({ data }) => data),
  containers: () => openai.containers.create({ name: 'c' }),
  videos: () => openai.videos.create({ prompt: 'x' }),
  conversations: () => openai.conversations.create({}),
  assistants: () => openai.beta.assistants.create({ model: 'm' }),
  'secrets of Realtime': () => openai.realtime.clientSecrets.create({}),
  'an unknown model': () => openai.models.retrieve('none'),
};

test.each(Object.keys(OPENAI))("OpenAI's SDK: %s is a 404 in its form", async (name) => {
  const refused = (await OPENAI[name]!().catch((thrown: unknown) => thrown)) as InstanceType<
    typeof OpenAI.APIError
  >;
  expect(refused).toBeInstanceOf(OpenAI.NotFoundError);
  expect(refused.error).toMatchObject({
    message: expect.any(String),
    type: 'invalid_request_error',
  });
});

const ANTHROPIC: Record<string, () => Promise<unknown>> = {
  skills: () => anthropic.beta.skills.list().then(({ data }) => data),
  completions: () => anthropic.post('/v1/complete', { body: {} }),
  'an unknown model': () => anthropic.models.retrieve('none'),
};

test.each(Object.keys(ANTHROPIC))("Anthropic's SDK: %s are a 404 in its form", async (name) => {
  const refused = (await ANTHROPIC[name]!().catch((thrown: unknown) => thrown)) as InstanceType<
    typeof Anthropic.APIError
  >;
  expect(refused).toBeInstanceOf(Anthropic.NotFoundError);
  expect(refused.error).toMatchObject({ type: 'error', error: { type: 'not_found_error' } });
});

const GOOGLE: Record<string, () => Promise<unknown>> = {
  'vectors of an unknown model': () => google.models.embedContent({ model: 'm', contents: 'x' }),
  caches: () => google.caches.create({ model: 'm', config: {} }),
  files: () => google.files.upload({ file: new Blob(['x']), config: { mimeType: 'text/plain' } }),
  'an unknown model': () => google.models.get({ model: 'none' }),
};

test.each(Object.keys(GOOGLE))("Google's SDK: %s are a 404 in its form", async (name) => {
  const refused = await GOOGLE[name]!().catch((thrown: unknown) => thrown);
  expect(refused).toBeInstanceOf(ApiError);
  expect((refused as ApiError).status).toBe(404);
  expect(JSON.parse((refused as ApiError).message)).toMatchObject({
    error: { code: 404, status: 'NOT_FOUND' },
  });
});

test('a method that is not served names those that are', async () => {
  const url = `${gateway.url}/v1beta/models/m:embedText`;
  const response = await fetch(url, { method: 'POST', body: '{}' });
  expect(await response.text()).toContain('batchEmbedContents');
});

test.each([
  ['/upload/v1beta/files?key=k', 'status'],
  ['/v1beta/cachedContents?key=k', 'status'],
  ['/v1/models/m:predict', 'status'],
  ['/v1/containers', 'type'],
  ['/v1/chatkit/sessions', 'type'],
])('POST %s without a header that says whose it is', async (path, member) => {
  const response = await fetch(gateway.url + path, { method: 'POST', body: '{}' });
  expect(response.status).toBe(404);
  const { error } = (await response.json()) as { error: object };
  expect(Object.keys(error)).toContain(member);
});

test('a WebSocket of Realtime is refused before it opens', async () => {
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=m`);
  const opened = await new Promise<boolean>((done) => {
    socket.onopen = () => done(true);
    socket.onclose = () => done(false);
  });
  expect(opened).toBe(false);
});

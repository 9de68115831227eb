/** `GET /v1/models` with wildcards: what vendors list, asked live, remembered, and never waited for long. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { createApp } from '../../src/app.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { dispatch } from '../../src/server/server.ts';
import { SILENT } from '../../src/telemetry/log.ts';
import { ModelLists, modelsIn } from '../../src/upstream/model-list.ts';

const HOME = '/nonexistent/hopgate-test';
const environment = environmentFrom({ HOME, HOPGATE_HOME: HOME });

interface Vendor {
  readonly url: string;
  /** The headers of each request. */
  readonly asked: Headers[];
  answer: () => Response | Promise<Response>;
  stop(): void;
}

function vendor(...ids: string[]): Vendor {
  const asked: Headers[] = [];
  const self: Vendor = {
    asked,
    answer: () => Response.json({ object: 'list', data: ids.map((id) => ({ id })) }),
    get url() {
      return `http://127.0.0.1:${server.port}`;
    },
    stop: () => void server.stop(true),
  };
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => {
      asked.push(new Headers(request.headers.toJSON()));
      return self.answer();
    },
  });
  return self;
}

const parsed = (file: unknown) => {
  const loaded = parseConfig(JSON.stringify(file), '/c/hopgate.yaml', environment);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config;
};

const ANTHROPIC = { 'anthropic-version': '2023-06-01', 'x-api-key': 'k' };

describe('a list with wildcards', () => {
  let one: Vendor;
  beforeEach(() => {
    one = vendor('qwen3-8b', 'org/llama-4', '通义千问');
  });
  afterEach(() => one.stop());

  const gateway = (file: Record<string, unknown>) => {
    const composed = createApp({
      config: parsed({ samples: { mode: 'off' }, ...file }),
      environment,
      log: SILENT,
      version: 'test',
    });
    const get = async (path: string, headers: Record<string, string> = {}) => {
      const request = new Request(`http://localhost${path}`, {
        headers: { host: 'localhost', ...headers },
      });
      const response = await dispatch(composed.app, request);
      return { status: response.status, body: (await response.json()) as Listed };
    };
    const ids = async (headers?: Record<string, string>) =>
      (await get('/v1/models', headers)).body.data.map(({ id }) => id);
    return { get, ids, close: () => composed.close() };
  };
  interface Listed {
    readonly id: string;
    readonly data: readonly { readonly id: string }[];
  }
  const provider = (more: Record<string, unknown> = {}) => ({
    protocol: 'openai-chat',
    base_url: `${one.url}/v1`,
    keys: ['a-key-of-the-provider'],
    models: ['*'],
    ...more,
  });

  for (const headers of [{}, ANTHROPIC]) {
    const whose = 'x-api-key' in headers ? 'Anthropic' : 'OpenAI';
    test(`models: ["*"] lists what the vendor serves, in ${whose}'s shape`, async () => {
      const { ids, get, close } = gateway({ providers: { p: provider() } });
      const listed = await ids(headers);
      for (const id of ['qwen3-8b', 'org/llama-4', '通义千问', 'p/qwen3-8b']) {
        expect(listed).toContain(id);
      }
      expect(one.asked[0]?.get('authorization')).toBe('Bearer a-key-of-the-provider');
      const found = await get('/v1/models/org/llama-4', headers);
      expect(found.status).toBe(200);
      expect(found.body.id).toBe('org/llama-4');
      await close();
    });
  }

  test('any name of a star route answers, also one that is not listed', async () => {
    one.answer = () => new Response('no list here', { status: 404 });
    const { get, close } = gateway({
      providers: { p: provider({ models: ['named'] }) },
      routes: [{ when: { model: 'loose-*' }, to: ['p/*'] }],
    });
    expect((await get('/v1/models/loose-one')).body.id).toBe('loose-one');
    expect((await get('/v1/models/named')).status).toBe(200);
    expect((await get('/v1/models/other')).status).toBe(404);
    await close();
  });

  test('globs of a provider and of a route take of the list what fits them, and lead where they say', async () => {
    const other = vendor('glm-5', 'embedding-3', 'qwen3-8b');
    const { ids, close } = gateway({
      providers: {
        p: provider({ models: ['qwen*'] }),
        q: provider({ base_url: `${other.url}/v1`, models: ['fixed'] }),
      },
      routes: [{ when: { model: 'glm-*' }, to: ['q/*'] }],
    });
    const listed = await ids();
    expect(listed).toContain('qwen3-8b');
    expect(listed).toContain('glm-5');
    expect(listed).toContain('fixed');
    expect(listed).not.toContain('embedding-3');
    expect(listed).not.toContain('org/llama-4');
    expect(new Set(listed).size).toBe(listed.length);
    await close();
    other.stop();
  });

  test('a vendor that fails, hangs, or sends anything but a list leaves what the configuration names', async () => {
    const answers: (() => Response | Promise<Response>)[] = [
      () => new Response('broken', { status: 500 }),
      () => new Response('<html>'),
      () => new Response('x'.repeat(9 * 1024 * 1024)),
      () => Response.json({ data: [{ id: 5 }, null, { id: 'a\nb' }, { id: 'x'.repeat(300) }] }),
      () => new Promise<Response>(() => undefined),
    ];
    for (const answer of answers) {
      one.answer = answer;
      const { ids, close } = gateway({ providers: { p: provider({ models: ['named', '*'] }) } });
      expect(await ids()).toEqual(['named', 'p/named']);
      await close();
    }
  }, 30_000);

  test('without a wildcard no vendor is asked', async () => {
    const { ids, close } = gateway({ providers: { p: provider({ models: ['named'] }) } });
    expect(await ids()).toEqual(['named', 'p/named']);
    expect(one.asked).toHaveLength(0);
    await close();
  });

  test('a key is needed as before, and without one no vendor is asked', async () => {
    const { get, close } = gateway({
      providers: { p: provider() },
      auth: { keys: ['a-key-of-the-gateway'] },
    });
    expect((await get('/v1/models')).status).toBe(401);
    expect(one.asked).toHaveLength(0);
    const headers = { authorization: 'Bearer a-key-of-the-gateway' };
    expect((await get('/v1/models', headers)).status).toBe(200);
    await close();
  });
});

describe('lists are remembered', () => {
  const [provider] = Object.values(
    parsed({
      providers: { p: { protocol: 'openai-chat', base_url: 'http://127.0.0.1:1/v1', models: '*' } },
    }).providers,
  );

  test('for some minutes; then asked again behind an answer, and kept where that fails', async () => {
    let now = 0;
    let asked = 0;
    let answer: readonly string[] | undefined = ['a'];
    const lists = new ModelLists(
      async () => {
        asked++;
        return answer && { names: answer, facts: new Map() };
      },
      () => now,
    );
    const names = async () => (await lists.of([provider!])).get('p');
    expect(await Promise.all([names(), names()])).toEqual([['a'], ['a']]);
    expect(asked).toBe(1);
    now += 10 * 60_000;
    answer = ['b'];
    expect(await names()).toEqual(['a']);
    expect(await names()).toEqual(['b']);
    expect(asked).toBe(2);
    now += 10 * 60_000;
    answer = undefined;
    await names();
    expect(await names()).toEqual(['b']);
    // One that just failed is left alone for a while.
    expect(asked).toBe(3);
    now += 60_000;
    await names();
    expect(asked).toBe(4);
  });
});

test('every protocol has an encoder that takes the list as it is', () => {
  for (const { encodeModels } of Object.values(CODECS)) {
    const { data, models } = encodeModels([{ id: '通义/千问', provider: 'p', created: 1 }]);
    expect(data ?? models).toHaveLength(1);
  }
});

describe('what the list says about a model', () => {
  const file = {
    providers: {
      anthropic: { keys: ['k'], models: ['claude-sonnet-4-5'] },
      local: {
        protocol: 'openai-chat',
        base_url: 'http://127.0.0.1:1/v1',
        models: [{ name: 'own', context: 4096, tools: false }, 'glm-4.7'],
      },
    },
    samples: { mode: 'off' },
  };
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const composed = createApp({ config: parsed(file), environment, log: SILENT, version: 'test' });
    const request = new Request(`http://localhost${path}`, {
      headers: { host: 'localhost', ...headers },
    });
    const response = await dispatch(composed.app, request);
    const text = await response.text();
    await composed.close();
    return { response, body: (text === '' ? {} : JSON.parse(text)) as Record<string, never> };
  };
  const named = (list: readonly Record<string, unknown>[], name: string, key = 'id') =>
    list.find((one) => one[key] === name);

  test('to OpenAI clients: window, cap, price, abilities; nothing where nothing is known', async () => {
    const { data } = (await ask('/v1/models')).body as unknown as {
      data: Record<string, unknown>[];
    };
    expect(named(data, 'claude-sonnet-4-5')).toMatchObject({
      object: 'model',
      owned_by: 'anthropic',
      context_length: 200_000,
      max_output_tokens: 64_000,
      pricing: {
        prompt: '0.000003',
        completion: '0.000015',
        input_cache_read: '0.0000003',
        input_cache_write: '0.00000375',
      },
      capabilities: { tools: true, reasoning: true, input: ['text', 'image', 'pdf'] },
    });
    const own = named(data, 'own')!;
    expect(own).toMatchObject({ context_length: 4096, capabilities: { tools: false } });
    expect(own).not.toHaveProperty('max_output_tokens');
    expect(own).not.toHaveProperty('pricing');
    const glm = named(data, 'glm-4.7')!;
    expect(glm).toMatchObject({ context_length: 204_800 });
    expect(glm).not.toHaveProperty('pricing');
    const one = (await ask('/v1/models/claude-sonnet-4-5')).body;
    expect(one).toMatchObject({ context_length: 200_000 });
  });

  test('to Anthropic clients', async () => {
    const { body } = await ask('/v1/models?limit=1', ANTHROPIC);
    expect(body).toMatchObject({
      data: [{ type: 'model', max_input_tokens: 200_000, max_tokens: 64_000 }],
      has_more: true,
    });
  });

  test('to clients of Google', async () => {
    const { body } = await ask('/v1beta/models', { 'x-goog-api-key': 'k' });
    const { models } = body as unknown as { models: Record<string, unknown>[] };
    expect(named(models, 'models/claude-sonnet-4-5', 'name')).toMatchObject({
      inputTokenLimit: 200_000,
      outputTokenLimit: 64_000,
      thinking: true,
      supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
    });
    const own = named(models, 'models/own', 'name')!;
    expect(own).toMatchObject({ displayName: 'own', inputTokenLimit: 4096 });
    expect(own).not.toHaveProperty('outputTokenLimit');
    expect(own).not.toHaveProperty('thinking');
    const one = (await ask('/v1beta/models/claude-sonnet-4-5')).body;
    expect(one).toMatchObject({ inputTokenLimit: 200_000 });
  });

  test('to Codex, with a tag', async () => {
    const { response, body } = await ask('/v1/models?client_version=0.131.0');
    const { models } = body as unknown as { models: Record<string, unknown>[] };
    expect(named(models, 'glm-4.7', 'slug')).toMatchObject({
      context_window: 204_800,
      visibility: 'list',
      supported_in_api: true,
      apply_patch_tool_type: 'freeform',
      default_reasoning_level: 'medium',
      truncation_policy: { mode: 'bytes', limit: 10_000 },
    });
    // A model that calls no tools is no agent.
    expect(named(models, 'own', 'slug')).toBeUndefined();
    const etag = response.headers.get('etag')!;
    const again = await ask('/v1/models?client_version=0.131.0', { 'if-none-match': etag });
    expect([again.response.status, again.response.headers.get('etag')]).toEqual([304, etag]);
    const other = await ask('/v1/models?client_version=0.131.0', { 'if-none-match': '"x"' });
    expect(other.response.status).toBe(200);
  });
});

test('what a vendor says in its list is known, whatever it calls it', () => {
  const stated = (entry: object) =>
    modelsIn({ data: [{ id: 'm', ...entry }] } as never)?.facts.get('m');
  expect(stated({ context_length: 1000, top_provider: {} })).toEqual({ context: 1000 });
  expect(stated({ max_model_len: 32_768 })).toEqual({ context: 32_768 });
  expect(stated({ max_input_tokens: 5, max_tokens: 6 })).toEqual({ context: 5, output: 6 });
  expect(stated({ context_window: 0, max_completion_tokens: 'x' })).toBeUndefined();
  const gemini = modelsIn({ models: [{ name: 'models/g', inputTokenLimit: 7 }] });
  expect(gemini?.facts.get('g')).toEqual({ context: 7 });
  expect(modelsIn('no list')).toBeUndefined();
});

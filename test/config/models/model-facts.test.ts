/** The file of models: the names by which models are found, facts, prices, and predecessors of newer models. */

import { afterEach, describe, expect, test } from 'bun:test';
import { modelsText } from '../../../scripts/models.ts';
import {
  cataloguePrice,
  factsOf,
  familyFacts,
  leastCacheLength,
  modelFacts,
  modelsDate,
  predecessorOf,
  priceOf,
  useModelsFile,
  vendorFacts,
} from '../../../src/config/models/model-facts.ts';
import { ModelsFile } from '../../../src/config/models/models-file.ts';
import { modelPrice } from '../../../src/config/sections/prices.ts';
import { ratesFor } from '../../../src/money/price.ts';
import { profileFor } from '../../../src/routing/targets.ts';
import { CATALOGUE_VENDORS, catalogueVendor, PRESETS } from '../../../src/vendors/index.ts';
import { config, parse } from '../support.ts';

const at = (vendor: string | undefined) => ({ vendor, prices: [] });

describe('the vendor of a provider', () => {
  test('every preset that names its vendor has it, by its name and by its address', () => {
    for (const [name, preset] of Object.entries(PRESETS)) {
      if (preset.catalogue === undefined)
        expect(catalogueVendor(name, 'http://127.0.0.1:1/v1')).toBeUndefined();
      else expect(CATALOGUE_VENDORS).toContain(catalogueVendor(name, '')!);
      for (const endpoint of Object.values(preset.endpoints)) {
        const byAddress = catalogueVendor(undefined, endpoint!.baseUrl);
        if (preset.catalogue === undefined) expect(byAddress).toBeUndefined();
        else expect(CATALOGUE_VENDORS).toContain(byAddress!);
      }
    }
    // Beside servers of one's own, vendors that models.dev does not have.
    const unknown = Object.entries(PRESETS).flatMap(([name, { catalogue, local }]) =>
      catalogue === undefined && local !== true ? [name] : [],
    );
    expect(unknown).toEqual(['doubao', 'doubao-coding']);
  });

  test.each([
    ['https://bedrock-runtime.eu-west-1.amazonaws.com', 'amazon-bedrock'],
    ['https://europe-west1-aiplatform.googleapis.com/v1', 'google-vertex'],
    ['https://mine.openai.azure.com/openai/v1', 'azure'],
    ['https://open.bigmodel.cn/api/coding/paas/v4', 'zhipuai-coding-plan'],
    ['https://open.bigmodel.cn/api/paas/v4', 'zhipuai'],
    ['https://api.siliconflow.cn/v1', 'siliconflow-cn'],
    ['https://llm.example/v1', undefined],
    ['demo:', undefined],
  ])('%s is %p', (url, vendor) => {
    expect(catalogueVendor(undefined, url)).toBe(vendor);
  });

  test('a configured provider has it', async () => {
    const { providers } = config(
      await parse(`providers:
  anthropic: { keys: [k] }
  mine: { protocol: openai-chat, base_url: "https://api.groq.com/openai/v1", keys: [k] }
  local: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1" }
`),
    );
    expect(Object.values(providers).map(({ vendor }) => vendor)).toEqual([
      'anthropic',
      'groq',
      undefined,
    ]);
  });
});

describe('facts of a model', () => {
  test('a vendor has its own', () => {
    expect(modelFacts('anthropic', 'claude-sonnet-4-5')).toMatchObject({
      tools: true,
      reasoning: true,
      input: ['text', 'image', 'pdf'],
    });
    expect(modelFacts('alibaba', 'qwen-max')).toMatchObject({ context: 30_720, output: 8192 });
  });

  test.each([
    ['Claude-Sonnet-4-5', 'claude-sonnet-4-5'],
    ['claude-sonnet-4-5@20250929', 'claude-sonnet-4-5'],
    ['anthropic/claude-sonnet-4.5', 'claude-sonnet-4-5'],
    ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', 'claude-sonnet-4-5'],
    ['zai-org/GLM-4.7', 'glm-4.7'],
    ['deepseek/deepseek-chat:free', 'deepseek-chat'],
  ])('%s is known under any provider', (name, own) => {
    const facts = modelFacts(undefined, name);
    expect(facts).toBeDefined();
    expect(facts).toEqual(modelFacts(undefined, own)!);
  });

  test('a name that no vendor has is unknown, and so is a very long one', () => {
    expect(modelFacts(undefined, 'nothing-of-the-sort')).toBeUndefined();
    expect(modelFacts('openai', 'gpt-5'.repeat(1000))).toBeUndefined();
  });

  test('no known window or cap is zero', () => {
    expect(modelFacts('openai', 'gpt-image-1')?.context).toBeUndefined();
  });
});

describe('prices', () => {
  test('what the file says comes before the catalogue', () => {
    const own = modelPrice('gpt-5*', { input: 1, output: 2 });
    const provider = { vendor: 'openai', prices: [own] };
    expect(priceOf(provider, 'gpt-5')).toMatchObject({ ...own, source: 'configuration' });
    expect(priceOf(provider, 'gpt-4o')).toMatchObject({ input: 2.5, source: 'catalogue' });
  });

  test('only the vendor itself has its prices', () => {
    expect(priceOf(at('deepseek'), 'deepseek-chat')).toBeDefined();
    expect(priceOf(at(undefined), 'deepseek-chat')).toBeUndefined();
    expect(priceOf(at('openai'), 'deepseek-chat')).toBeUndefined();
  });

  test('a cache has its prices, and where none is stated a prompt token costs the same', () => {
    const claude = priceOf(at('anthropic'), 'claude-sonnet-4-5')!;
    expect(claude).toMatchObject({ input: 3, cached: 0.3, cacheWrite: 3.75, cacheWrite1h: 6 });
    const plain = priceOf(at('alibaba'), 'qwen-max')!;
    expect([plain.cached, plain.cacheWrite, plain.cacheWrite1h]).toEqual([1.6, 1.6, 1.6]);
  });

  test('long prompts, reasoning and audio have prices of their own', () => {
    const long = priceOf(at('google'), 'gemini-2.5-pro')!;
    const usual = long.tiers.filter(({ serviceTier }) => serviceTier === undefined);
    expect(usual.map(({ above }) => above)).toEqual([200_000]);
    expect(usual[0]!.rates.input).toBeGreaterThan(long.input);
    expect(priceOf(at('alibaba'), 'qwen-plus-latest')).toMatchObject({ output: 1.2, reasoning: 4 });
    expect(priceOf(at('google'), 'gemini-2.5-flash')).toMatchObject({ inputAudio: 1 });
  });

  test.each([
    ['openai', 'gpt-6.1-sol', 1000, 'default', 2, 10],
    ['openai', 'gpt-6.1-sol', 300_000, undefined, 4, 15],
    ['openai', 'gpt-6.1-sol', 1000, 'flex', 1, 5],
    ['openai', 'gpt-6.1-sol', 1000, 'ultrafast', 12, 60],
    ['openai', 'gpt-6.1-sol', 300_000, 'priority', 8, 30],
    ['anthropic', 'claude-opus-5-5', 1000, 'standard', 4, 20],
    ['anthropic', 'claude-opus-5-5', 1000, 'fast', 8, 40],
    ['anthropic', 'claude-fable-5-2', 1000, undefined, 8, 40],
  ])('%s/%s, %d tokens, tier %p', (vendor, model, tokens, tier, input, output) => {
    expect(ratesFor(priceOf(at(vendor), model)!, tokens, { serviceTier: tier })).toMatchObject({
      input,
      output,
    });
  });

  test.each([
    ['anthropic', 'claude-opus-5-5', 10],
    ['openai', 'gpt-6.1-sol', 10],
    ['azure', 'gpt-6.1-sol', 14],
    ['google', 'gemini-3.8-flash', 14],
    ['groq', 'openai/gpt-oss-120b', 5],
  ])('a thousand searches of %s/%s cost %d', (vendor, model, search) => {
    expect(priceOf(at(vendor), model)?.search).toBe(search);
  });

  test('a price of zero is a price', () => {
    expect(priceOf(at('zai-coding-plan'), 'glm-4.7')).toMatchObject({ input: 0, output: 0 });
  });
});

describe('the data', () => {
  test('carry their day', () => {
    expect(modelsDate()).toMatch(/^20\d\d-\d\d-\d\d$/);
  });

  const own = {
    max_input_tokens: 1000,
    max_output_tokens: 100,
    litellm_provider: 'openai',
    mode: 'chat',
    supports_function_calling: true,
    supports_vision: true,
    input_cost_per_token: 1e-6,
    output_cost_per_token: 2e-6,
    cache_read_input_token_cost: 5e-7,
    input_cost_per_token_above_200k_tokens: 2e-6,
    input_cost_per_token_priority: 3e-6,
    input_cost_per_token_above_200k_tokens_priority: 6e-6,
    search_context_cost_per_query: { search_context_size_medium: 0.01 },
    prompt_cache_min_tokens: 512,
    deprecation_date: '2027-01-02',
    successor_model: 'two',
  };
  const modelsDev = {
    providers: { openai: { one: { name: 'Number One', reasoning: true, context: 5, output: 5 } } },
  };

  test('are what either source knows, prices by kind, length and tier', () => {
    const text = modelsText({ litellm: { _source: 'read 2026-01-02', one: own }, modelsDev });
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines[0]).toMatchObject({ format: 1, date: '2026-01-02' });
    expect(lines.at(-2)).toEqual({ vendor: 'openai' });
    expect(lines.at(-1)).toEqual({
      id: 'one',
      name: 'Number One',
      context: 1000,
      output: 100,
      can: 'tr',
      in: 'text image',
      cache: 512,
      usd: {
        input: 1,
        output: 2,
        cached: 0.5,
        search: 10,
        tiers: [
          { above: 200_000, input: 2 },
          { service_tier: 'priority', input: 3 },
          { above: 200_000, service_tier: 'priority', input: 6 },
        ],
      },
      ends: '2027-01-02',
      next: 'two',
    });
  });

  test('are those of images where a model makes images: what it thinks is text', () => {
    const painter = {
      litellm_provider: 'openai',
      mode: 'image_generation',
      input_cost_per_token: 0.000002,
      input_cost_per_image_token: 0.000004,
      output_cost_per_token: 0.000012,
      output_cost_per_token_priority: 0.000024,
      output_cost_per_token_batches: 0.000006,
      output_cost_per_image_token: 0.00012,
      output_cost_per_image_token_batches: 0.00005,
    };
    const priceOfLine = (entry: object) => {
      const text = modelsText({ litellm: { _source: 'read 2026-01-02', one: entry }, modelsDev });
      return JSON.parse(text.trimEnd().split('\n').at(-1)!).usd;
    };
    expect(priceOfLine(painter)).toEqual({
      input: 4,
      input_text: 2,
      output: 120,
      output_text: 12,
      reasoning: 12,
      tiers: [
        { service_tier: 'priority', output: 240, reasoning: 24 },
        { service_tier: 'batch', output: 50, reasoning: 6 },
      ],
    });
    expect(priceOfLine({ ...painter, mode: 'chat' })).toMatchObject({ input: 2, output: 12 });
    const free = { input: 0, output: 0 };
    const sound = { litellm_provider: 'openai', mode: 'audio_speech' };
    expect(priceOfLine({ ...sound, input_cost_per_character: 1.5e-5 })).toEqual({
      ...free,
      character: 15,
    });
    const heard = { ...sound, mode: 'audio_transcription', input_cost_per_second: 0.0001 };
    expect(priceOfLine(heard)).toEqual({ ...free, minute: 6 });
    // Where tokens have a price, that of a second is the same in other words.
    expect(priceOfLine({ ...heard, input_cost_per_token: 1e-6 })).toEqual({ input: 1, output: 0 });
  });

  test.each([
    ['openai', 'gpt-image-1', 40],
    ['openai', 'gpt-image-1.5', 32],
    ['openai', 'gpt-image-2', 30],
    ['azure', 'gpt-image-2', 30],
    ['google', 'gemini-2.5-flash-image', 30],
    ['google', 'gemini-3-pro-image', 120],
    ['google-vertex', 'gemini-3-pro-image', 120],
  ])('%s: the images of %s cost more than its text', (vendor, model, output) => {
    expect(cataloguePrice(vendor, model)?.output).toBe(output);
  });

  test('need a day and a vendor', () => {
    expect(() => modelsText({ litellm: { one: own }, modelsDev })).toThrow('date');
    expect(() => modelsText({ litellm: {}, modelsDev: {}, date: '2026-01-02' })).toThrow('vendors');
  });
});

describe('a model that is newer than the file', () => {
  test.each([
    ['anthropic', 'claude-opus-6', 'claude-opus-5-5'],
    ['anthropic', 'claude-opus-5-6-20270101', 'claude-opus-5-5'],
    ['anthropic', 'claude-saga-6', 'claude-opus-5-5'],
    ['amazon-bedrock', 'us.anthropic.claude-opus-6-v1:0', 'anthropic.claude-opus-5-5'],
    ['openai', 'gpt-6.2-sol', 'gpt-6.1-sol'],
    ['openai', 'gpt-7', 'gpt-6.1-sol'],
    ['moonshotai', 'kimi-k4', 'kimi-k3'],
    ['xai', 'grok-5', 'grok-4.7'],
    ['zai', 'glm-6', 'glm-5.3'],
    ['google', 'gemini-4-flash-lite', 'gemini-3.5-flash-lite'],
    ['anthropic', 'claude-opus-4-9', undefined],
    ['anthropic', 'claude-opus-5-5', undefined],
    ['openai', 'my-own-7', undefined],
    [undefined, 'claude-opus-6', undefined],
  ])('%s/%s is what %s is', (vendor, model, expected) => {
    expect(predecessorOf(vendor, model)?.id).toBe(expected as string);
    if (expected === undefined) return;
    const known = vendorFacts(vendor, expected);
    expect(vendorFacts(vendor, model)).toEqual(known as never);
    expect(cataloguePrice(vendor, model)).toMatchObject({ source: 'family' });
    expect(cataloguePrice(vendor, model)?.input).toBe(cataloguePrice(vendor, expected)!.input);
  });

  test('its family has the lowest limits of the names that begin so', () => {
    expect(familyFacts('o4-huge')).toEqual({ context: 200_000, output: 100_000 });
    expect(familyFacts('nothing-at-all')).toBeUndefined();
    expect(familyFacts('model')).toBeUndefined();
  });
});

test('the least length that a cache keeps, by vendor, else by the model, else by its predecessor', () => {
  expect(leastCacheLength('anthropic', 'claude-opus-5-5')).toBe(512);
  expect(leastCacheLength('anthropic', 'claude-haiku-4-5-20251001')).toBe(4096);
  expect(leastCacheLength(undefined, 'anthropic/claude-opus-5.5')).toBe(512);
  expect(leastCacheLength('anthropic', 'claude-opus-6')).toBe(512);
  expect(leastCacheLength('deepseek', 'deepseek-v4-pro')).toBeUndefined();
});

test('facts: the configuration, then the vendor, then the catalogue', () => {
  const provider = { vendor: 'openai', facts: { 'gpt-5': { context: 9 }, own: { output: 1 } } };
  expect(factsOf(provider, 'gpt-5', { context: 8, output: 7 })).toMatchObject({
    context: 9,
    output: 7,
    tools: true,
  });
  expect(factsOf(provider, 'own')).toEqual({ output: 1 });
  expect(factsOf(provider, 'none of these')).toBeUndefined();
});

describe('another file in force', () => {
  afterEach(() => useModelsFile(undefined));

  test('answers from then on, also for profiles that were looked up before', () => {
    const facts = { name: 'openai' };
    expect(profileFor(facts, 'gpt-6.1-sol').maxStops).toBe(0);
    useModelsFile(
      new ModelsFile(
        [
          { format: 1, date: '2027-01-01' },
          { rule: 'gpt-*', for: 'openai', facts: { maxStops: 3 } },
          { vendor: 'openai' },
          { id: 'gpt-9', usd: { input: 7, output: 8 } },
          '',
        ]
          .map((line) => (line === '' ? '' : JSON.stringify(line)))
          .join('\n'),
      ),
    );
    expect(modelsDate()).toBe('2027-01-01');
    expect(profileFor(facts, 'gpt-6.1-sol').maxStops).toBe(3);
    expect(cataloguePrice('openai', 'gpt-9')).toMatchObject({ input: 7, output: 8 });
    expect(cataloguePrice('openai', 'gpt-6.1-sol')).toBeUndefined();
  });
});

// A name that nothing is known of has no price, and no budget counts it.
describe('a model is found at its vendor under every name that leads to it:', () => {
  const ARN = 'arn:aws:bedrock:us-east-1:123456789012:inference-profile/';
  test.each([
    ['google', 'models/gemini-2.5-pro', 'gemini-2.5-pro'],
    ['google-vertex', 'publishers/google/models/gemini-2.5-pro', 'gemini-2.5-pro'],
    ['openrouter', 'openai/gpt-5:nitro', 'openai/gpt-5'],
    ['openrouter', 'openai/gpt-5:floor', 'openai/gpt-5'],
    ['openrouter', 'deepseek/deepseek-v3.2:exacto', 'deepseek/deepseek-v3.2'],
    ['openrouter', 'openai/gpt-5:online', 'openai/gpt-5'],
    ['openrouter', 'openai/gpt-5:nitro:online', 'openai/gpt-5'],
    ['huggingface', 'zai-org/GLM-4.7:fastest', 'zai-org/GLM-4.7'],
    ['siliconflow-cn', 'Pro/zai-org/GLM-4.5-Air', 'zai-org/GLM-4.5-Air'],
    ['openai', 'ft:gpt-4o-mini-2024-07-18:acme::abc', 'ft:gpt-4o-mini-2024-07-18'],
    ['openai', 'ft:gpt-4.1-mini-2025-04-14:acme:name:id', 'ft:gpt-4.1-mini-2025-04-14'],
    [
      'amazon-bedrock',
      `${ARN}us.anthropic.claude-sonnet-4-5-20250929-v1:0`,
      'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    ],
    ['amazon-bedrock', 'anthropic.claude-sonnet-5-5-v1', 'anthropic.claude-sonnet-5-5'],
    // As answers of deployments and profiles name it.
    ['amazon-bedrock', 'claude-sonnet-4-5-20250929', 'anthropic.claude-sonnet-4-5-20250929-v1:0'],
  ])('%s %s', (vendor, name, id) => {
    const known = cataloguePrice(vendor, id)!;
    expect(known.input).toBeGreaterThan(0);
    expect(cataloguePrice(vendor, name)).toEqual(known);
  });

  test.each([
    ['huggingface', 'zai-org/GLM-4.7:novita', 'zai-org/GLM-4.7'],
    ['huggingface', 'openai/gpt-oss-120b:fireworks-ai', 'openai/gpt-oss-120b'],
    ['openrouter', 'anthropic/claude-sonnet-4.5:thinking', 'anthropic/claude-sonnet-4.5'],
  ])('%s %s costs about the same', (vendor, name, id) => {
    const known = cataloguePrice(vendor, id)!;
    expect(known.input).toBeGreaterThan(0);
    expect(cataloguePrice(vendor, name)).toEqual({ ...known, source: 'family' });
  });

  test.each([
    ['zai-org/GLM-4.7:fireworks-ai', 'zai-org/GLM-4.7'],
    ['moonshotai/Kimi-K2-Instruct-0905:hf-inference', 'moonshotai/Kimi-K2-Instruct-0905'],
    ['gpt-oss:120b-cloud', 'openai/gpt-oss-120b'],
    ['gpt-oss:20b', 'openai/gpt-oss-20b'],
    ['glm-4.6:cloud', 'glm-4.6'],
    ['qwen3:8b-q4_K_M', 'qwen3-8b'],
  ])('%s has the facts of %s', (name, id) => {
    const known = modelFacts(undefined, id);
    expect(known?.context).toBeGreaterThan(0);
    expect(modelFacts(undefined, name)).toEqual(known);
  });

  test('but not one that its host gives away, or sells by another name', () => {
    for (const model of ['z-ai/glm-9:free', 'openai/gpt-5:free', 'openai/gpt-5:batch'])
      expect(cataloguePrice('openrouter', model)).toBeUndefined();
  });
});

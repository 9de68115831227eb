/** The model catalogue: its data, the names by which models are found, and prices. */

import { describe, expect, test } from 'bun:test';
import { catalogueText } from '../../../scripts/catalogue.ts';
import { modelPrice } from '../../../src/config/sections/prices.ts';
import {
  catalogueDate,
  factsOf,
  familyFacts,
  modelFacts,
  priceOf,
} from '../../../src/config/vendors/catalogue.ts';
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
    expect(modelFacts('alibaba', 'qwen-max')).toMatchObject({ context: 32_768, output: 8192 });
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
    expect(long.tiers).toHaveLength(1);
    expect(long.tiers[0]!.above).toBe(200_000);
    expect(long.tiers[0]!.rates.input).toBeGreaterThan(long.input);
    expect(priceOf(at('alibaba'), 'qwen-plus')).toMatchObject({ output: 1.2, reasoning: 4 });
    expect(priceOf(at('google'), 'gemini-2.5-flash')).toMatchObject({ inputAudio: 1 });
  });

  test('a price of zero is a price', () => {
    expect(priceOf(at('zai-coding-plan'), 'glm-4.7')).toMatchObject({ input: 0, output: 0 });
  });
});

describe('the data', () => {
  test('carry their day', () => {
    expect(catalogueDate()).toMatch(/^20\d\d-\d\d-\d\d$/);
  });

  const model = {
    name: 'One',
    limit: { context: 1000, output: 100 },
    modalities: { input: ['text', 'image'], output: ['text'] },
    tool_call: true,
    reasoning: false,
    cost: { input: 1, output: 2, cache_read: 0.5, context_over_200k: { input: 2, output: 4 } },
  };

  test('are made of the source as it is published, and of an extract', () => {
    const published = catalogueText(
      { openai: { id: 'openai', models: { one: model } }, unknown: { models: {} } },
      '2026-01-02',
    );
    const { limit, modalities, tool_call, cost, ...rest } = model;
    const { context_over_200k: tier, ...prices } = cost;
    const extract = catalogueText({
      source: 'state of 2026-01-02',
      providers: {
        openai: {
          one: {
            ...rest,
            ...limit,
            input: modalities.input,
            tools: tool_call,
            cost: { ...prices, tiers: [{ tier: { size: 200_000 }, ...tier }] },
          },
        },
      },
    });
    expect(published).toBe(extract);
    expect(published.split('\n').slice(1)).toEqual([
      '"openai"',
      '["one","One",1000,100,"t","text image",{"input":1,"output":2,"cached":0.5,"tiers":[{"above":200000,"input":2,"output":4}]}]',
      '',
    ]);
  });

  test('need a day and a vendor', () => {
    expect(() => catalogueText({ openai: { models: {} } })).toThrow('date');
    expect(() => catalogueText({ nobody: { models: {} } }, '2026-01-02')).toThrow('vendors');
  });
});

describe('a model that is newer than the catalogue', () => {
  test('has the lowest limits of its family', () => {
    expect(familyFacts('o4-huge')).toEqual({ context: 200_000, output: 100_000 });
    expect(familyFacts('zai/glm-4.7-experimental')).toEqual({ context: 204_800, output: 131_072 });
  });

  test('of an unknown family has none', () => {
    expect(familyFacts('nothing-at-all')).toBeUndefined();
    expect(familyFacts('model')).toBeUndefined();
  });
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

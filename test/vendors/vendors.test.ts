/** The vendors, a row each: facts of single models, and what their errors mean; and no fact that is unknown or contradictory. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import type { ErrorKind } from '../../src/conversation/errors.ts';
import type { Facts } from '../../src/conversation/profile-facts.ts';
import { FAMILIES } from '../../src/features/leaked-calls/index.ts';
import { profileFor } from '../../src/routing/targets.ts';
import { vendorError } from '../../src/upstream/vendor-error.ts';
import {
  CATALOGUE_VENDORS,
  catalogueVendor,
  PRESETS,
  PROFILES,
  VENDORS,
} from '../../src/vendors/index.ts';

interface Row {
  /** By `PROFILE/MODEL`; facts that must be left out are undefined. */
  readonly models?: Readonly<Record<string, Facts>>;
  /** As the vendor sends them. */
  readonly errors?: readonly (readonly [status: number, body: unknown, kind: ErrorKind])[];
}

const error = (message: string, code?: string) => ({ error: { message, code } });

/** By `name` of the vendor. */
const TABLE: Readonly<Record<string, Row>> = {
  Anthropic: {
    models: {
      'anthropic/claude-sonnet-4-5-20250929': {
        adaptiveThinking: false,
        budgetThinking: undefined,
      },
      'anthropic/claude-sonnet-4-20250514': { adaptiveThinking: false, systemTurns: false },
      'anthropic/claude-opus-4-6': {
        adaptiveThinking: true,
        budgetThinking: undefined,
        systemTurns: false,
      },
      'anthropic/claude-opus-4-1-20250805': { temperatureWithTopP: false, systemTurns: false },
      'anthropic/claude-sonnet-4-5': { temperatureWithTopP: false, systemTurns: false },
      'anthropic/claude-haiku-4-5-20251001': { temperatureWithTopP: false, systemTurns: false },
      'anthropic/claude-sonnet-4-6': { temperatureWithTopP: false, systemTurns: false },
      'anthropic/claude-opus-4-20250514': { temperatureWithTopP: undefined },
      'anthropic/claude-3-5-haiku-20241022': { temperatureWithTopP: undefined },
      'anthropic/claude-haiku-5-5': { systemTurns: true, budgetThinking: false },
      'anthropic/claude-opus-4-7': { adaptiveThinking: true, budgetThinking: false },
      'anthropic/claude-fable-5': { toolChoices: ['auto', 'none'] },
    },
    errors: [[400, error('Your credit balance is too low to access the API.'), 'billing']],
  },
  OpenAI: {
    models: {
      'openai/gpt-4o': { thinkingDefault: 'off', reasoningParam: 'none', maxStops: 4 },
      'openai/o3-mini': { thinkingDefault: 'always', samplingWhileThinking: false },
      'openai/gpt-5': { thinkingDefault: 'always', maxStops: 0 },
      'openai/gpt-5-mini-2025-08-07': { thinkingDefault: 'always' },
      'openai/gpt-5.1': { thinkingDefault: 'off', efforts: undefined },
      'openai/gpt-5.1-codex-max': { thinkingDefault: 'always', efforts: undefined },
      'openai/gpt-5.4-pro': { thinkingDefault: 'always' },
      'openai/gpt-5.6': { thinkingDefault: 'on' },
    },
    errors: [[429, error('You exceeded your current quota.', 'insufficient_quota'), 'quota']],
  },
  Zhipu: {
    models: {
      'glm/glm-4.7': { thinkingDefault: 'on', images: false, shortToolResults: true },
      'glm/glm-4.5v': { images: true },
      'zai/glm-5.3': { thinkingDefault: 'always', reasoningParam: 'reasoning_effort' },
      'glm-coding/glm-4.6': { thinkingDefault: 'on' },
      'glm-anthropic/glm-4.7': { shortToolResults: undefined, images: false },
    },
    errors: [
      [429, error('您的账户已欠费，请充值后重试。', '1113'), 'billing'],
      [400, error('模型不存在，请检查模型代码。'), 'not_found'],
    ],
  },
  DeepSeek: {
    models: {
      'deepseek/deepseek-chat': { thinkingDefault: 'off', reasoningReplay: undefined },
      'deepseek/deepseek-v4-flash': { thinkingDefault: 'on', reasoningReplay: 'all' },
      'deepseek-beta/deepseek-v4-flash': { thinkingDefault: 'on', prefill: 'prefix' },
    },
    errors: [[400, error('Model Not Exist'), 'not_found']],
  },
  Kimi: {
    models: {
      'kimi/kimi-k2-0905-preview': { thinkingDefault: undefined, images: false },
      'kimi/kimi-k2-thinking-turbo': { thinkingDefault: 'always', reasoningReplay: 'calls' },
      'kimi-anthropic/kimi-k3': { toolReferences: false },
      'kimi/kimi-k2.5': { thinkingDefault: 'on', images: undefined, emptyReplies: false },
    },
    errors: [
      [
        400,
        error('The request was rejected because it was considered high risk'),
        'content_filter',
      ],
    ],
  },
  DashScope: {
    models: {
      'qwen/qwen3-max': { thinkingDefault: 'off', images: false },
      'qwen/qwen3-32b': { thinkingDefault: 'on' },
      'qwen/qwen3-235b-a22b-instruct-2507': { thinkingDefault: 'off' },
      'qwen/qwen3-next-80b-a3b-thinking': { thinkingDefault: 'always' },
      'qwen/qwen3-vl-plus': { images: true },
    },
    errors: [
      [
        400,
        error('Access denied, please make sure your account is in good standing.', 'Arrearage'),
        'billing',
      ],
    ],
  },
  MiniMax: {
    models: {
      'minimax/MiniMax-M2.5': { thinkingDefault: 'always', toolChoices: ['auto', 'none'] },
    },
    errors: [
      [200, { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } }, 'billing'],
      [500, { base_resp: { status_code: 1002, status_msg: 'rate limit triggered' } }, 'rate_limit'],
    ],
  },
  Volcengine: {
    models: { 'doubao/doubao-seed-1-8-251228': { thinkingDefault: 'on', developerRole: false } },
    errors: [
      [403, error('The request failed because your account has an overdue balance.'), 'billing'],
      [
        400,
        error('Total tokens of image and text exceed max message tokens.', 'InvalidParameter'),
        'context_overflow',
      ],
    ],
  },
  Gemini: {
    models: {
      'gemini/gemini-2.5-flash-lite': { thinkingDefault: 'off' },
      'gemini/gemini-3-pro-preview': { thinkingDefault: 'always' },
      'google-gemini/gemini-2.0-flash': { reasoningParam: 'none', formatWithFunctions: false },
      'google-gemini/gemini-3-pro-preview': { thinkingLevels: true, callSignatures: true },
    },
    errors: [[400, error('API key not valid. Please pass a valid API key.'), 'authentication']],
  },
  xAI: {
    models: {
      'xai/grok-4-fast-non-reasoning': { thinkingDefault: 'off', dropParams: [] },
      'xai/grok-3': { reasoningParam: 'none' },
    },
    errors: [
      [400, error('Incorrect API key provided: xa***. The API key is disabled.'), 'authentication'],
    ],
  },
  Mistral: {
    models: { 'mistral/codestral-latest': { maxOutput: 256_000, callIds: 'nine-alphanumeric' } },
    errors: [[429, error('Service tier capacity exceeded for this model.'), 'overloaded']],
  },
  Cohere: {
    errors: [
      [400, { message: 'too many tokens: size limit exceeded by 10 tokens' }, 'context_overflow'],
    ],
  },
  Groq: {
    models: {
      'groq/llama-3.3-70b-versatile': { reasoningParam: 'none', images: false },
      'groq/openai/gpt-oss-120b': { thinkingDefault: 'always' },
    },
    errors: [[400, error('The model was decommissioned.', 'model_decommissioned'), 'not_found']],
  },
  OpenRouter: {
    models: {
      'openrouter/anthropic/claude-sonnet-4.5': { cacheMarks: true },
      'openrouter/openai/gpt-5': { cacheMarks: undefined },
    },
    errors: [[402, error('This request requires more credits'), 'billing']],
  },
  Together: {
    models: { 'together/mistralai/Mistral-7B-Instruct': { userAfterTool: false } },
    errors: [[402, error('Credit limit exceeded'), 'billing']],
  },
  SiliconFlow: {
    models: {
      'siliconflow/deepseek-ai/DeepSeek-V4-Flash': { reasoningParam: 'reasoning_effort' },
      'siliconflow/Qwen/Qwen3-32B': { reasoningParam: 'enable_thinking' },
    },
    errors: [
      [
        400,
        { code: 20012, message: 'Model does not exist. Please check it carefully.', data: null },
        'not_found',
      ],
    ],
  },
  Azure: {
    models: {
      'azure/gpt-4o': { documents: false, maxTokensParam: 'max_completion_tokens' },
      'azure-responses/gpt-5.4': {
        documents: undefined,
        storesResponses: true,
        thinkingDefault: 'off',
      },
    },
    errors: [[404, error('The API deployment for this resource does not exist.'), 'not_found']],
  },
  'Vertex AI': {
    models: { 'vertex-claude/claude-sonnet-4-5@20250929': { adaptiveThinking: false } },
    errors: [[404, error('Publisher Model `p/claude-x` was not found.'), 'not_found']],
  },
  Bedrock: {
    models: {
      'bedrock-claude/us.anthropic.claude-opus-4-7-v1:0': {
        betas: ['interleaved-thinking-2025-05-14'],
      },
      'bedrock-claude/anthropic.claude-sonnet-4-5-20250929-v1:0': { adaptiveThinking: false },
    },
    errors: [[400, { message: 'The provided model identifier is invalid.' }, 'not_found']],
  },
  NVIDIA: { errors: [[410, error('The model has reached its end of life.'), 'not_found']] },
  'Hugging Face': { errors: [[403, { error: 'Access to a gated repo' }, 'not_found']] },
  Ollama: {
    models: {
      'ollama/llama3.2': { reasoningParam: 'none' },
      'ollama/qwen3': { reasoningParam: undefined },
    },
    errors: [[404, { error: 'model "x" not found, try pulling it first' }, 'not_found']],
  },
  'LM Studio': {
    models: { 'lmstudio/any': { toolChoices: ['auto', 'none', 'required'] } },
    errors: [[400, { error: 'No models loaded. Please load a model.' }, 'not_found']],
  },
  'llama.cpp': {
    models: { 'llamacpp/any': { countTokens: true } },
    errors: [[503, error('Loading model'), 'overloaded']],
  },
  vLLM: {
    models: {
      'vllm/devstral-small': { callIds: 'nine-alphanumeric' },
      'vllm/moonshotai/Kimi-K2.6': { callIds: 'functions' },
    },
    errors: [
      [
        400,
        error('The prompt (length 9000) is longer than the maximum model length'),
        'context_overflow',
      ],
    ],
  },
  SGLang: {
    models: { 'sglang/any': { developerRole: false, sameRoleTurns: false } },
    errors: [
      [400, error("The input is longer than the model's context length"), 'context_overflow'],
    ],
  },
};

const chat = CODECS['openai-chat'];
const NONE = new Headers();

describe.each(Object.entries(TABLE))('%s', (name, { models = {}, errors = [] }) => {
  const vendor = VENDORS.find((one) => one.name === name)!;

  test.each(Object.entries(models))('%s has its facts', (of, facts) => {
    const [, profile = '', model = ''] = /^([^/]+)\/(.+)$/.exec(of) ?? [];
    expect(vendor.profiles).toHaveProperty([profile]);
    const known = profileFor(PROFILES[profile]!, model);
    for (const [key, value] of Object.entries(facts)) {
      expect([key, known[key as keyof Facts]]).toEqual([key, value]);
    }
  });

  test.each(errors)('%i %j is %s', (status, body, kind) => {
    const read = chat.decodeError(status, JSON.stringify(body), NONE);
    expect(read.kind).toBe(kind);
    for (const profile of Object.keys(vendor.profiles ?? {})) {
      expect(vendorError(PROFILES[profile]!, read).kind).toBe(kind);
    }
  });
});

describe('the vendors', () => {
  test.each(VENDORS.map((vendor) => [vendor.name, vendor] as const))(
    '%s: what it says is shown by its row, and its names are found',
    (name, { presets = {}, profiles = {}, words = [], hosts = [] }) => {
      const row = TABLE[name] ?? {};
      const own = (profile: string) =>
        Object.keys(row.models ?? {}).some((model) => model.startsWith(`${profile}/`));
      const telling = Object.entries(profiles).filter(([, { models }]) => models !== undefined);
      if (telling.length > 0) expect(telling.some(([profile]) => own(profile))).toBe(true);
      if (words.length > 0) expect(row.errors ?? []).not.toEqual([]);
      for (const { source, ...groups } of words) {
        expect(source).toMatch(/^(https:\/\/|github\.com\/)\S/);
        expect(Object.values(groups).flat()).not.toEqual([]);
      }
      for (const [preset, { endpoints, profile, catalogue, local }] of Object.entries(presets)) {
        expect(PROFILES).toHaveProperty([profile]);
        expect(PRESETS).toHaveProperty([preset]);
        for (const { baseUrl } of Object.values(endpoints)) {
          expect(baseUrl).toMatch(local === true ? /^http:\/\/127\.0\.0\.1:/ : /^https:\/\//);
          if (catalogue !== undefined) expect(catalogueVendor(undefined, baseUrl)).toBeDefined();
        }
      }
      for (const { catalogue } of [...Object.values(presets), ...hosts]) {
        if (catalogue !== undefined) expect(CATALOGUE_VENDORS).toContain(catalogue);
      }
    },
  );

  test('no two have the same name of anything', () => {
    const names = VENDORS.map(({ name }) => name);
    const presets = VENDORS.flatMap((vendor) => [
      ...Object.keys(vendor.presets ?? {}),
      ...Object.values(vendor.presets ?? {}).flatMap(({ aliases = [] }) => aliases),
    ]);
    const profiles = VENDORS.flatMap((vendor) => Object.keys(vendor.profiles ?? {}));
    const codes = VENDORS.flatMap((vendor) => Object.keys(vendor.codes ?? {}));
    for (const all of [names, presets, profiles, codes]) {
      expect(all.filter((one, at) => all.indexOf(one) !== at)).toEqual([]);
    }
  });
});

describe('the built-in profiles', () => {
  test('no profile contradicts itself', () => {
    for (const [name, facts] of Object.entries(PROFILES)) {
      for (const one of [facts, ...Object.values(facts.models ?? {})] as Facts[]) {
        const always = one.toolChoices ?? facts.toolChoices;
        for (const choice of one.thinkingToolChoices ?? []) {
          if (always !== undefined)
            expect([name, always]).toEqual([name, expect.arrayContaining([choice])]);
        }
        for (const range of [one.temperature, one.topP]) {
          if (range !== undefined) expect([name, range.min < range.max]).toEqual([name, true]);
        }
        for (const family of one.leakFamilies ?? []) expect(FAMILIES).toContain(family);
        for (const code of Object.keys(one.errors ?? {})) expect(code).not.toBe('');
      }
    }
  });

  test('an unknown fact changes nothing', () => {
    expect(PROFILES.none).toEqual({ name: 'none' });
  });
});

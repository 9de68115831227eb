/** The built-in profiles: facts of single models, and no fact that is unknown or contradictory. */

import { describe, expect, test } from 'bun:test';
import type { Facts } from '../../../src/config/vendors/profile-schema.ts';
import { PROFILES } from '../../../src/config/vendors/profiles.ts';
import { FAMILIES } from '../../../src/features/leaked-calls/index.ts';
import { profileFor } from '../../../src/routing/targets.ts';

const MODELS: readonly (readonly [profile: string, model: string, facts: Partial<Facts>])[] = [
  ['openai', 'gpt-4o', { thinkingDefault: 'off', reasoningParam: 'none', maxStops: 4 }],
  ['openai', 'o3-mini', { thinkingDefault: 'always', samplingWhileThinking: false }],
  ['openai', 'gpt-5', { thinkingDefault: 'always', maxStops: 0 }],
  ['openai', 'gpt-5-mini-2025-08-07', { thinkingDefault: 'always' }],
  ['openai', 'gpt-5.1', { thinkingDefault: 'off', efforts: undefined }],
  ['openai', 'gpt-5.1-codex-max', { thinkingDefault: 'always', efforts: undefined }],
  ['openai', 'gpt-5.4-pro', { thinkingDefault: 'always' }],
  ['openai', 'gpt-5.6', { thinkingDefault: 'on' }],
  ['azure', 'gpt-4o', { documents: false, maxTokensParam: 'max_completion_tokens' }],
  [
    'anthropic',
    'claude-sonnet-4-5-20250929',
    { adaptiveThinking: false, budgetThinking: undefined },
  ],
  ['anthropic', 'claude-sonnet-4-20250514', { adaptiveThinking: false, systemTurns: false }],
  [
    'anthropic',
    'claude-opus-4-6',
    { adaptiveThinking: true, budgetThinking: undefined, systemTurns: false },
  ],
  ['anthropic', 'claude-opus-4-1-20250805', { temperatureWithTopP: false, systemTurns: false }],
  ['anthropic', 'claude-sonnet-4-5', { temperatureWithTopP: false, systemTurns: false }],
  ['anthropic', 'claude-haiku-4-5-20251001', { temperatureWithTopP: false, systemTurns: false }],
  ['anthropic', 'claude-sonnet-4-6', { temperatureWithTopP: false, systemTurns: false }],
  ['anthropic', 'claude-opus-4-20250514', { temperatureWithTopP: undefined }],
  ['anthropic', 'claude-3-5-haiku-20241022', { temperatureWithTopP: undefined }],
  ['anthropic', 'claude-haiku-5-5', { systemTurns: true, budgetThinking: false }],
  ['anthropic', 'claude-opus-4-7', { adaptiveThinking: true, budgetThinking: false }],
  ['anthropic', 'claude-fable-5', { toolChoices: ['auto', 'none'] }],
  ['glm', 'glm-4.7', { thinkingDefault: 'on', images: false, shortToolResults: true }],
  ['glm', 'glm-4.5v', { images: true }],
  ['zai', 'glm-5.3', { thinkingDefault: 'always', reasoningParam: 'reasoning_effort' }],
  ['glm-coding', 'glm-4.6', { thinkingDefault: 'on' }],
  ['glm-anthropic', 'glm-4.7', { shortToolResults: undefined, images: false }],
  ['deepseek', 'deepseek-chat', { thinkingDefault: 'off', reasoningReplay: undefined }],
  ['deepseek', 'deepseek-v4-flash', { thinkingDefault: 'on', reasoningReplay: 'all' }],
  ['kimi', 'kimi-k2-0905-preview', { thinkingDefault: undefined, images: false }],
  ['kimi', 'kimi-k2-thinking-turbo', { thinkingDefault: 'always', reasoningReplay: 'calls' }],
  ['kimi', 'kimi-k2.5', { thinkingDefault: 'on', images: undefined }],
  ['qwen', 'qwen3-max', { thinkingDefault: 'off', images: false }],
  ['qwen', 'qwen3-32b', { thinkingDefault: 'on' }],
  ['qwen', 'qwen3-235b-a22b-instruct-2507', { thinkingDefault: 'off' }],
  ['qwen', 'qwen3-next-80b-a3b-thinking', { thinkingDefault: 'always' }],
  ['qwen', 'qwen3-vl-plus', { images: true }],
  ['xai', 'grok-4-fast-non-reasoning', { thinkingDefault: 'off', dropParams: [] }],
  ['gemini', 'gemini-2.5-flash-lite', { thinkingDefault: 'off' }],
  ['gemini', 'gemini-3-pro-preview', { thinkingDefault: 'always' }],
];

describe('the built-in profiles', () => {
  for (const [profile, model, facts] of MODELS) {
    test(`${profile}/${model}: ${Object.keys(facts).join(', ')}`, () => {
      const known = profileFor(PROFILES[profile]!, model);
      for (const [key, value] of Object.entries(facts)) {
        expect([key, known[key as keyof Facts]]).toEqual([key, value] as never);
      }
    });
  }

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

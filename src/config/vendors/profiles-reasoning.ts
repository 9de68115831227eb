/** Vendor facts of GLM, DeepSeek, Kimi, Qwen and MiniMax, whose models reason and want their reasoning back. */

import {
  MINIMAX_ERRORS,
  QWEN_ERRORS,
  ZHIPU_ERRORS,
} from '../../conversation/vendor-errors/codes.ts';
import type { ProfileFacts } from './profile-schema.ts';

const TEXT_ONLY = { images: false, documents: false } as const;
const SEES = { images: true } as const;

/** These vendors' endpoints for the Messages protocol: made for agents, lenient, without hosted tools. */
const anthropicForm = {
  systemTurns: false,
  adaptiveThinking: false,
  anySignature: true,
} as const;

const glm = {
  maxTokensParam: 'max_tokens',
  dropParams: ['frequency_penalty', 'presence_penalty', 'logprobs', 'top_logprobs', 'n', 'seed'],
  // Both intervals are open at 0.
  temperature: { min: 0.01, max: 1 },
  topP: { min: 0.01, max: 1 },
  maxStops: 1,
  // Usage always comes in the last chunk.
  streamUsage: false,
  parallelToolsParam: false,
  strictTools: false,
  jsonSchema: false,
  toolChoices: ['auto'],
  developerRole: false,
  needsUserTurn: true,
  // 500 "Operation failed" when the last tool result is a large one.
  shortToolResults: true,
  reasoningField: 'reasoning_content',
  reasoningParam: 'thinking',
  thinkingDefault: 'on',
  errors: ZHIPU_ERRORS,
  ...TEXT_ONLY,
  models: {
    'glm-*v': SEES,
    'glm-*v-*': SEES,
    'glm-4': { thinkingDefault: 'off' },
    'glm-4-*': { thinkingDefault: 'off' },
    'glm-5.2*': { reasoningParam: 'reasoning_effort' },
    'glm-5.3*': {
      reasoningParam: 'reasoning_effort',
      thinkingDefault: 'always',
      efforts: ['low', 'high', 'max'],
    },
  },
} as const;

const deepseekModels = {
  'deepseek-v4*': {
    ...SEES,
    thinkingDefault: 'on',
    efforts: ['high', 'max'],
    reasoningReplay: 'all',
  },
  'deepseek-reasoner*': { thinkingDefault: 'always', reasoningReplay: 'calls' },
} as const;

/** Sampling settings are fixed while these models reason; any other value is an error. */
const kimiThinks = {
  thinkingDefault: 'on',
  reasoningReplay: 'calls',
  dropParams: ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty', 'n'],
} as const;

export const REASONING_PROFILES: Readonly<Record<string, Omit<ProfileFacts, 'name'>>> = {
  glm,
  // The coding plan and Z.AI's own address differ in prices and limits, not in what they accept.
  'glm-coding': glm,
  zai: glm,
  'glm-anthropic': {
    ...anthropicForm,
    ...TEXT_ONLY,
    temperature: glm.temperature,
    errors: ZHIPU_ERRORS,
    models: { 'glm-*v': SEES, 'glm-*v-*': SEES },
  },
  deepseek: {
    maxTokensParam: 'max_tokens',
    temperature: { min: 0, max: 2 },
    maxStops: 16,
    jsonSchema: false,
    developerRole: false,
    thinkingToolChoices: ['auto', 'none'],
    reasoningField: 'reasoning_content',
    reasoningParam: 'thinking',
    thinkingDefault: 'off',
    ...TEXT_ONLY,
    models: deepseekModels,
  },
  'deepseek-anthropic': { ...anthropicForm, ...TEXT_ONLY, models: { 'deepseek-v4*': SEES } },
  kimi: {
    maxTokensParam: 'max_tokens',
    temperature: { min: 0, max: 1 },
    maxStops: 5,
    toolChoices: ['auto', 'none'],
    developerRole: false,
    reasoningField: 'reasoning_content',
    reasoningParam: 'thinking',
    documents: false,
    models: {
      'kimi-k2-*': { images: false },
      'kimi-k2-thinking*': { thinkingDefault: 'always', reasoningReplay: 'calls' },
      'kimi-k2.?*': kimiThinks,
      'kimi-k3*': kimiThinks,
      'kimi-thinking*': { thinkingDefault: 'always', reasoningReplay: 'calls' },
      'kimi-for-coding*': { thinkingDefault: 'on', reasoningReplay: 'calls' },
      'moonshot-v1-*': { images: false },
      'moonshot-v1-*vision*': SEES,
    },
  },
  'kimi-anthropic': {
    ...anthropicForm,
    documents: false,
    models: { 'kimi-k2-*': { images: false } },
  },
  qwen: {
    maxTokensParam: 'max_tokens',
    // Open at 2 and at 0.
    temperature: { min: 0, max: 1.99 },
    topP: { min: 0.01, max: 1 },
    thinkingToolChoices: ['auto', 'none'],
    strictTools: false,
    jsonSchema: false,
    developerRole: false,
    reasoningField: 'reasoning_content',
    reasoningParam: 'enable_thinking',
    // The open models reason unless it is switched off, the others only if it is switched on.
    thinkingDefault: 'off',
    errors: QWEN_ERRORS,
    ...TEXT_ONLY,
    models: {
      'qwen3-*b': { thinkingDefault: 'on' },
      'qwen3-*-a*b': { thinkingDefault: 'on' },
      'qwen3.5*': { ...SEES, thinkingDefault: 'on' },
      '*vl*': SEES,
      '*omni*': SEES,
      'qwen3-coder*': { thinkingDefault: 'off', toolChoices: ['auto', 'none', 'tool'] },
      '*-instruct*': { thinkingDefault: 'off' },
      '*-thinking*': { thinkingDefault: 'always' },
      'qwq*': { thinkingDefault: 'always' },
      'qvq*': { ...SEES, thinkingDefault: 'always' },
    },
  },
  minimax: {
    maxTokensParam: 'max_tokens',
    temperature: { min: 0.01, max: 1 },
    toolChoices: ['auto', 'none'],
    jsonSchema: false,
    developerRole: false,
    reasoningParam: 'none',
    errors: MINIMAX_ERRORS,
    ...TEXT_ONLY,
    models: { 'MiniMax-M2*': { thinkingDefault: 'always' } },
  },
  'minimax-anthropic': {
    ...anthropicForm,
    ...TEXT_ONLY,
    temperature: { min: 0.01, max: 1 },
    errors: MINIMAX_ERRORS,
  },
};

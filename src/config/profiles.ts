/** The first table of vendor facts, as data: where a vendor's API differs from that of an upstream of unknown make. */

// A key is dropped only where the vendor refuses it; what it merely ignores goes out as the client
// wrote it.

import type { ProfileFacts } from './profile-schema.ts';

/** Body keys of OpenAI's own services, for vendors that answer 400 to what they do not know. */
const OPENAI_ONLY = [
  'store',
  'metadata',
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'safety_identifier',
  'verbosity',
  'prediction',
  'modalities',
  'web_search_options',
] as const;

const TEXT_ONLY = { images: false, documents: false } as const;
const SEES = { images: true } as const;

const openaiChat = {
  maxTokensParam: 'max_completion_tokens',
  developerRole: true,
  reasoningField: 'none',
  reasoningParam: 'reasoning_effort',
} as const;

const glm = {
  maxTokensParam: 'max_tokens',
  dropParams: ['frequency_penalty', 'presence_penalty', 'logprobs', 'top_logprobs', 'n', 'seed'],
  // Usage comes unasked, in the chunk that finishes.
  streamUsage: false,
  parallelToolsParam: false,
  strictTools: false,
  jsonSchema: false,
  toolChoices: ['auto'],
  reasoningField: 'reasoning_content',
  reasoningParam: 'thinking',
  ...TEXT_ONLY,
  models: { 'glm-*v': SEES, 'glm-*v-*': SEES },
} as const;

/** Endpoints in Anthropic's form that other vendors offer: made for agents, lenient, without hosted tools. */
const anthropicForm = { systemTurns: false, adaptiveThinking: false } as const;

const TABLE: Readonly<Record<string, Omit<ProfileFacts, 'name'>>> = {
  openai: {
    ...openaiChat,
    storesResponses: true,
    hostedTools: [
      'web_search',
      'file_search',
      'code_execution',
      'image_generation',
      'computer_use',
      'mcp',
      'tool_search',
      'shell',
      'local_shell',
      'apply_patch',
    ],
  },
  'openai-chat': { ...openaiChat },
  // No `file` parts in Azure's Chat.
  azure: { ...openaiChat, documents: false },
  anthropic: {
    adaptiveThinking: true,
    systemTurns: true,
    defaultMaxTokens: 32_000,
    hostedTools: [
      'web_search',
      'web_fetch',
      'code_execution',
      'tool_search',
      'memory',
      'computer',
      'bash',
      'text_editor',
      'mcp',
    ],
    // Adaptive thinking and system turns came with the generation of Opus 4.6.
    models: {
      'claude-*-4-5*': { adaptiveThinking: false, systemTurns: false },
      'claude-*-4-1*': { adaptiveThinking: false, systemTurns: false },
      'claude-*-4-0*': { adaptiveThinking: false, systemTurns: false },
      'claude-*-4-20*': { adaptiveThinking: false, systemTurns: false },
      'claude-3*': { adaptiveThinking: false, systemTurns: false, defaultMaxTokens: 8192 },
      'claude-3-opus*': { defaultMaxTokens: 4096 },
      'claude-3-haiku*': { defaultMaxTokens: 4096 },
    },
  },
  glm,
  'glm-anthropic': { ...anthropicForm, ...TEXT_ONLY, models: glm.models },
  deepseek: {
    maxTokensParam: 'max_tokens',
    jsonSchema: false,
    // Required and named choices are refused while thinking, which is on by default.
    toolChoices: ['auto', 'none'],
    reasoningField: 'reasoning_content',
    reasoningParam: 'thinking',
    ...TEXT_ONLY,
    models: { 'deepseek-v4*': SEES },
  },
  'deepseek-anthropic': { ...anthropicForm, ...TEXT_ONLY, models: { 'deepseek-v4*': SEES } },
  kimi: {
    maxTokensParam: 'max_tokens',
    toolChoices: ['auto', 'none'],
    reasoningField: 'reasoning_content',
    reasoningParam: 'thinking',
    documents: false,
    models: {
      'kimi-k2-*': { images: false },
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
    toolChoices: ['auto', 'none'],
    strictTools: false,
    jsonSchema: false,
    reasoningField: 'reasoning_content',
    reasoningParam: 'enable_thinking',
    ...TEXT_ONLY,
    models: { '*vl*': SEES, '*omni*': SEES, 'qvq*': SEES, 'qwen3.5*': SEES },
  },
  minimax: {
    maxTokensParam: 'max_tokens',
    toolChoices: ['auto', 'none'],
    jsonSchema: false,
    reasoningParam: 'none',
    ...TEXT_ONLY,
  },
  'minimax-anthropic': { ...anthropicForm, ...TEXT_ONLY },
  gemini: {
    dropParams: [...OPENAI_ONLY, 'logit_bias', 'user'],
    parallelToolsParam: false,
    strictTools: false,
    reasoningField: 'none',
    reasoningParam: 'reasoning_effort',
    documents: false,
  },
  xai: {
    reasoningField: 'reasoning_content',
    models: {
      // Reasoning models refuse these; the first of them takes no effort either.
      'grok-4*': { dropParams: ['presence_penalty', 'frequency_penalty', 'stop'] },
      '*non-reasoning*': { dropParams: [], reasoningParam: 'none' },
      'grok-4': { reasoningParam: 'none' },
      'grok-4-0709': { reasoningParam: 'none' },
    },
  },
  groq: {
    dropParams: ['logit_bias', 'logprobs', 'top_logprobs', 'n'],
    reasoningField: 'reasoning',
    ...TEXT_ONLY,
    models: { '*llama-4*': SEES },
  },
  mistral: {
    maxTokensParam: 'max_tokens',
    dropParams: [...OPENAI_ONLY, 'logit_bias', 'logprobs', 'top_logprobs', 'user'],
    renameParams: { seed: 'random_seed' },
    streamUsage: false,
    reasoningField: 'none',
    reasoningParam: 'none',
    documents: false,
  },
  openrouter: { reasoningField: 'reasoning', reasoningParam: 'reasoning' },
  together: { reasoningField: 'reasoning', documents: false },
  ollama: {
    strictTools: false,
    reasoningField: 'reasoning',
    documents: false,
  },
  lmstudio: {
    // Only the words, no object naming a tool.
    toolChoices: ['auto', 'none', 'required'],
    reasoningField: 'reasoning_content',
    documents: false,
  },
  llamacpp: { reasoningField: 'reasoning_content', documents: false },
  vllm: { reasoningField: 'reasoning', documents: false },
  sglang: { reasoningField: 'reasoning_content', documents: false },
};

/** The built-in profiles by name; `none` knows nothing. */
export const PROFILES: Readonly<Record<string, ProfileFacts>> = Object.fromEntries(
  [['none', {}] as const, ...Object.entries(TABLE)].map(([name, facts]) => [
    name,
    { ...facts, name },
  ]),
);

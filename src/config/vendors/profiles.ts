/** The built-in vendor profiles, as data: where a vendor's API differs from that of an unknown vendor. */

// A key is dropped only if the vendor refuses it. A key that it ignores is sent as the client wrote it.

import { GROQ_ERRORS, TEMPLATE_MESSAGES } from '../../conversation/vendor-errors/codes.ts';
import { NEVER_REASONS, type ProfileFacts } from './profile-schema.ts';
import { ANTHROPIC_PROFILES } from './profiles-anthropic.ts';
import { OPENAI_PROFILES } from './profiles-openai.ts';
import { REASONING_PROFILES } from './profiles-reasoning.ts';

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

/**
 * Mistral's: "Unexpected role 'user' after role 'tool'", and ids of exactly nine letters and digits.
 */
const mistral = { userAfterTool: false, callIds: 'nine-alphanumeric' } as const;

/**
 * Servers that apply a model's own chat template. Templates know the roles system, user, assistant and
 * tool; many want the system message first ("System message must be at the beginning") and alternating
 * roles ("roles must alternate"). No template refuses messages in that form. What only some models'
 * templates refuse is listed by model name, since every server ships the same templates.
 */
const template = {
  developerRole: false,
  systemTurns: false,
  sameRoleTurns: false,
  errorWords: TEMPLATE_MESSAGES,
  models: {
    '*mistral*': mistral,
    '*ministral*': mistral,
    '*mixtral*': mistral,
    '*magistral*': mistral,
    '*devstral*': mistral,
    '*codestral*': mistral,
    '*pixtral*': mistral,
    // "This model only supports single tool-calls at once!"
    '*llama-3*': { parallelCalls: false },
    '*llama3*': { parallelCalls: false },
  },
} as const;

/** xAI's reasoning models refuse these. */
const GROK_REASONS = {
  dropParams: ['presence_penalty', 'frequency_penalty', 'stop'],
  thinkingDefault: 'always',
} as const;

/** Ollama: `"llama3.2" does not support thinking`. */
const OLLAMA_PLAIN = [
  'llama2*',
  'llama3*',
  'codellama*',
  'tinyllama*',
  'mistral*',
  'mixtral*',
  'codestral*',
  'devstral*',
  'gemma',
  'gemma:*',
  'gemma2*',
  'gemma3*',
  'phi3*',
  'phi4',
  'phi4:*',
  'phi4-mini',
  'qwen2*',
  'deepseek-coder*',
  'starcoder*',
];

const TABLE: Readonly<Record<string, Omit<ProfileFacts, 'name'>>> = {
  ...OPENAI_PROFILES,
  ...ANTHROPIC_PROFILES,
  ...REASONING_PROFILES,
  gemini: {
    dropParams: [...OPENAI_ONLY, 'logit_bias', 'user'],
    temperature: { min: 0, max: 2 },
    maxStops: 5,
    parallelToolsParam: false,
    strictTools: false,
    developerRole: false,
    reasoningField: 'none',
    reasoningParam: 'reasoning_effort',
    documents: false,
    models: {
      'gemini-2.5-flash*': {
        thinkingDefault: 'on',
        efforts: ['none', 'minimal', 'low', 'medium', 'high'],
      },
      'gemini-2.5-flash-lite*': { thinkingDefault: 'off' },
      'gemini-2.5-pro*': {
        thinkingDefault: 'always',
        efforts: ['minimal', 'low', 'medium', 'high'],
      },
      'gemini-3*': { thinkingDefault: 'always', efforts: ['minimal', 'low', 'medium', 'high'] },
    },
  },
  // https://ai.google.dev/gemini-api/docs/thinking, …/thought-signatures, …/function-calling
  'google-gemini': {
    temperature: { min: 0, max: 2 },
    maxStops: 5,
    parallelToolsParam: false,
    strictTools: false,
    hostedTools: ['web_search', 'web_fetch', 'code_execution'],
    // Up to 2.5: "Built-in tools ({google_search}) and Function Calling cannot be combined". From 3 on only for those
    // who send all parts of the searches back (…/docs/tool-combination), which only Gemini's own clients can.
    hostedWithFunctions: false,
    models: {
      // "Thinking is not enabled for models/…"
      'gemini-1*': { reasoningParam: 'none', thinkingDefault: 'off', formatWithFunctions: false },
      'gemini-2.0*': { reasoningParam: 'none', thinkingDefault: 'off', formatWithFunctions: false },
      'gemma-*': { reasoningParam: 'none', thinkingDefault: 'off' },
      'gemini-2.5*': {
        // "Function calling with a response mime type: 'application/json' is unsupported"
        formatWithFunctions: false,
        thinkingDefault: 'on',
        efforts: ['none', 'minimal', 'low', 'medium', 'high'],
      },
      'gemini-2.5-flash-lite*': { thinkingDefault: 'off' },
      'gemini-2.5-pro*': {
        thinkingDefault: 'always',
        efforts: ['minimal', 'low', 'medium', 'high'],
      },
      'gemini-3*': {
        thinkingDefault: 'always',
        thinkingLevels: true,
        callSignatures: true,
        imagesInResults: true,
        efforts: ['minimal', 'low', 'medium', 'high'],
      },
    },
  },
  xai: {
    reasoningField: 'reasoning_content',
    temperature: { min: 0, max: 2 },
    maxStops: 4,
    // Only the window limits answers; the catalogue's 30,000 has no source.
    maxOutput: 256_000,
    models: {
      // "Model … does not support parameter reasoningEffort.": tried on every model by
      // https://github.com/NousResearch/hermes-agent/pull/23435
      'grok-2*': NEVER_REASONS,
      'grok-3*': NEVER_REASONS,
      'grok-3-mini*': {
        reasoningParam: 'reasoning_effort',
        efforts: ['low', 'high'],
        thinkingDefault: 'always',
      },
      'grok-code*': { ...GROK_REASONS, reasoningParam: 'none' },
      // Of the generation only the newest take an effort.
      'grok-4*': GROK_REASONS,
      'grok-4': { reasoningParam: 'none' },
      'grok-4-*': { reasoningParam: 'none' },
      'grok-4.1*': { reasoningParam: 'none' },
      'grok-4.20*': { reasoningParam: 'none' },
      'grok-4.20-multi-agent*': {
        reasoningParam: 'reasoning_effort',
        efforts: ['low', 'medium', 'high', 'xhigh'],
      },
      'grok-4.3*': {
        reasoningParam: 'reasoning_effort',
        thinkingDefault: 'on',
        efforts: ['none', 'low', 'medium', 'high'],
      },
      '*non-reasoning*': { dropParams: [], ...NEVER_REASONS },
    },
  },
  groq: {
    dropParams: ['logit_bias', 'logprobs', 'top_logprobs', 'n'],
    temperature: { min: 0, max: 2 },
    maxStops: 4,
    reasoningField: 'reasoning',
    images: false,
    documents: false,
    errors: GROQ_ERRORS,
    models: {
      // "reasoning_effort is not supported with this model" (https://console.groq.com/docs/reasoning).
      '*llama*': NEVER_REASONS,
      '*gemma*': NEVER_REASONS,
      '*kimi-k2*': NEVER_REASONS,
      'allam*': NEVER_REASONS,
      '*compound*': NEVER_REASONS,
      '*llama-4*': { images: true },
      // "`reasoning_effort` must be one of `none` or `default`".
      '*qwen3-32b*': {
        reasoningParam: 'reasoning_effort',
        thinkingDefault: 'on',
        efforts: ['none'],
      },
      '*gpt-oss*': { efforts: ['low', 'medium', 'high'], thinkingDefault: 'always' },
    },
  },
  mistral: {
    maxTokensParam: 'max_tokens',
    dropParams: [...OPENAI_ONLY, 'logit_bias', 'logprobs', 'top_logprobs', 'user'],
    renameParams: { seed: 'random_seed' },
    temperature: { min: 0, max: 1.5 },
    streamUsage: false,
    developerRole: false,
    ...mistral,
    reasoningField: 'none',
    reasoningParam: 'none',
    documents: false,
    // The catalogue's 4,096 is not a limit of the API.
    models: { 'codestral*': { maxOutput: 256_000 } },
  },
  openrouter: { reasoningField: 'reasoning', reasoningParam: 'reasoning' },
  together: { ...template, reasoningField: 'reasoning', documents: false },
  ollama: {
    ...template,
    strictTools: false,
    reasoningField: 'reasoning',
    documents: false,
    models: {
      ...template.models,
      ...Object.fromEntries(OLLAMA_PLAIN.map((glob) => [glob, NEVER_REASONS])),
    },
  },
  lmstudio: {
    ...template,
    // Only these strings, no object that names a tool.
    toolChoices: ['auto', 'none', 'required'],
    reasoningField: 'reasoning_content',
    documents: false,
  },
  // It also serves Messages, on the same port.
  llamacpp: {
    ...template,
    // An object that names a tool counts as "auto"; only the server's log says so.
    toolChoices: ['auto', 'none', 'required'],
    reasoningField: 'reasoning_content',
    documents: false,
    countTokens: true,
  },
  vllm: { ...template, reasoningField: 'reasoning', documents: false },
  sglang: { ...template, reasoningField: 'reasoning_content', documents: false },
};

/** The built-in profiles by name; `none` has no facts. */
export const PROFILES: Readonly<Record<string, ProfileFacts>> = Object.fromEntries(
  [['none', {}] as const, ...Object.entries(TABLE)].map(([name, facts]) => [
    name,
    { ...facts, name },
  ]),
);

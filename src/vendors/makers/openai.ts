/** OpenAI: its addresses, what its APIs take, and its errors. */

import { type Codes, chat, type Vendor } from '../vendor.ts';

const ERRORS: Codes = {
  insufficient_quota: { kind: 'quota', retryable: false },
  billing_hard_limit_reached: { kind: 'billing', retryable: false },
  server_is_overloaded: { kind: 'overloaded', retryable: true },
  content_filter: { kind: 'content_filter', retryable: false },
};

/** What holds for Azure, too. */
export const OPENAI_FACTS = {
  maxTokensParam: 'max_completion_tokens',
  developerRole: true,
  reasoningField: 'none',
  reasoningParam: 'reasoning_effort',
  // "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16".
  leastMaxTokens: 16,
  // "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
  rootUnions: false,
  fileIds: true,
  // https://developers.openai.com/api/reference/resources/chat (functions, deprecated)
  legacyFunctions: true,
  temperature: { min: 0, max: 2 },
  maxStops: 4,
  // "Invalid 'tools': array too long. Expected an array with maximum length 128" (HybridAIOne/hybridclaw#1534)
  maxTools: 128,
  // Markup without its channel marks, and calls as JSON in the middle of prose.
  leakFamilies: ['harmony', 'json'],
  errors: ERRORS,
} as const;

/**
 * From GPT-5.6 on a prompt is found again only by `prompt_cache_key` and at breakpoints; earlier models find the longest
 * equal beginning by themselves (https://developers.openai.com/api/docs/guides/prompt-caching).
 */
const KEPT_BY_KEY = Object.fromEntries(
  ['gpt-5.6*', 'gpt-5.7*', 'gpt-5.8*', 'gpt-5.9*', 'gpt-6*', 'gpt-7*'].map((glob) => [
    glob,
    { breakpointsAt: 'api.openai.com' },
  ]),
);

/** "Unknown parameter: 'messages[1].model_id'." (https://platform.openai.com/docs/api-reference/chat/create) */
const MESSAGE_FIELDS = [
  ...['role', 'content', 'name', 'refusal', 'audio', 'tool_calls', 'function_call', 'tool_call_id'],
];

/** Those of the other endpoints: embeddings, moderations, images, audio. */
const OTHERS = ['text-embedding-*', 'omni-moderation-*', 'dall-e-*', 'whisper-*', 'tts-*'];
export const OPENAI_MODELS = ['gpt-*', 'chatgpt-*', 'codex-*', 'o1*', 'o3*', 'o4*', ...OTHERS];
const MODELS = ['gpt-5.6', 'gpt-5.5', 'gpt-5.6-terra', ...OPENAI_MODELS];

export const openai: Vendor = {
  name: 'OpenAI',
  telemetry: 'openai',
  presets: {
    openai: {
      protocol: 'openai-responses',
      profile: 'openai',
      endpoints: {
        'openai-responses': { baseUrl: 'https://api.openai.com/v1', profile: 'openai' },
        'openai-chat': { baseUrl: 'https://api.openai.com/v1', profile: 'openai-chat' },
      },
      variables: ['OPENAI_API_KEY'],
      models: MODELS,
      catalogue: 'openai',
      discovered: true,
      forChat: 'openai-chat',
    },
    'openai-chat': chat({
      baseUrl: 'https://api.openai.com/v1',
      profile: 'openai-chat',
      variables: ['OPENAI_API_KEY'],
      models: MODELS,
      catalogue: 'openai',
    }),
  },
  // Each project has one address (https://developers.openai.com/api/docs/guides/your-data); regions cost more.
  hosts: [
    { host: 'api.openai.com', region: 'global' },
    { host: 'eu.api.openai.com', region: 'eu' },
    { host: 'us.api.openai.com', region: 'us' },
  ].map((one) => ({ ...one, catalogue: 'openai', telemetry: 'openai' })),
  profiles: {
    openai: {
      ...OPENAI_FACTS,
      models: KEPT_BY_KEY,
      storesResponses: true,
      exactStreams: true,
      compaction: true,
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
    // "Image URLs are only allowed for messages with role 'user'".
    'openai-chat': {
      ...OPENAI_FACTS,
      models: KEPT_BY_KEY,
      imagesInResults: false,
      messageFields: MESSAGE_FIELDS,
    },
  },
  words: [
    {
      source: 'https://platform.openai.com/docs/guides/error-codes',
      content_filter: [
        /content_policy|moderation_blocked|rejected (?:as a result of|by) (?:our|the) safety system/i,
        /prompt was flagged as potentially violating/i,
        /\b(?:cyber|bio)_policy\b|misalignment_policy_violation|flagged for possible cybersecurity risk/i,
      ],
      context_overflow: [/context_length_exceeded/i, /exceeds the context window/i],
      invalid_request: [
        /mismatched_(?:organization|project)|openai-(?:organization|project) header/i,
        /no such (?:organization|project)|invalid_(?:organization|project)/i,
      ],
      authentication: [
        /you didn.t provide an api key|organization has been (?:disabled|deactivated)|account_deactivated/i,
      ],
      not_found: [
        /\binvalid model id\b|\bmodel_not_supported\b/i,
        /\bmodel_not_found\b|\bmodel ['"`]?\S{0,90} (?:does not|doesn.t) exist/i,
        /does not have access to (?:the )?model/i,
      ],
      permission: [
        /unsupported_country_region_territory|country, region, or territory not supported/i,
      ],
      quota: [/insufficient_quota|exceeded your current quota/i],
      // Flex processing, with a 429.
      capacity: [/\bresource_unavailable\b/i],
      billing: [/billing_hard_limit_reached|billing_not_active|billing hard limit/i],
    },
    {
      source: 'https://platform.openai.com/docs/deprecations',
      not_found: [
        /model ['"`]?\S{0,90} (?:has been|is|was) (?:deprecated|retired|shut ?down|decommissioned)/i,
      ],
    },
  ],
};

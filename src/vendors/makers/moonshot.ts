/** Moonshot: Kimi, whose newer models reason and want their reasoning back. */

import { MESSAGES_FORM } from '../facts.ts';
import { chat, type Vendor } from '../vendor.ts';

const KIMI = {
  profile: 'kimi',
  variables: ['MOONSHOT_API_KEY', 'KIMI_API_KEY'],
  models: ['kimi-k3', 'kimi-*', 'moonshot-*'],
};

export const moonshot: Vendor = {
  name: 'Kimi',
  telemetry: 'moonshot_ai',
  topic: { words: 'kimi, moonshot' },
  presets: {
    kimi: chat({
      ...KIMI,
      baseUrl: 'https://api.moonshot.ai/v1',
      messagesUrl: 'https://api.moonshot.ai/anthropic',
      aliases: ['moonshot'],
      catalogue: 'moonshotai',
      discovered: true,
    }),
    'kimi-cn': chat({
      ...KIMI,
      baseUrl: 'https://api.moonshot.cn/v1',
      messagesUrl: 'https://api.moonshot.cn/anthropic',
      catalogue: 'moonshotai-cn',
    }),
    'kimi-coding': {
      ...KIMI,
      protocol: 'anthropic-messages',
      endpoints: {
        'anthropic-messages': { baseUrl: 'https://api.kimi.com/coding', profile: 'kimi-anthropic' },
        'openai-chat': { baseUrl: 'https://api.kimi.com/coding/v1', profile: 'kimi' },
      },
      variables: ['KIMI_API_KEY'],
      catalogue: 'kimi-for-coding',
    },
  },
  profiles: {
    kimi: {
      maxTokensParam: 'max_tokens',
      temperature: { min: 0, max: 1 },
      maxStops: 5,
      toolChoices: ['auto', 'none'],
      developerRole: false,
      reasoningField: 'reasoning_content',
      reasoningParam: 'thinking',
      documents: false,
      // "the message at position 8 with role 'assistant' must not be empty" (github.com/MoonshotAI/kimi-code/issues/1985)
      emptyReplies: false,
      // https://platform.kimi.ai/docs/guide/use-partial-mode-feature-of-kimi-api
      prefill: 'partial',
    },
    'kimi-anthropic': {
      ...MESSAGES_FORM,
      // "Invalid request Error" to every later request (github.com/router-for-me/CLIProxyAPI/issues/4405,
      // github.com/MoonshotAI/kimi-cli/issues/2223)
      toolReferences: false,
      documents: false,
    },
  },
  words: [
    {
      source: 'github.com/MoonshotAI/kimi-cli/issues/1002',
      content_filter: [/rejected because it was considered high risk/i],
    },
    {
      source: 'github.com/MoonshotAI/kimi-cli/issues/2011',
      context_overflow: [
        /(?:exceed(?:s|ed|ing)?|longer than|larger than) (?:the |your |its |this )?(?:available |model(?:.s)? |maximum |max ){0,3}(?:context|model token limit)/i,
      ],
    },
    {
      source: 'https://platform.moonshot.ai/docs/api/chat#error-codes',
      authentication: [
        /incorrect_api_key_error|invalid_authentication_error|invalid authentication/i,
      ],
      capacity: [/engine_overloaded/i],
      rate_limit: [/rate_limit_reached_error|max (?:organization )?concurrency/i],
    },
    {
      source: 'github.com/langgenius/dify/issues/39778',
      not_found: [/not found the model/i],
    },
    {
      source: 'github.com/MoonshotAI/Kimi-K2/issues/5',
      quota: [/exceeded_current_quota|exceeded current quota/i],
    },
    {
      source: 'https://www.kimi.com/code/docs/en/kimi-code/error-reference.html',
      quota: [/reached your usage limit for this/i],
    },
  ],
};

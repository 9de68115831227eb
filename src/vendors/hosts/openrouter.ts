/** OpenRouter, whose models are called by their vendor before a slash. */

import { chat, type Vendor } from '../vendor.ts';

export const openrouter: Vendor = {
  name: 'OpenRouter',
  topic: { words: 'openrouter' },
  presets: {
    openrouter: chat({
      baseUrl: 'https://openrouter.ai/api/v1',
      profile: 'openrouter',
      variables: ['OPENROUTER_API_KEY'],
      models: ['openrouter/auto', '*/*'],
      catalogue: 'openrouter',
      discovered: true,
    }),
  },
  profiles: {
    openrouter: {
      reasoningField: 'reasoning',
      reasoningParam: 'reasoning',
      // https://openrouter.ai/docs/features/prompt-caching
      models: { '*claude*': { cacheMarks: true } },
    },
  },
  words: [
    {
      source: 'https://openrouter.ai/docs/api-reference/errors',
      content_filter: [/input was flagged|requires moderation/i],
      authentication: [/no auth credentials found|no cookie auth credentials/i],
      not_found: [/model [^.\n]{0,60}not available in your (?:region|country)/i],
      quota: [/key limit exceeded|(?:daily|weekly|monthly) (?:limit|quota)/i],
      // With a smaller cap it is affordable.
      invalid_request: [/can only afford [1-9][\d,]{3}/i],
      billing: [/requires more credits|insufficient credits|never purchased credits/i],
    },
    {
      source: 'github.com/maxnowack/anthropic-proxy/issues/4',
      not_found: [
        /is not a valid model id|no endpoints (?:found|available)(?! that support the native)|no allowed providers are available/i,
      ],
    },
  ],
};

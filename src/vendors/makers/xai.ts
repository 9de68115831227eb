/** xAI: Grok, at its own address. */

import { chat, type Vendor } from '../vendor.ts';

export const xai: Vendor = {
  name: 'xAI',
  telemetry: 'x_ai',
  presets: {
    xai: chat({
      baseUrl: 'https://api.x.ai/v1',
      profile: 'xai',
      variables: ['XAI_API_KEY'],
      models: ['grok-4.7', 'grok-*'],
      aliases: ['grok'],
      catalogue: 'xai',
      discovered: true,
    }),
  },
  // https://docs.x.ai/developers/advanced-api-usage/prompt-caching/maximizing-cache-hits
  hosts: [{ host: 'api.x.ai', sessionHeader: 'x-grok-conv-id' }],
  profiles: {
    xai: {
      reasoningField: 'reasoning_content',
      temperature: { min: 0, max: 2 },
      maxStops: 4,
      // Only the window limits answers; the catalogue's 30,000 has no source.
      maxOutput: 256_000,
    },
  },
  words: [
    {
      source: 'https://docs.x.ai/docs/key-information/debugging',
      content_filter: [/content violates usage guidelines|safety_check/i],
      authentication: [/(?:the )?api key is (?:currently )?(?:blocked|disabled)/i],
      not_found: [/the model \S{1,90} (?:does not exist|is not available)|model not found/i],
      quota: [
        /monthly spending limit|reached (?:its|your|the) (?:\w{1,12} )?(?:spending|spend|usage) limit/i,
      ],
      billing: [/used all available credits|run out of credits|doesn.t have any credits/i],
    },
    {
      source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
      context_overflow: [/maximum prompt length/i],
    },
  ],
};

/** xAI: Grok, of which only some models take an effort. */

import { NEVER_REASONS } from '../facts.ts';
import { chat, type Vendor } from '../vendor.ts';

/** Its reasoning models refuse these. */
const GROK_REASONS = {
  dropParams: ['presence_penalty', 'frequency_penalty', 'stop'],
  thinkingDefault: 'always',
} as const;

export const xai: Vendor = {
  name: 'xAI',
  telemetry: 'x_ai',
  presets: {
    xai: chat({
      baseUrl: 'https://api.x.ai/v1',
      profile: 'xai',
      variables: ['XAI_API_KEY'],
      models: ['grok-4', 'grok-*'],
      aliases: ['grok'],
      catalogue: 'xai',
      discovered: true,
    }),
  },
  profiles: {
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

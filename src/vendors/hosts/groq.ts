/** Groq, which checks the calls of tools itself. */

import { NEVER_REASONS } from '../facts.ts';
import { chat, type Vendor } from '../vendor.ts';

export const groq: Vendor = {
  name: 'Groq',
  telemetry: 'groq',
  topic: { words: 'groq' },
  presets: {
    groq: chat({
      baseUrl: 'https://api.groq.com/openai/v1',
      profile: 'groq',
      variables: ['GROQ_API_KEY'],
      models: ['openai/gpt-oss-*', 'llama-*', 'meta-llama/*', 'moonshotai/*'],
      catalogue: 'groq',
      discovered: true,
    }),
  },
  hosts: [{ host: '*.groq.com', catalogue: 'groq', telemetry: 'groq' }],
  profiles: {
    groq: {
      dropParams: ['logit_bias', 'logprobs', 'top_logprobs', 'n'],
      temperature: { min: 0, max: 2 },
      maxStops: 4,
      reasoningField: 'reasoning',
      images: false,
      documents: false,
      // Another try usually succeeds.
      errors: { tool_use_failed: { kind: 'upstream', retryable: true } },
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
  },
  words: [
    {
      source: 'https://console.groq.com/docs/errors',
      not_found: [
        /model_decommissioned|model_permission_blocked|model_terms_required|model_not_active/i,
      ],
      overloaded: [/over capacity|no available (?:workers|capacity)/i],
    },
  ],
};

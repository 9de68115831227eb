/** Mistral, which wants ids of calls in a form of its own. */

import { OPENAI_ONLY } from '../facts.ts';
import { chat, type Vendor } from '../vendor.ts';

export const mistral: Vendor = {
  name: 'Mistral',
  telemetry: 'mistral_ai',
  topic: { words: 'mistral' },
  presets: {
    mistral: chat({
      baseUrl: 'https://api.mistral.ai/v1',
      profile: 'mistral',
      variables: ['MISTRAL_API_KEY'],
      models: [
        'mistral-large-latest',
        'codestral-latest',
        'mistral-*',
        'codestral-*',
        'devstral-*',
        'magistral-*',
        'ministral-*',
        'pixtral-*',
      ],
      catalogue: 'mistral',
      discovered: true,
    }),
  },
  hosts: [{ host: '*.mistral.ai', catalogue: 'mistral', telemetry: 'mistral_ai' }],
  profiles: {
    mistral: {
      maxTokensParam: 'max_tokens',
      dropParams: [...OPENAI_ONLY, 'logit_bias', 'logprobs', 'top_logprobs', 'user'],
      renameParams: { seed: 'random_seed' },
      // "Extra inputs are not permitted" (https://docs.mistral.ai/api/#tag/chat)
      messageFields: ['role', 'content', 'name', 'tool_calls', 'tool_call_id', 'prefix'],
      // "Expected last role User or Tool (or Assistant with prefix True)"; the answer repeats it
      // (github.com/vercel/ai/pull/3256).
      prefill: 'prefix',
      temperature: { min: 0, max: 1.5 },
      streamUsage: false,
      developerRole: false,
      // "Unexpected role 'user' after role 'tool'", and ids of exactly nine letters and digits.
      userAfterTool: false,
      callIds: 'nine-alphanumeric',
      reasoningField: 'none',
      reasoningParam: 'none',
      documents: false,
      // Content in parts (https://docs.mistral.ai/capabilities/reasoning).
      exactStreams: false,
    },
  },
  words: [
    {
      source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
      context_overflow: [/too large for model with \d+ maximum/i],
    },
    {
      source: 'github.com/tmc/langchaingo/issues/1233',
      not_found: [/\binvalid_model\b|invalid model:/i],
    },
    {
      source: 'https://docs.mistral.ai',
      billing: [/subscription (?:is )?(?:inactive|required)|payment method/i],
      capacity: [/service_tier_capacity_exceeded|service tier capacity exceeded/i],
    },
  ],
};

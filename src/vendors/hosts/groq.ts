/** Groq, which checks the calls of tools itself. */

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
      // "property 'model_id' is unsupported" (https://console.groq.com/docs/api-reference#chat-create)
      messageFields: ['role', 'content', 'name', 'tool_calls', 'function_call', 'tool_call_id'],
      // groq-sdk, resources/chat/completions: `functions`, `function_call` (deprecated)
      legacyFunctions: true,
      temperature: { min: 0, max: 2 },
      maxStops: 4,
      reasoningField: 'reasoning',
      images: false,
      documents: false,
      // Another try usually succeeds.
      errors: { tool_use_failed: { kind: 'upstream', retryable: true } },
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

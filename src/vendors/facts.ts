/** Facts that several vendors share. */

import type { Facts } from '../conversation/profile-facts.ts';

export const TEXT_ONLY = { images: false, documents: false } as const satisfies Facts;

/** Endpoints of other vendors for the Messages protocol: made for agents, lenient, without hosted tools. */
export const MESSAGES_FORM = {
  systemTurns: false,
  adaptiveThinking: false,
  anySignature: true,
  // "output_config: Only effort is supported" (https://api-docs.deepseek.com/guides/anthropic_api)
  jsonSchema: false,
} as const satisfies Facts;

/** Body keys of OpenAI's own services, for vendors that answer 400 to what they do not know. */
export const OPENAI_ONLY = [
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

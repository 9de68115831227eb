/** DeepSeek, whose reasoning models want their reasoning back. */

import { MESSAGES_FORM, TEXT_ONLY } from '../facts.ts';
import { chat, type Vendor, type VendorFacts } from '../vendor.ts';

const DEEPSEEK = {
  variables: ['DEEPSEEK_API_KEY'],
  models: ['deepseek-v4-flash', 'deepseek-v4-pro', 'deepseek-*'],
  catalogue: 'deepseek',
};
const CHAT: VendorFacts = {
  maxTokensParam: 'max_tokens',
  temperature: { min: 0, max: 2 },
  maxStops: 16,
  jsonSchema: false,
  developerRole: false,
  // github.com/decolua/9router/pull/3333
  uniqueTools: true,
  thinkingToolChoices: ['auto', 'none'],
  reasoningField: 'reasoning_content',
  reasoningParam: 'thinking',
  thinkingDefault: 'off',
  ...TEXT_ONLY,
};

export const deepseek: Vendor = {
  name: 'DeepSeek',
  telemetry: 'deepseek',
  topic: { section: '/recipes#deepseek-with-claude-code', words: 'deepseek' },
  presets: {
    deepseek: chat({
      ...DEEPSEEK,
      baseUrl: 'https://api.deepseek.com',
      messagesUrl: 'https://api.deepseek.com/anthropic',
      profile: 'deepseek',
      discovered: true,
    }),
    'deepseek-beta': chat({
      ...DEEPSEEK,
      baseUrl: 'https://api.deepseek.com/beta',
      profile: 'deepseek-beta',
    }),
  },
  hosts: [{ host: '*.deepseek.com', catalogue: 'deepseek', telemetry: 'deepseek' }],
  profiles: {
    deepseek: CHAT,
    // "prefix is only available when using beta api" (github.com/BerriAI/litellm/issues/4881)
    'deepseek-beta': { ...CHAT, builtIn: 'deepseek', prefill: 'prefix' },
    'deepseek-anthropic': { ...MESSAGES_FORM, ...TEXT_ONLY, uniqueTools: true },
  },
  words: [
    {
      source: 'https://api-docs.deepseek.com/quick_start/error_codes',
      content_filter: [/content exists risk/i],
      authentication: [/authentication fails|api ?key:? .{0,60} is invalid/i],
      not_found: [/supported api model names are/i],
    },
    {
      source: 'github.com/deepwn/addi/issues/13',
      not_found: [/model not exist/i],
    },
  ],
};

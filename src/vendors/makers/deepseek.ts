/** DeepSeek, whose reasoning models want their reasoning back. */

import { MESSAGES_FORM, SEES, TEXT_ONLY } from '../facts.ts';
import { chat, type Facts, type Vendor } from '../vendor.ts';

const MODELS: Readonly<Record<string, Facts>> = {
  'deepseek-v4*': {
    ...SEES,
    thinkingDefault: 'on',
    efforts: ['high', 'max'],
    reasoningReplay: 'all',
  },
  'deepseek-reasoner*': { thinkingDefault: 'always', reasoningReplay: 'calls' },
};

export const deepseek: Vendor = {
  name: 'DeepSeek',
  telemetry: 'deepseek',
  topic: { section: '/recipes#deepseek-with-claude-code', words: 'deepseek' },
  presets: {
    deepseek: chat({
      baseUrl: 'https://api.deepseek.com',
      messagesUrl: 'https://api.deepseek.com/anthropic',
      profile: 'deepseek',
      variables: ['DEEPSEEK_API_KEY'],
      models: ['deepseek-chat', 'deepseek-reasoner', 'deepseek-*'],
      catalogue: 'deepseek',
      discovered: true,
    }),
  },
  hosts: [{ host: '*.deepseek.com', catalogue: 'deepseek', telemetry: 'deepseek' }],
  profiles: {
    deepseek: {
      maxTokensParam: 'max_tokens',
      temperature: { min: 0, max: 2 },
      maxStops: 16,
      jsonSchema: false,
      developerRole: false,
      thinkingToolChoices: ['auto', 'none'],
      reasoningField: 'reasoning_content',
      reasoningParam: 'thinking',
      thinkingDefault: 'off',
      ...TEXT_ONLY,
      models: MODELS,
    },
    'deepseek-anthropic': { ...MESSAGES_FORM, ...TEXT_ONLY, models: { 'deepseek-v4*': SEES } },
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

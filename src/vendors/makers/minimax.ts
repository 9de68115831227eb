/** MiniMax, whose errors often come with HTTP 200. */

import { MESSAGES_FORM, TEXT_ONLY } from '../facts.ts';
import { type Codes, chat, type Vendor } from '../vendor.ts';

/** `base_resp.status_code`, often with HTTP 200. */
const ERRORS: Codes = {
  '1000': { kind: 'upstream', retryable: true },
  '1001': { kind: 'timeout', retryable: true },
  '1002': { kind: 'rate_limit', retryable: true },
  '1004': { kind: 'authentication', retryable: false },
  '1008': { kind: 'billing', retryable: false },
  '1013': { kind: 'upstream', retryable: true },
  '1024': { kind: 'upstream', retryable: true },
  '1026': { kind: 'content_filter', retryable: false },
  '1027': { kind: 'content_filter', retryable: false },
  '1033': { kind: 'upstream', retryable: true },
  '1039': { kind: 'rate_limit', retryable: true },
  '2013': { kind: 'invalid_request', retryable: false },
  '2049': { kind: 'authentication', retryable: false },
  '2056': { kind: 'quota', retryable: false },
};

const MINIMAX = {
  profile: 'minimax',
  variables: ['MINIMAX_API_KEY'],
  models: ['MiniMax-M2.5', 'MiniMax-*'],
};

export const minimax: Vendor = {
  name: 'MiniMax',
  topic: { words: 'minimax' },
  presets: {
    minimax: chat({
      ...MINIMAX,
      baseUrl: 'https://api.minimax.io/v1',
      messagesUrl: 'https://api.minimax.io/anthropic',
      catalogue: 'minimax',
      discovered: true,
    }),
    'minimax-cn': chat({
      ...MINIMAX,
      baseUrl: 'https://api.minimaxi.com/v1',
      messagesUrl: 'https://api.minimaxi.com/anthropic',
      catalogue: 'minimax-cn',
    }),
  },
  profiles: {
    minimax: {
      maxTokensParam: 'max_tokens',
      temperature: { min: 0.01, max: 1 },
      toolChoices: ['auto', 'none'],
      jsonSchema: false,
      developerRole: false,
      reasoningParam: 'none',
      errors: ERRORS,
      ...TEXT_ONLY,
    },
    'minimax-anthropic': {
      ...MESSAGES_FORM,
      ...TEXT_ONLY,
      temperature: { min: 0.01, max: 1 },
      errors: ERRORS,
    },
  },
  baseRespCodes: ERRORS,
  words: [
    {
      source: 'https://platform.minimax.io/docs/api-reference/errorcode',
      content_filter: [/(?:input|output) new_sensitive/i],
      authentication: [/login fail|token not match group/i],
      quota: [/usage limit exceeded/i],
      rate_limit: [/rate limit triggered/i],
    },
    {
      source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
      context_overflow: [/context (?:window|length|size)[^.]{0,40}(?:exceed|limit|overflow|too)/i],
    },
    {
      source: 'github.com/jlcodes99/cockpit-tools/issues/1431',
      not_found: [
        /unknown model|model [^\n]{0,60}not support(?:ed)? (?:by|in) (?:your|the|this)[^\n]{0,20}plan|your current [^\n]{0,30}plan not support model/i,
      ],
    },
  ],
};

/** Zhipu and Z.AI: GLM, whose models reason unless they are told not to. */

import { MESSAGES_FORM, TEXT_ONLY } from '../facts.ts';
import { type Codes, chat, type Vendor } from '../vendor.ts';

/**
 * Zhipu and Z.AI: business codes, sent as text, mostly with HTTP 429 or 400.
 * @see https://docs.bigmodel.cn/cn/api/api-code
 */
const ERRORS: Codes = {
  '500': { kind: 'upstream', retryable: true },
  '1000': { kind: 'authentication', retryable: false },
  '1001': { kind: 'authentication', retryable: false },
  '1002': { kind: 'authentication', retryable: false },
  '1003': { kind: 'authentication', retryable: false },
  '1004': { kind: 'authentication', retryable: false },
  '1110': { kind: 'permission', retryable: false },
  '1111': { kind: 'authentication', retryable: false },
  '1112': { kind: 'permission', retryable: false },
  // In arrears. Comes with HTTP 429, which alone would be retried.
  '1113': { kind: 'billing', retryable: false },
  '1120': { kind: 'upstream', retryable: true },
  '1121': { kind: 'permission', retryable: false },
  '1210': { kind: 'invalid_request', retryable: false },
  '1211': { kind: 'not_found', retryable: false },
  '1212': { kind: 'invalid_request', retryable: false },
  '1213': { kind: 'invalid_request', retryable: false },
  '1214': { kind: 'invalid_request', retryable: false },
  '1215': { kind: 'invalid_request', retryable: false },
  '1220': { kind: 'permission', retryable: false },
  '1221': { kind: 'not_found', retryable: false },
  '1222': { kind: 'not_found', retryable: false },
  '1230': { kind: 'upstream', retryable: true },
  '1231': { kind: 'conflict', retryable: false },
  // "Network error": passes by itself.
  '1234': { kind: 'upstream', retryable: true },
  '1261': { kind: 'context_overflow', retryable: false },
  '1300': { kind: 'content_filter', retryable: false },
  '1301': { kind: 'content_filter', retryable: false },
  // Too many at once, too often, the API as a whole too busy.
  '1302': { kind: 'rate_limit', retryable: true },
  '1303': { kind: 'rate_limit', retryable: true },
  '1304': { kind: 'quota', retryable: false },
  '1305': { kind: 'overloaded', retryable: true },
  '1308': { kind: 'quota', retryable: false },
  '1309': { kind: 'billing', retryable: false },
  '1310': { kind: 'quota', retryable: false },
  '1311': { kind: 'not_found', retryable: false },
  '1312': { kind: 'overloaded', retryable: true },
  '1313': { kind: 'quota', retryable: false },
};

/** Those of the codes that no other vendor has with another meaning (Mistral has 1300 and 1500). */
const ALONE = '1000 1001 1002 1113 1211 1261 1301 1302 1303 1305 1308 1310 1311 1312'.split(' ');

const GLM = {
  maxTokensParam: 'max_tokens',
  dropParams: ['frequency_penalty', 'presence_penalty', 'logprobs', 'top_logprobs', 'n', 'seed'],
  // Both intervals are open at 0.
  temperature: { min: 0.01, max: 1 },
  topP: { min: 0.01, max: 1 },
  maxStops: 1,
  // Usage always comes in the last chunk.
  streamUsage: false,
  parallelToolsParam: false,
  strictTools: false,
  jsonSchema: false,
  toolChoices: ['auto'],
  developerRole: false,
  needsUserTurn: true,
  // 500 "Operation failed" when the last tool result is a large one.
  shortToolResults: true,
  reasoningField: 'reasoning_content',
  reasoningParam: 'thinking',
  thinkingDefault: 'on',
  errors: ERRORS,
  ...TEXT_ONLY,
} as const;

const MAINLAND = {
  messagesUrl: 'https://open.bigmodel.cn/api/anthropic',
  profile: 'glm',
  variables: ['ZHIPU_API_KEY', 'ZHIPUAI_API_KEY', 'GLM_API_KEY'],
  models: ['glm-4.7', 'glm-4.6', 'glm-4.5v', 'glm-*'],
};
const ABROAD = {
  ...MAINLAND,
  messagesUrl: 'https://api.z.ai/api/anthropic',
  variables: ['ZAI_API_KEY'],
};

export const zhipu: Vendor = {
  name: 'Zhipu',
  topic: { section: '/claude-code-on-glm', words: 'glm, zhipu, bigmodel, zai, 智谱, 智谱清言' },
  presets: {
    glm: chat({
      ...MAINLAND,
      baseUrl: 'https://open.bigmodel.cn/api/paas/v4',
      aliases: ['zhipu', 'bigmodel'],
      catalogue: 'zhipuai',
      discovered: true,
    }),
    'glm-coding': chat({
      ...MAINLAND,
      baseUrl: 'https://open.bigmodel.cn/api/coding/paas/v4',
      catalogue: 'zhipuai-coding-plan',
    }),
    zai: chat({
      ...ABROAD,
      baseUrl: 'https://api.z.ai/api/paas/v4',
      aliases: ['z.ai'],
      catalogue: 'zai',
      discovered: true,
    }),
    'zai-coding': chat({
      ...ABROAD,
      baseUrl: 'https://api.z.ai/api/coding/paas/v4',
      catalogue: 'zai-coding-plan',
    }),
  },
  profiles: {
    glm: GLM,
    // The coding plan and Z.AI's own address differ in prices and limits, not in what they accept.
    'glm-coding': GLM,
    zai: GLM,
    'glm-anthropic': {
      ...MESSAGES_FORM,
      ...TEXT_ONLY,
      temperature: GLM.temperature,
      errors: ERRORS,
    },
  },
  codes: Object.fromEntries(ALONE.map((code) => [code, ERRORS[code]!])),
  words: [
    {
      source: 'https://docs.bigmodel.cn/cn/api/api-code',
      content_filter: [/输入或生成内容中?可能包含不安全或敏感内容|敏感内容/],
      context_overflow: [/prompt exceeds max length|prompt 超长|输入.{0,20}超长/i],
      authentication: [
        /(?:api ?key|令牌|身份验证).{0,20}(?:过期|无效|不正确|失败)|身份验证失败|token expired or incorrect/i,
      ],
      not_found: [
        /模型不存在|模型[^\n]{0,40}(?:已下线|已下架|不可用)|unknown model, please check the model code/i,
      ],
      quota: [
        /(?:使用|调用)(?:上限|次数已达上限)|已达到.{0,20}使用上限/,
        /usage limit reached for/i,
      ],
      billing: [/余额不足|欠费|套餐已到期/],
      overloaded: [/访问量过大/],
      rate_limit: [/并发数过高|请求频率|速率限制/],
    },
  ],
};

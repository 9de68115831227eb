/** Alibaba's Model Studio (DashScope): Qwen. */

import { TEXT_ONLY } from '../facts.ts';
import { type Codes, chat, type Vendor } from '../vendor.ts';

/** Its codes are names. */
const ERRORS: Codes = {
  Arrearage: { kind: 'billing', retryable: false },
  invalid_api_key: { kind: 'authentication', retryable: false },
  InvalidApiKey: { kind: 'authentication', retryable: false },
  invalid_parameter_error: { kind: 'invalid_request', retryable: false },
  data_inspection_failed: { kind: 'content_filter', retryable: false },
  DataInspectionFailed: { kind: 'content_filter', retryable: false },
  insufficient_quota: { kind: 'quota', retryable: false },
  limit_requests: { kind: 'rate_limit', retryable: true },
  limit_burst_rate: { kind: 'rate_limit', retryable: true },
  Throttling: { kind: 'rate_limit', retryable: true },
  'Throttling.RateQuota': { kind: 'rate_limit', retryable: true },
  'Throttling.AllocationQuota': { kind: 'rate_limit', retryable: true },
  model_not_found: { kind: 'not_found', retryable: false },
  internal_error: { kind: 'upstream', retryable: true },
};

const QWEN = {
  profile: 'qwen',
  variables: ['DASHSCOPE_API_KEY', 'QWEN_API_KEY'],
  models: ['qwen3-max', 'qwen3-coder-plus', 'qwen*', 'qwq*', 'qvq*'],
};

export const qwen: Vendor = {
  name: 'DashScope',
  topic: { words: 'qwen, dashscope' },
  presets: {
    qwen: chat({
      ...QWEN,
      baseUrl: 'https://dashscope.aliyuncs.com/compatible-mode/v1',
      aliases: ['dashscope', 'alibaba'],
      catalogue: 'alibaba-cn',
      discovered: true,
    }),
    'qwen-intl': chat({
      ...QWEN,
      baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
      catalogue: 'alibaba',
    }),
  },
  profiles: {
    qwen: {
      maxTokensParam: 'max_tokens',
      // Open at 2 and at 0.
      temperature: { min: 0, max: 1.99 },
      topP: { min: 0.01, max: 1 },
      thinkingToolChoices: ['auto', 'none'],
      strictTools: false,
      jsonSchema: false,
      developerRole: false,
      // https://www.alibabacloud.com/help/en/model-studio/partial-mode
      prefill: 'partial',
      prefillWhileThinking: false,
      reasoningField: 'reasoning_content',
      reasoningParam: 'enable_thinking',
      // The open models reason unless it is switched off, the others only if it is switched on.
      thinkingDefault: 'off',
      errors: ERRORS,
      ...TEXT_ONLY,
    },
  },
  words: [
    {
      source: 'https://www.alibabacloud.com/help/en/model-studio/error-code',
      content_filter: [/data_?inspection_?failed|inappropriate content/i],
      context_overflow: [/range of input length should be/i, /input length exceeds/i],
      authentication: [
        /invalid api-key provided|no api-key provided|invalid access token or token expired/i,
      ],
      not_found: [
        /model not exist|\bmodelnotfound\b|model\.accessdenied|model \S{0,90} is not supported\b(?! (?:parameter|in|with|for))/i,
      ],
      quota: [
        /allocated quota exceeded|free (?:tier|allocated quota)[^.]{0,40}exhausted|allocationquota\.freetieronly/i,
      ],
      billing: [/\barrearage\b|account is in good standing|overdue payment/i],
    },
  ],
};

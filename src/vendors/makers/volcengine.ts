/** Volcengine Ark: Doubao, and models of others under names with a date. */

import { type Codes, chat, type Vendor } from '../vendor.ts';

/**
 * Codes are names, and so are the types of the errors.
 * @see https://www.volcengine.com/docs/82379/1299023, copied at https://apifox.com/apidoc/docs-site/5437846/6107465m0
 */
const ERRORS: Codes = {
  AuthenticationError: { kind: 'authentication', retryable: false },
  // In arrears: 403, which alone would blame the key.
  AccountOverdueError: { kind: 'billing', retryable: false },
  ServiceOverdue: { kind: 'billing', retryable: false },
  AccessDenied: { kind: 'permission', retryable: false },
  ModelNotOpen: { kind: 'not_found', retryable: false },
  ServiceNotOpen: { kind: 'not_found', retryable: false },
  'InvalidEndpoint.NotFound': { kind: 'not_found', retryable: false },
  'InvalidEndpoint.ClosedEndpoint': { kind: 'not_found', retryable: false },
  'InvalidEndpointOrModel.NotFound': { kind: 'not_found', retryable: false },
  // All three with 429: the trial is used up, the account's own limit is reached, the service is busy.
  QuotaExceeded: { kind: 'quota', retryable: false },
  SetLimitExceeded: { kind: 'quota', retryable: false },
  ServerOverloaded: { kind: 'overloaded', retryable: true },
  SensitiveContentDetected: { kind: 'content_filter', retryable: false },
  InputTextSensitiveContentDetected: { kind: 'content_filter', retryable: false },
  InputImageSensitiveContentDetected: { kind: 'content_filter', retryable: false },
  OutputTextSensitiveContentDetected: { kind: 'content_filter', retryable: false },
};

const ARK = {
  profile: 'doubao',
  variables: ['ARK_API_KEY', 'VOLCENGINE_API_KEY'],
  // Endpoints that a user made are called `ep-…`.
  models: ['doubao-*', 'ep-*'],
};

export const volcengine: Vendor = {
  name: 'Volcengine',
  topic: { words: 'doubao, volcengine, volcano engine, ark, 豆包, 火山引擎, 火山方舟' },
  presets: {
    doubao: chat({
      ...ARK,
      baseUrl: 'https://ark.cn-beijing.volces.com/api/v3',
      aliases: ['volcengine', 'ark'],
      discovered: true,
    }),
    // https://docs.openclaw.ai/providers/volcengine
    'doubao-coding': chat({
      ...ARK,
      baseUrl: 'https://ark.cn-beijing.volces.com/api/coding/v3',
      models: ['ark-code-latest', ...ARK.models],
    }),
  },
  profiles: {
    // https://docs.anyfast.ai/zh/api-reference/endpoints/doubao: roles, stops, temperature;
    // https://www.compshare.cn/docs/modelverse/models/text_api/thinking/doubao: `thinking`.
    doubao: {
      maxTokensParam: 'max_tokens',
      temperature: { min: 0, max: 2 },
      maxStops: 4,
      developerRole: false,
      reasoningField: 'reasoning_content',
      reasoningParam: 'thinking',
      errors: ERRORS,
      // https://docs.anyfast.ai/zh/api-reference/model-api/bytedance/doubao-seed-evolving
      models: { 'doubao-seed-*': { thinkingDefault: 'on' } },
    },
  },
  words: [
    {
      source: 'https://www.volcengine.com/docs/82379/1299023',
      content_filter: [
        /(?:input|output)\w{1,9}sensitivecontentdetected|text may contain sensitive information/i,
      ],
    },
    {
      source: 'https://apifox.com/apidoc/docs-site/5437846/6107465m0',
      billing: [/\baccountoverdueerror\b|account has an overdue balance/i],
    },
    {
      source: 'https://www.volcengine.com/docs/82379/1299023',
      quota: [/\bsetlimitexceeded\b|reached the set inference limit/i],
    },
    {
      source: 'github.com/sipeed/picoclaw pkg/agent/loop_test.go',
      context_overflow: [/exceed max message tokens/i],
    },
  ],
};

/** Vendors' own error codes, with what each of them means. */

import type { VendorError } from '../target.ts';

type Codes = Readonly<Record<string, VendorError>>;

/**
 * Zhipu and Z.AI: business codes, sent as text, mostly with HTTP 429 or 400.
 * @see https://docs.bigmodel.cn/cn/api/api-code
 */
export const ZHIPU_ERRORS: Codes = {
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

/** MiniMax: `base_resp.status_code`, often with HTTP 200. */
export const MINIMAX_ERRORS: Codes = {
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

/** Model Studio (DashScope): codes are names. */
export const QWEN_ERRORS: Codes = {
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

/** Those of Zhipu's codes that no other vendor has with another meaning (Mistral has 1300 and 1500). */
const ZHIPU_ALONE = '1000 1001 1002 1113 1211 1261 1301 1302 1303 1305 1308 1310 1311 1312'.split(
  ' ',
);
export const NUMBERS: Codes = Object.fromEntries(
  ZHIPU_ALONE.map((code) => [code, ZHIPU_ERRORS[code]!]),
);

/** Groq checks tool calls itself; another try usually succeeds. */
export const GROQ_ERRORS: Codes = {
  tool_use_failed: { kind: 'upstream', retryable: true },
};

/** OpenAI and Azure. */
export const OPENAI_ERRORS: Codes = {
  insufficient_quota: { kind: 'quota', retryable: false },
  billing_hard_limit_reached: { kind: 'billing', retryable: false },
  server_is_overloaded: { kind: 'overloaded', retryable: true },
  content_filter: { kind: 'content_filter', retryable: false },
};

/**
 * Servers that apply a model's own chat template (llama.cpp, LM Studio): they report what the template or a
 * parser refuses as a failure of the server (500, `server_error`).
 * @see https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
 */
export const TEMPLATE_MESSAGES: Codes = {
  'error rendering prompt with jinja template': { kind: 'invalid_request', retryable: false },
  'jinja exception': { kind: 'invalid_request', retryable: false },
  'failed to parse tool call arguments as json': { kind: 'invalid_request', retryable: false },
  '[json.exception.': { kind: 'invalid_request', retryable: false },
  'system message must be at the beginning': { kind: 'invalid_request', retryable: false },
  'conversation roles must alternate': { kind: 'invalid_request', retryable: false },
  'only supports single tool-calls at once': { kind: 'invalid_request', retryable: false },
  'unknown method': { kind: 'invalid_request', retryable: false },
  'value is not callable': { kind: 'invalid_request', retryable: false },
  'while executing': { kind: 'invalid_request', retryable: false },
  'unable to generate parser for this template': { kind: 'invalid_request', retryable: false },
};

/** Amazon Bedrock names an error by its exception. https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html */
export const BEDROCK_ERRORS: Codes = {
  ServiceQuotaExceededException: { kind: 'quota' },
  ModelNotReadyException: { kind: 'overloaded', retryable: true },
  ModelErrorException: { kind: 'upstream', retryable: true },
};

/** Classifies a vendor's error: by its code and message first, then by its status. */

import type { ErrorKind } from '../../../conversation/errors.ts';
import { memberOf } from '../../../lib/json/json-members.ts';

/** The texts of a vendor's error. */
export interface ErrorText {
  readonly message?: string;
  readonly code?: string;
  readonly type?: string;
  readonly body: string;
  /** The code is MiniMax's. Its numbers clash with Zhipu's. */
  readonly minimax?: boolean;
}

/** A kind of error, and whether a retry can help if the kind alone does not decide that. */
export interface KnownError {
  readonly kind: ErrorKind;
  readonly retryable?: boolean;
}

/** Error messages of vendors for a prompt that is too long. */
const OVERFLOW = new RegExp(
  [
    'context_length_exceeded',
    'exceed_context_size', // llama.cpp
    'model_context_window_exceeded',
    'maximum context length', // OpenAI, DeepSeek, vLLM, OpenRouter, Mistral
    'max(imum)? context (length|size|window)',
    'maximum prompt length', // xAI
    'exceed(s|ed|ing)? (the |your |its |this )?(available |model.s |maximum |max )*(context|model token limit)',
    'context (window|length|size)[^.]{0,40}(exceed|limit|overflow|too)',
    'context the overflows', // LM Studio
    'prompt (is )?too long', // Anthropic, Ollama
    'prompt exceeds max length', // GLM 1261
    'input (is )?too long', // Bedrock
    'input (length|token count)[^.]{0,60}exceed', // Qwen, Gemini
    'range of input length should be', // DashScope
    'too many (input )?tokens in (the )?(prompt|input|request)',
    'reduce the length of (the |your )?(messages|prompt|input)', // OpenAI, Groq
    'too large for model with \\d+ maximum', // Mistral
    'token limit exceeded',
  ].join('|'),
  'i',
);

/** Messages for a used-up plan or balance: a retry within the minute cannot help. */
const QUOTA =
  /insufficient_quota|exceeded your current quota|quota (exceeded|exhausted)|usage_limit_reached|daily limit|monthly (limit|quota)|exceeded_current_quota/i;
const BILLING =
  /insufficient (balance|credits?|funds)|payment required|余额不足|欠费|arrearage|credit balance is too low|requires more credits/i;
const FILTERED =
  /content_filter|content_policy|responsibleai|data_inspection_failed|inappropriate content|content management policy|safety_check/i;
const OVERLOADED =
  /overloaded|server_is_busy|server is busy|engine_overloaded|no available (workers|capacity)|at capacity|访问量过大/i;

/** Zhipu's business codes, sent as strings. */
const ZHIPU: Readonly<Record<string, KnownError>> = {
  '1000': { kind: 'authentication' },
  '1001': { kind: 'authentication' },
  '1002': { kind: 'authentication' },
  '1113': { kind: 'billing', retryable: false },
  '1211': { kind: 'not_found' },
  '1261': { kind: 'context_overflow', retryable: false },
  '1301': { kind: 'content_filter' },
  '1302': { kind: 'rate_limit' },
  '1303': { kind: 'rate_limit' },
  '1305': { kind: 'overloaded', retryable: true },
  '1308': { kind: 'quota', retryable: false },
  '1310': { kind: 'quota', retryable: false },
  '1312': { kind: 'overloaded', retryable: true },
};

/** MiniMax's `base_resp.status_code`. */
const MINIMAX: Readonly<Record<string, KnownError>> = {
  '1001': { kind: 'timeout', retryable: true },
  '1002': { kind: 'rate_limit' },
  '1004': { kind: 'authentication' },
  '1008': { kind: 'billing', retryable: false },
  '1026': { kind: 'content_filter' },
  '1027': { kind: 'content_filter' },
  '1039': { kind: 'rate_limit' },
  '2013': { kind: 'invalid_request' },
  '2049': { kind: 'authentication' },
  '2056': { kind: 'quota', retryable: false },
};

/** Error codes and types that are names. */
const NAMES: Readonly<Record<string, KnownError>> = {
  model_not_found: { kind: 'not_found' },
  DeploymentNotFound: { kind: 'not_found' },
  invalid_api_key: { kind: 'authentication' },
  authentication_error: { kind: 'authentication' },
  permission_error: { kind: 'permission' },
  rate_limit_exceeded: { kind: 'rate_limit' },
  rate_limit_error: { kind: 'rate_limit' },
  overloaded_error: { kind: 'overloaded' },
  content_filter: { kind: 'content_filter' },
  billing_error: { kind: 'billing', retryable: false },
  request_too_large: { kind: 'too_large' },
  timeout_error: { kind: 'timeout' },
  tool_use_failed: { kind: 'upstream', retryable: true },
};

const STATUSES: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid_request',
  401: 'authentication',
  402: 'billing',
  403: 'permission',
  404: 'not_found',
  405: 'invalid_request',
  408: 'timeout',
  409: 'conflict',
  413: 'too_large',
  415: 'invalid_request',
  422: 'invalid_request',
  429: 'rate_limit',
  503: 'overloaded',
  504: 'timeout',
  524: 'timeout',
  529: 'overloaded',
};

/** The kind of an error. `status` is 0 for an error inside a stream. */
export function kindOfError(status: number, error: ErrorText): KnownError {
  const words = `${error.code ?? ''} ${error.type ?? ''} ${error.message ?? error.body.slice(0, 2000)}`;
  const settled = status === 401 || status === 403;
  if (!settled && status !== 429 && OVERFLOW.test(words)) {
    return { kind: 'context_overflow', retryable: false };
  }
  const coded = memberOf(error.minimax ? MINIMAX : ZHIPU, error.code ?? '');
  if (coded !== undefined) return coded;
  if (!settled || status === 403) {
    if (QUOTA.test(words)) return { kind: 'quota', retryable: false };
    if (BILLING.test(words)) return { kind: 'billing', retryable: false };
  }
  if (status < 500 && status !== 429 && FILTERED.test(words)) return { kind: 'content_filter' };
  const byStatus = STATUSES[status] ?? (status >= 500 ? 'upstream' : undefined);
  if (byStatus !== undefined && byStatus !== 'invalid_request') {
    return byStatus === 'upstream' && OVERLOADED.test(words)
      ? { kind: 'overloaded' }
      : { kind: byStatus };
  }
  const byName = memberOf(NAMES, error.code ?? '') ?? memberOf(NAMES, error.type ?? '');
  if (byName !== undefined) return byName;
  if (OVERLOADED.test(words)) return { kind: 'overloaded' };
  if (byStatus !== undefined) return { kind: byStatus };
  return { kind: error.type === 'invalid_request_error' ? 'invalid_request' : 'upstream' };
}

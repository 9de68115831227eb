/** A vendor's refusal of a request, and each vendor's error body. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import type { FakeProtocol } from './answer.ts';

/** Thrown by the checks; the status is 400 by default. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly more: { status?: number; type?: string; param?: string | null; code?: string } = {},
  ) {
    super(message);
  }
}

/** Throws a 400 with the vendor's message. */
export function refuseWith(message: string, param?: string, code?: string): never {
  throw new Refusal(message, { param, code });
}

export function isRecord(value: unknown): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const MESSAGES_TYPE: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

const OPENAI_TYPE: Readonly<Record<number, string>> = {
  429: 'rate_limit_error',
  500: 'server_error',
  502: 'server_error',
  503: 'server_error',
  529: 'server_error',
};

const GOOGLE_STATUS: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

const WORDS: Readonly<Record<number, string>> = {
  401: 'invalid x-api-key',
  403: 'Your API key does not have permission to use the specified resource.',
  429: 'This request would exceed your rate limit.',
  500: 'Internal server error',
  503: 'The server is currently overloaded. Please try again later.',
  529: 'Overloaded',
};

/** The error body for a status in a vendor's own shape. */
export function errorBody(
  protocol: FakeProtocol,
  status: number,
  message = WORDS[status] ?? `Status ${status}`,
  more: { type?: string; param?: string | null; code?: string } = {},
): JsonObject {
  if (protocol === 'anthropic-messages') {
    return {
      type: 'error',
      error: { type: more.type ?? MESSAGES_TYPE[status] ?? 'api_error', message },
      request_id: 'req_011CFakeFakeFakeFakeFake',
    };
  }
  if (protocol === 'google-gemini') {
    return {
      error: { code: status, message, status: more.code ?? GOOGLE_STATUS[status] ?? 'INTERNAL' },
    };
  }
  const type = more.type ?? OPENAI_TYPE[status] ?? 'invalid_request_error';
  return { error: { message, type, param: more.param ?? null, code: more.code ?? null } };
}

/** Each vendor's answer when the prompt is too long for the model. */
export function contextOverflow(protocol: FakeProtocol): { status: number; body: JsonObject } {
  const status = 400;
  if (protocol === 'anthropic-messages') {
    const message = 'prompt is too long: 210000 tokens > 200000 maximum';
    return { status, body: errorBody(protocol, status, message) };
  }
  if (protocol === 'google-gemini') {
    const message =
      'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).';
    return { status, body: errorBody(protocol, status, message) };
  }
  const textPart =
    protocol === 'openai-chat'
      ? "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens. Please reduce the length of the messages."
      : 'Your input exceeds the context window of this model. Please adjust your input and try again.';
  const param = protocol === 'openai-chat' ? 'messages' : 'input';
  return {
    status,
    body: errorBody(protocol, status, textPart, { param, code: 'context_length_exceeded' }),
  };
}

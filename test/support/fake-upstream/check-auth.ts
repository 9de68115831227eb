/** The credentials and headers that each vendor requires. */

import type { FakeProtocol } from './answer.ts';
import { Refusal } from './refusal.ts';

/** @throws Refusal 401 (or 400 for a missing version) with the vendor's message */
export function checkAuth(
  protocol: FakeProtocol,
  headers: Record<string, string>,
  keys?: string[],
): void {
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) {
    throw new Refusal(
      protocol === 'anthropic-messages'
        ? 'content-type: application/json is required'
        : "Unsupported Content-Type header. Expected 'application/json'.",
      { status: protocol === 'anthropic-messages' ? 400 : 415 },
    );
  }
  if (protocol === 'google-gemini') {
    const key = headers['x-goog-api-key'];
    if (!key) {
      throw new Refusal(
        "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
        { status: 403 },
      );
    }
    if (keys && !keys.includes(key)) {
      throw new Refusal('API key not valid. Please pass a valid API key.');
    }
    return;
  }
  const bearer = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1];
  if (protocol === 'anthropic-messages') {
    const key = headers['x-api-key'] ?? bearer;
    if (!key) throw new Refusal('x-api-key header is required', { status: 401 });
    if (keys && !keys.includes(key)) throw new Refusal('invalid x-api-key', { status: 401 });
    if (!/^\d{4}-\d{2}-\d{2}$/.test(headers['anthropic-version'] ?? '')) {
      throw new Refusal('anthropic-version: header is required');
    }
    return;
  }
  if (!bearer) {
    throw new Refusal(
      "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
      { status: 401, type: 'invalid_request_error' },
    );
  }
  if (keys && !keys.includes(bearer)) {
    throw new Refusal('Incorrect API key provided.', {
      status: 401,
      type: 'invalid_request_error',
      code: 'invalid_api_key',
    });
  }
}

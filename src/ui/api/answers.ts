/** Responses of the API: JSON, text and failures, with headers that keep browsers from rendering or caching them. */

import { asGatewayError } from '../../conversation/errors.ts';
import { SAFE_HEADERS } from '../serve-page.ts';
import type { ApiFailure } from './api.ts';

/** Recorded content stays out of caches. */
const PRIVATE = { ...SAFE_HEADERS, 'cache-control': 'no-store' };

export function json(value: unknown, status = 200, more: Readonly<Record<string, string>> = {}) {
  return new Response(JSON.stringify(value), {
    status,
    headers: { ...PRIVATE, 'content-type': 'application/json', ...more },
  });
}

/** Text or bytes as plain text, never rendered as a page. */
export function plain(
  body: string | Uint8Array,
  more: Readonly<Record<string, string>> = {},
): Response {
  return new Response(body as string | Uint8Array<ArrayBuffer>, {
    headers: { ...PRIVATE, 'content-type': 'text/plain; charset=utf-8', ...more },
  });
}

export const empty = (status: number) => new Response(null, { status, headers: PRIVATE });

/** Headers of an event stream. */
export const STREAM_HEADERS = {
  ...PRIVATE,
  'content-type': 'text/event-stream',
  // Keeps nginx and similar proxies from buffering events.
  'x-accel-buffering': 'no',
};

export function failure(thrown: unknown): Response {
  const { kind, message, code, status } = asGatewayError(thrown);
  const body: ApiFailure = { error: { kind, message, ...(code !== undefined && { code }) } };
  return json(body, status);
}

/** Answers of the API: JSON, text and failures, each with headers that let a browser do nothing else with them. */

import { asGatewayError } from '../../conversation/errors.ts';
import { SAFE_HEADERS } from '../serve-page.ts';
import type { ApiFailure } from './api.ts';

/** Nothing of what was recorded stays in a cache. */
const PRIVATE = { ...SAFE_HEADERS, 'cache-control': 'no-store' };

export function json(value: unknown, status = 200, more: Readonly<Record<string, string>> = {}) {
  return new Response(JSON.stringify(value), {
    status,
    headers: { ...PRIVATE, 'content-type': 'application/json', ...more },
  });
}

/** Text or bytes that are shown as they are, never as a page. */
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
  // Nginx and the like would hold events back.
  'x-accel-buffering': 'no',
};

export function failure(thrown: unknown): Response {
  const { kind, message, code, status } = asGatewayError(thrown);
  const body: ApiFailure = { error: { kind, message, ...(code !== undefined && { code }) } };
  return json(body, status);
}

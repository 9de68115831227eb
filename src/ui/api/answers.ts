/** Responses of the API: JSON, text and failures, with headers that keep browsers from rendering or caching them. */

import { asGatewayError } from '../../conversation/errors.ts';
import type { Json } from '../../lib/json/json.ts';
import { jsonTextSteps } from '../../lib/json/write-steps.ts';
import { runInSlices, type Steps } from '../../lib/loop/steps.ts';
import { SAFE_HEADERS } from '../serve-page.ts';

/** Recorded content stays out of caches. */
export const PRIVATE = { ...SAFE_HEADERS, 'cache-control': 'no-store' };

export function json(value: unknown, status = 200) {
  return new Response(JSON.stringify(value), {
    status,
    headers: { ...PRIVATE, 'content-type': 'application/json' },
  });
}

/** JSON of what can be large: it is made and written while other work goes on. */
export async function jsonInSlices(
  steps: Steps<object>,
  more: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const value = await runInSlices(steps);
  const pieces = await runInSlices(jsonTextSteps(value as Json));
  const headers = { ...PRIVATE, 'content-type': 'application/json', ...more };
  return new Response(pieces.length === 1 ? pieces[0] : streamOf(pieces), { headers });
}

/** Each piece is encoded when the connection takes it. */
const streamOf = (pieces: readonly string[]): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder();
  let at = 0;
  return new ReadableStream({
    pull(to) {
      if (at < pieces.length) to.enqueue(encoder.encode(pieces[at++]));
      else to.close();
    },
  });
};

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

/** Body of every failure. */
export interface ApiFailure {
  readonly error: { readonly kind: string; readonly message: string; readonly code?: string };
}

export function failure(thrown: unknown): Response {
  const { kind, message, code, status } = asGatewayError(thrown);
  const body: ApiFailure = { error: { kind, message, ...(code !== undefined && { code }) } };
  return json(body, status);
}

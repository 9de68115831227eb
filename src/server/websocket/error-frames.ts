/** Errors as frames of a WebSocket: the socket stays open behind them. */

import type { Codec } from '../../codecs/codec.ts';
import type { GatewayError } from '../../conversation/errors.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';

export interface ErrorFrame {
  readonly status: number;
  /** The lane; undefined for the default one. */
  readonly streamId: string | undefined;
  readonly error: JsonObject;
  /** Those of the same answer by HTTP. */
  readonly headers: Readonly<Record<string, string>>;
}

// A frame has no body.
const OF_THE_BODY = new Set(['content-type', 'content-length', 'content-encoding']);

/** `{"type":"error","status":400,"error":{…},"headers":{…}}`, as clients map it to an error of HTTP. */
export function errorFrame({ status, streamId, error, headers }: ErrorFrame): string {
  return JSON.stringify({
    type: 'error',
    status,
    ...(streamId === undefined ? {} : { stream_id: streamId }),
    error,
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
  });
}

/** An error of this gateway in the words of its protocol. */
export function gatewayErrorFrame(
  codec: Codec,
  error: GatewayError,
  requestId: string,
  streamId?: string,
): string {
  const { status, headers, body } = codec.encodeError(error, requestId);
  return errorFrame({ status, streamId, error: errorIn(body), headers });
}

/** An answer of HTTP that is an error. */
export async function answerErrorFrame(answer: Response, streamId?: string): Promise<string> {
  const text = await answer.text();
  const headers: Record<string, string> = {};
  for (const [name, value] of answer.headers) if (!OF_THE_BODY.has(name)) headers[name] = value;
  const { status } = answer;
  const error = errorIn(tryParse(text) ?? text.slice(0, 500));
  return errorFrame({ status, streamId, error, headers });
}

/** The error object of a body, whatever the shape that a vendor gave it. */
function errorIn(body: Json): JsonObject {
  const inner = isObject(body) ? (body.error ?? body) : body;
  return isObject(inner) ? inner : { type: 'server_error', message: String(inner) };
}

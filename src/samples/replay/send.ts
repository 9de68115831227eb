/** Sends a request through a gateway in this process and waits for the whole answer. */

import type { Codec } from '../../codecs/codec.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, tryParse } from '../../lib/json/json.ts';
import { percentDecoded } from '../../lib/text/printable-text.ts';
import type { InProcessGateway } from '../in-process-gateway.ts';
import { answerText, outcomeOf, type RequestOutcome } from './outcome.ts';

export interface SendableRequest {
  readonly protocol: ProtocolName;
  readonly body: Uint8Array;
  readonly headers: Headers;
  readonly search: string;
}

/** Times in milliseconds. */
export interface SendResult extends RequestOutcome {
  readonly id: string;
  readonly target: string;
  readonly notes: string;
  readonly firstByte: number | undefined;
  readonly total: number;
  /** The text of the answer; undefined for an error. */
  readonly answer: string | undefined;
  /** Seconds to wait, as the vendor asks. */
  readonly retryAfter: number | undefined;
}

/** The path of each protocol's model requests; Gemini's goes on with what its body says. */
const MODEL_PATHS: Readonly<Record<ProtocolName, string>> = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
  'google-gemini': '/v1beta/models/',
};

/** Where a request of this gateway goes: path and query. @param search the client's own query, '' or `?…` */
export function requestTarget(protocol: ProtocolName, body: Uint8Array, search: string): string {
  const path = MODEL_PATHS[protocol];
  if (protocol !== 'google-gemini') return path + search;
  const value = tryParse(Buffer.from(body).toString());
  const { model, stream } = isObject(value) ? value : {};
  const name = encodeURIComponent(typeof model === 'string' ? model : '');
  const method = stream === true ? ':streamGenerateContent?alt=sse' : ':generateContent';
  const more = search === '' ? '' : (stream === true ? '&' : '?') + search.slice(1);
  return path + name + method + more;
}

/** Rejects only when `signal` fires. */
export async function send(
  gateway: InProcessGateway,
  protocol: Codec,
  { body, headers, search }: SendableRequest,
  signal?: AbortSignal,
): Promise<SendResult> {
  const started = performance.now();
  const sent = new Headers(headers);
  sent.set('content-type', 'application/json');
  sent.set('host', 'localhost');
  const request = new Request(`http://localhost${requestTarget(protocol.name, body, search)}`, {
    method: 'POST',
    headers: sent,
    body: body as Uint8Array<ArrayBuffer>,
    ...(signal !== undefined && { signal }),
  });
  const response = await gateway.handle(request);
  const chunks: Uint8Array[] = [];
  let firstByte: number | undefined;
  let reset = false;
  try {
    for await (const chunk of response.body ?? []) {
      firstByte ??= performance.now() - started;
      // Streams made in this process may hold text.
      chunks.push(typeof chunk === 'string' ? Buffer.from(chunk as string) : chunk);
    }
  } catch (thrown) {
    if (signal?.aborted === true) throw thrown;
    reset = true;
  }
  const { status } = response;
  const answered = { status, headers: response.headers, body: Buffer.concat(chunks), reset };
  const after = Number(response.headers.get('retry-after') ?? Number.NaN);
  return {
    ...outcomeOf(protocol, answered),
    id: response.headers.get('x-hopgate-request-id') ?? '',
    target: percentDecoded(response.headers.get('x-hopgate-target') ?? ''),
    notes: response.headers.get('x-hopgate-notes') ?? '',
    firstByte,
    total: performance.now() - started,
    answer: answerText(protocol, body, answered),
    retryAfter: Number.isNaN(after) ? undefined : after,
  };
}

/** The built-in demo model: an OpenAI-compatible upstream inside the process, for when there is no other. */

import { asGatewayError, type GatewayError } from '../../conversation/errors.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import { tryParse } from '../../lib/json/json.ts';
import { planAnswer } from './answer.ts';
import { completion, deliver, frames, hashId, pacedStream } from './reply.ts';
import { readRequest } from './request.ts';

export interface DemoOptions {
  /** Milliseconds per word of a stream, about 25 by default; 0: as fast as it is read. */
  readonly pace?: number;
  /** Milliseconds since 1970; the one thing in an answer that the request does not decide. */
  readonly now?: () => number;
}

export interface DemoCall {
  /** Behind the base URL: `/chat/completions` or `/models`. */
  readonly path: string;
  readonly headers: ReadonlyHeaders;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export const DEMO_MODEL = 'demo';

const utf8 = new TextDecoder();

function json(status: number, body: unknown, id: string): Response {
  return Response.json(body, { status, headers: { 'x-request-id': id } });
}

function failure(error: GatewayError, id: string): Response {
  const { message, param = null, code = null, status } = error;
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return json(status, { error: { message, type, param, code } }, id);
}

/**
 * The demo model as a transport: takes what would go to a vendor of the Chat Completions protocol and
 * answers as one does, errors included. Any model name is served.
 * @returns rejects with the signal's reason where it is aborted already; a stream is errored with it
 */
export function demoTransport(options: DemoOptions = {}): (call: DemoCall) => Promise<Response> {
  const pace = options.pace ?? 25;
  const now = options.now ?? Date.now;
  return async ({ path, body, signal }) => {
    signal.throwIfAborted();
    const created = Math.floor(now() / 1000);
    const requestId = hashId('req_', body);
    const route = path.split('?')[0]!;
    const model = { id: DEMO_MODEL, object: 'model', created, owned_by: 'hopgate' };
    if (route.endsWith('/models')) return json(200, { object: 'list', data: [model] }, requestId);
    if (!route.endsWith('/chat/completions')) {
      const message = `Unknown request URL: ${route}.`;
      const error = { message, type: 'invalid_request_error', param: null, code: 'unknown_url' };
      return json(404, { error }, requestId);
    }
    try {
      const request = readRequest(tryParse(utf8.decode(body)));
      const head = { id: hashId('chatcmpl-', body), model: request.model, created };
      const delivery = deliver(planAnswer(request), request);
      if (!request.stream) return json(200, completion(head, delivery), requestId);
      return new Response(pacedStream(frames(head, delivery, request.includeUsage), pace, signal), {
        headers: {
          'content-type': 'text/event-stream; charset=utf-8',
          'cache-control': 'no-cache',
          'x-request-id': requestId,
        },
      });
    } catch (error) {
      return failure(asGatewayError(error), requestId);
    }
  };
}

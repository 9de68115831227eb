/** Errors outside an exchange, in the shape of the API that the client speaks. */

import type { Codec } from '../codecs/codec.ts';
import { asGatewayError, GatewayError } from '../conversation/errors.ts';
import { errorResponse } from '../gateway/error-response.ts';
import { type Principal, WITHOUT_KEY } from '../keys/principal.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { requestId } from '../lib/text/ids.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { type Access, checkOneHost } from './auth.ts';
import { apiOf, KNOWN_ENDPOINTS, methodsAt, nearestEndpoint, type Route } from './endpoints.ts';
import { localUrl, pathOf } from './request-path.ts';

export interface ErrorResponsesOptions {
  /** The shape of errors where the request does not tell its API. */
  readonly fallback: Codec;
  /** The codec whose clients show themselves by an `anthropic-version` or `x-api-key` header. */
  readonly anthropic: Codec;
  /** The codec whose clients show themselves by an `x-goog-api-key` header. */
  readonly google: Codec;
  readonly access: () => Access;
  /** A request to a path, or with a method, that this gateway does not have. */
  readonly onUnknownPath: (request: Request, about: UnknownPath) => void;
}

/** Who may read what tells of all keys: metrics, and the health of targets and engines. */
export interface MayOperate {
  /** No client's key is needed. */
  readonly isOperator: (headers: Headers) => boolean;
  readonly seesAll: (principal: Principal) => boolean;
}

export interface UnknownPath {
  readonly method: string;
  /** Printable, and shortened to 200 characters. */
  readonly path: string;
  /** What the request probably meant. */
  readonly use: string | undefined;
}

export class ErrorResponses {
  constructor(private readonly options: ErrorResponsesOptions) {}

  /** The codec for errors and models: by the path, else by the client's headers. */
  codecOf(request: Request): Codec {
    const { fallback, anthropic, google } = this.options;
    const api = apiOf(pathOf(request.url), request.method);
    if (api !== undefined) return { openai: fallback, anthropic, google }[api];
    const { headers } = request;
    if (headers.has('x-goog-api-key')) return google;
    const isAnthropic =
      headers.has('anthropic-version') ||
      (headers.has('x-api-key') && !headers.has('authorization'));
    return isAnthropic ? anthropic : fallback;
  }

  /** Does the client speak Messages? */
  isAnthropic(request: Request): boolean {
    return this.codecOf(request) === this.options.anthropic;
  }

  /** Does the client speak Gemini? */
  isGoogle(request: Request): boolean {
    return this.codecOf(request) === this.options.google;
  }

  /** Whatever was thrown, as an answer. */
  response(request: Request, thrown: unknown): Response {
    const answer = errorResponse(this.codecOf(request), asGatewayError(thrown), {
      requestId: requestId(),
      target: undefined,
      notes: undefined,
    });
    return request.headers.has('upgrade') ? lastAnswer(answer) : answer;
  }

  /** Answers a request that may ask; never rejects. `open`: no key is needed. */
  async guarded(
    request: Request,
    answer: (principal: Principal) => Response | Promise<Response>,
    open = false,
  ): Promise<Response> {
    try {
      if (open) checkOneHost(request.headers);
      const principal = open ? WITHOUT_KEY : await this.options.access()(this.#headersOf(request));
      return await answer(principal);
    } catch (thrown) {
      return this.response(request, thrown);
    }
  }

  /** The same for what tells of all keys: a key that sees only its own is refused. */
  operators(request: Request, answer: () => Response | Promise<Response>, may: MayOperate) {
    const { isOperator, seesAll } = may;
    return this.guarded(
      request,
      (principal) => {
        if (isOperator(request.headers) || seesAll(principal)) return answer();
        const message =
          'This names all keys: use an admin key or a key with "sees: all", or set auth.metrics.';
        const options = { code: 'not_an_operator', retryable: false } as const;
        throw new GatewayError('permission', message, options);
      },
      isOperator(request.headers),
    );
  }

  /** The headers; for Google's API with the key that its clients may put into the query. */
  #headersOf(request: Request): ReadonlyHeaders {
    const key =
      this.codecOf(request) === this.options.google && !request.headers.has('x-goog-api-key')
        ? localUrl(request.url).searchParams.get('key')
        : null;
    if (!key || request.headers.has('authorization')) return request.headers;
    const headers = new Headers(request.headers);
    headers.set('x-goog-api-key', key);
    return headers;
  }

  /** Elysia's error handler for an app with these routes. */
  handle(routes: () => readonly Route[]) {
    return ({ error, code, request }: { error: unknown; code: unknown; request: Request }) =>
      code === 'NOT_FOUND' ? this.#notFound(request, routes()) : this.response(request, error);
  }

  /** What no route can read: a Host that is none, and methods for proxies. Undefined: it can be answered. */
  refusalOf(request: Request): Response | undefined {
    if (request.method === 'CONNECT' || request.method === 'TRACE') {
      const message = `This is no proxy: ${request.method} is not offered.`;
      const answer = this.response(request, notAllowed(message));
      answer.headers.set('allow', 'GET, POST, DELETE');
      return lastAnswer(answer);
    }
    try {
      checkOneHost(request.headers);
    } catch (thrown) {
      return lastAnswer(this.response(request, thrown));
    }
    if (URL.canParse(request.url)) return undefined;
    const message = 'The Host header of this request is not the name of a host.';
    const error = new GatewayError('invalid_request', message, { code: 'invalid_host' });
    return this.response(request, error);
  }

  /** 405. @param allowed the methods of this path */
  methodNotAllowed(request: Request, allowed: readonly string[]): Response {
    const { method } = request;
    const path = printableLine(pathOf(request.url), 200);
    const use = allowed.join(' or ');
    this.options.onUnknownPath(request, { method, path, use });
    const answer = this.response(
      request,
      notAllowed(`${method} is not offered at ${path}; use ${use}.`),
    );
    answer.headers.set('allow', allowed.join(', '));
    return answer;
  }

  /** A method that a path does not take (405), a preflight request of another site, or no such path. */
  #notFound(request: Request, routes: readonly Route[]): Response {
    const { method, headers } = request;
    const path = pathOf(request.url);
    if (method === 'OPTIONS' && headers.has('origin')) {
      const message =
        'Pages of this site may not use this gateway: listen.cors does not name its origin.';
      return this.response(
        request,
        new GatewayError('permission', message, { code: 'origin_not_allowed', retryable: false }),
      );
    }
    const allowed = methodsAt(routes, path);
    if (allowed !== undefined && !allowed.includes(method)) {
      return this.methodNotAllowed(request, allowed);
    }
    const shown = printableLine(path, 200);
    const near = nearestEndpoint(method, path);
    const meant = near === undefined ? '' : ` Did you mean ${near}?`;
    this.options.onUnknownPath(request, { method, path: shown, use: near });
    const message = `There is nothing at ${method} ${shown}.${meant} This gateway has ${KNOWN_ENDPOINTS.join(', ')}.`;
    // Messages has no codes: there it stands among the details.
    const code = 'unknown_path';
    const error = new GatewayError('not_found', message, { code, details: { code } });
    return this.response(request, error);
  }
}

/** What follows on the connection is no request: a proxy may have begun to tunnel before it reads the refusal. */
function lastAnswer(answer: Response): Response {
  answer.headers.set('connection', 'close');
  return answer;
}

/** An upgrade that is refused. */
export const refusedUpgrade = (codec: Codec, error: GatewayError, id: string): Response =>
  lastAnswer(errorResponse(codec, error, { requestId: id, target: undefined, notes: undefined }));

const notAllowed = (message: string) =>
  new GatewayError('invalid_request', message, { status: 405, code: 'method_not_allowed' });

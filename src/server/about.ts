/** What the gateway tells of itself: models, metrics, the manual, and the answer to every path that is none. */

import { Elysia } from 'elysia';
import type { Codec, ModelEntry } from '../codecs/codec.ts';
import { asGatewayError, GatewayError, invalid } from '../conversation/errors.ts';
import { errorResponse } from '../gateway/error-response.ts';
import type { JsonObject } from '../lib/json/json.ts';
import { requestId } from '../lib/text/ids.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { METRICS_CONTENT_TYPE } from '../telemetry/gateway-metrics.ts';
import { type Access, isLocalRequest } from './auth.ts';
import { apiOf, KNOWN_ENDPOINTS, methodsAt } from './endpoints.ts';
import { json } from './json.ts';
import { localUrl, pathOf } from './request-path.ts';

export interface AboutRoutesOptions {
  /** In what shape a failure outside every protocol is told. */
  readonly fallback: Codec;
  /** The protocol whose clients show themselves by an `anthropic-version` or `x-api-key` header. */
  readonly anthropic: Codec;
  readonly access: () => Access;
  /** All that can be listed; vendors are asked for theirs, with a short deadline. */
  readonly models: () => Promise<readonly ModelEntry[]>;
  /** A name that some route takes, listed or not. */
  readonly model: (id: string) => ModelEntry | undefined;
  readonly metrics: () => string | Promise<string>;
  /** `/metrics` is served without a key to whoever names this machine as its host. */
  readonly metricsOpen: boolean;
  /** A page of the manual by its path; `asked`: what to search it for. */
  readonly docs: (path: string, asked?: string) => Response | undefined;
  readonly version: string;
}

/** In whose shape errors and models are told: by the path, else by how the client shows itself. */
function dialectOf(request: Request, { fallback, anthropic }: AboutRoutesOptions): Codec {
  const api = apiOf(pathOf(request.url));
  if (api !== undefined) return api === 'anthropic' ? anthropic : fallback;
  const { headers } = request;
  const shown =
    headers.has('anthropic-version') || (headers.has('x-api-key') && !headers.has('authorization'));
  return shown ? anthropic : fallback;
}

const failed = (request: Request, options: AboutRoutesOptions, thrown: unknown): Response =>
  errorResponse(dialectOf(request, options), asGatewayError(thrown), {
    requestId: requestId(),
    target: undefined,
    notes: undefined,
  });

/** What no route can read: a Host that is none, and methods that are for proxies. Undefined: it can be answered. */
export function refusalOf(request: Request, options: AboutRoutesOptions): Response | undefined {
  if (request.method === 'CONNECT' || request.method === 'TRACE') {
    const words = `This is no proxy: ${request.method} is not offered.`;
    const answer = failed(request, options, notAllowed(words));
    answer.headers.set('allow', 'GET, POST, DELETE');
    answer.headers.set('connection', 'close');
    return answer;
  }
  if (URL.canParse(request.url)) return undefined;
  const words = 'The Host header of this request is not the name of a host.';
  const error = new GatewayError('invalid_request', words, { code: 'invalid_host' });
  return failed(request, options, error);
}

const notAllowed = (words: string) =>
  new GatewayError('invalid_request', words, { status: 405, code: 'method_not_allowed' });

/**
 * Everything but the protocols' own routes, the page and the memory. Nothing here touches `set`, and no
 * hook parses: answers go out as the `Response` that they are.
 */
export function aboutRoutes(options: AboutRoutesOptions) {
  const guarded = async (request: Request, answer: () => Response | Promise<Response>) => {
    try {
      options.access()(request.headers);
      return await answer();
    } catch (thrown) {
      return failed(request, options, thrown);
    }
  };
  const manual = (request: Request) => {
    const { pathname, searchParams } = new URL(request.url);
    const page = options.docs(pathname, searchParams.get('q') ?? undefined);
    if (page !== undefined) return page;
    const words = `There is no page ${printableLine(pathname, 200)} in the manual.`;
    return failed(request, options, new GatewayError('not_found', words, { code: 'not_found' }));
  };
  const about = () =>
    json({ name: 'hopgate', version: options.version, endpoints: KNOWN_ENDPOINTS });
  const list = ({ request }: { request: Request }) =>
    guarded(request, async () => {
      const dialect = dialectOf(request, options);
      const models = await options.models();
      return json(
        dialect === options.anthropic
          ? pageOf(models, localUrl(request.url).searchParams, dialect)
          : dialect.encodeModels(models),
      );
    });
  const listed = async (name: string) => (await options.models()).find(({ id }) => id === name);
  const one = ({ request, params }: { request: Request; params: { readonly '*': string } }) =>
    guarded(request, async () => {
      const asked = params['*'];
      const plain = unescaped(asked);
      const found = options.model(plain) ?? options.model(asked) ?? (await listed(plain));
      if (found === undefined) {
        throw new GatewayError(
          'not_found',
          `The model '${printableLine(plain, 200)}' does not exist here.`,
          { code: 'model_not_found', param: 'model' },
        );
      }
      const { data } = dialectOf(request, options).encodeModels([found]);
      return json(Array.isArray(data) ? data[0] : found);
    });
  return new Elysia({ name: 'about' })
    .head('/', () => new Response(null))
    .get('/', about)
    .get('/metrics', ({ request }) => {
      const answer = async () =>
        new Response(await options.metrics(), {
          headers: { 'content-type': METRICS_CONTENT_TYPE },
        });
      const open = options.metricsOpen && isLocalRequest(request.headers);
      return open ? answer() : guarded(request, answer);
    })
    .get('/docs', ({ request }) => manual(request))
    .get('/docs/*', ({ request }) => manual(request))
    .get('/v1/models', list)
    .get('/models', list)
    .get('/v1/models/*', one)
    .get('/models/*', one)
    .onError({ as: 'global' }, ({ error, code, request }) =>
      code === 'NOT_FOUND' ? nothingAt(request, options) : failed(request, options, error),
    );
}

/** What is not found: a method that a path does not take (405), a page of another site that asks first, or no such path. */
function nothingAt(request: Request, options: AboutRoutesOptions): Response {
  const { method, headers } = request;
  const path = pathOf(request.url);
  if (method === 'OPTIONS' && headers.has('origin')) {
    const words =
      'Pages of other sites may not use this gateway: it sends no CORS headers. Put a proxy in front that does.';
    return failed(
      request,
      options,
      new GatewayError('permission', words, { code: 'origin_not_allowed', retryable: false }),
    );
  }
  const shown = printableLine(path, 200);
  const allowed = methodsAt(path);
  if (allowed !== undefined && !allowed.includes(method)) {
    const words = `${method} is not offered at ${shown}; use ${allowed.join(' or ')}.`;
    const answer = failed(request, options, notAllowed(words));
    answer.headers.set('allow', allowed.join(', '));
    return answer;
  }
  const words = `There is nothing at ${method} ${shown}. This gateway has ${KNOWN_ENDPOINTS.join(', ')}.`;
  return failed(request, options, new GatewayError('not_found', words, { code: 'unknown_url' }));
}

/**
 * Messages' list of models: all of them, or the page that `limit`, `after_id` and `before_id` name
 * (https://docs.anthropic.com/en/api/models-list).
 * @throws GatewayError invalid_request
 */
function pageOf(
  models: readonly ModelEntry[],
  query: URLSearchParams,
  protocol: Codec,
): JsonObject {
  const asked = query.get('limit');
  const limit = asked === null ? models.length : Number(asked);
  if (asked !== null && !(Number.isInteger(limit) && limit >= 1 && limit <= 1000)) {
    throw invalid("'limit' must be a whole number from 1 to 1000.", 'limit');
  }
  const place = (name: string): number | undefined => {
    const id = query.get(name);
    if (id === null) return undefined;
    const at = models.findIndex((model) => model.id === id);
    if (at < 0) throw invalid(`'${name}' is not the id of a model here.`, name);
    return at;
  };
  const after = place('after_id');
  const before = place('before_id');
  if (after !== undefined && before !== undefined) {
    throw invalid("'after_id' and 'before_id' exclude each other.", 'before_id');
  }
  // Backwards, a page is the one that ends right before the model that was named.
  const start = before === undefined ? (after ?? -1) + 1 : Math.max(0, before - limit);
  const end = before ?? Math.min(models.length, start + limit);
  const page = protocol.encodeModels(models.slice(start, end));
  return { ...page, has_more: before === undefined ? end < models.length : start > 0 };
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What the gateway tells of itself: models, metrics, the manual, and the answer to every path that is none. */

import { Elysia } from 'elysia';
import { asGatewayError, GatewayError } from '../conversation/errors.ts';
import { errorResponse } from '../gateway/error-response.ts';
import { requestId } from '../lib/ids.ts';
import type { ModelEntry, Protocol } from '../protocols/protocol.ts';
import { METRICS_CONTENT_TYPE } from '../telemetry/gateway-metrics.ts';
import type { Access } from './access.ts';
import { json } from './json.ts';

export interface AboutRoutesOptions {
  /** In what shape a failure outside every protocol is told. */
  readonly fallback: Protocol;
  /** The protocol whose clients show themselves by an `anthropic-version` or `x-api-key` header. */
  readonly anthropic: Protocol;
  readonly access: () => Access;
  readonly models: () => readonly ModelEntry[];
  readonly metrics: () => string;
  /** `/metrics` is served without a key. */
  readonly metricsOpen: boolean;
  /** A page of the manual by its path; `asked`: what to search it for. */
  readonly docs: (path: string, asked?: string) => Response | undefined;
  readonly version: string;
}

/**
 * Everything but the protocols' own routes, the page and the memory. Nothing here touches `set`, and no
 * hook parses: answers go out as the `Response` that they are.
 */
export function aboutRoutes(options: AboutRoutesOptions) {
  const { fallback, anthropic } = options;
  const dialect = (request: Request) =>
    request.headers.has('anthropic-version') ||
    (request.headers.has('x-api-key') && !request.headers.has('authorization'))
      ? anthropic
      : fallback;
  const own = () => ({ requestId: requestId(), target: undefined, notes: undefined });
  const guarded = (request: Request, answer: () => Response) => {
    try {
      options.access()(request.headers);
      return answer();
    } catch (thrown) {
      return errorResponse(dialect(request), asGatewayError(thrown), own());
    }
  };
  const manual = (request: Request) => {
    const { pathname, searchParams } = new URL(request.url);
    const page = options.docs(pathname, searchParams.get('q') ?? undefined);
    if (page !== undefined) return page;
    const error = new GatewayError('not_found', `There is no page ${pathname} in the manual.`);
    return errorResponse(dialect(request), error, own());
  };
  const about = () => json({ name: 'hopgate', version: options.version, endpoints: ENDPOINTS });
  return new Elysia({ name: 'about' })
    .head('/', () => new Response(null))
    .get('/', about)
    .get('/metrics', ({ request }) => {
      const answer = () =>
        new Response(options.metrics(), { headers: { 'content-type': METRICS_CONTENT_TYPE } });
      return options.metricsOpen ? answer() : guarded(request, answer);
    })
    .get('/docs', ({ request }) => manual(request))
    .get('/docs/*', ({ request }) => manual(request))
    .get('/v1/models', ({ request }) =>
      guarded(request, () => json(dialect(request).encodeModels(options.models()))),
    )
    .get('/v1/models/*', ({ request, params }) =>
      guarded(request, () => {
        const id = params['*'];
        const found = options.models().find((model) => model.id === id);
        if (found === undefined) {
          throw new GatewayError('not_found', `The model '${id}' does not exist here.`, {
            code: 'model_not_found',
            param: 'model',
          });
        }
        const { data } = dialect(request).encodeModels([found]);
        return json(Array.isArray(data) ? data[0] : found);
      }),
    )
    .onError({ as: 'global' }, ({ error, code, request }) => {
      const thrown =
        code === 'NOT_FOUND'
          ? new GatewayError(
              'not_found',
              `There is nothing at ${request.method} ${new URL(request.url).pathname}.`,
            )
          : asGatewayError(error);
      return errorResponse(dialect(request), thrown, own());
    });
}

const ENDPOINTS = [
  'POST /v1/chat/completions',
  'POST /v1/responses',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
  'GET /v1/models',
  'GET /healthz',
  'GET /readyz',
  'GET /metrics',
  'GET /docs',
  'GET /ui',
];

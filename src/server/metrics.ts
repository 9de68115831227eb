/** `GET /metrics` in the Prometheus text format. */

import { Elysia } from 'elysia';
import { METRICS_CONTENT_TYPE } from '../telemetry/gateway-metrics.ts';
import type { ErrorResponses } from './errors.ts';

export interface MetricsOptions {
  readonly errors: ErrorResponses;
  readonly metricsText: () => string | Promise<string>;
  /** No client's key is needed of an operator. */
  readonly isOperator: (headers: Headers) => boolean;
}

export function metricsPlugin({ errors, metricsText, isOperator }: MetricsOptions) {
  return new Elysia({ name: 'metrics' }).get('/metrics', ({ request }) =>
    errors.guarded(
      request,
      async () =>
        new Response(await metricsText(), { headers: { 'content-type': METRICS_CONTENT_TYPE } }),
      isOperator(request.headers),
    ),
  );
}

/** `GET /metrics` in the Prometheus text format. */

import { Elysia } from 'elysia';
import { METRICS_CONTENT_TYPE } from '../telemetry/gateway-metrics.ts';
import { isLocalRequest } from './auth.ts';
import type { ErrorResponses } from './errors.ts';

export interface MetricsOptions {
  readonly errors: ErrorResponses;
  readonly metricsText: () => string | Promise<string>;
  /** No key is needed of a client that names this machine as its host. */
  readonly metricsOpen: () => boolean;
}

export function metricsPlugin({ errors, metricsText, metricsOpen }: MetricsOptions) {
  return new Elysia({ name: 'metrics' }).get('/metrics', ({ request }) =>
    errors.guarded(
      request,
      async () =>
        new Response(await metricsText(), { headers: { 'content-type': METRICS_CONTENT_TYPE } }),
      metricsOpen() && isLocalRequest(request.headers),
    ),
  );
}

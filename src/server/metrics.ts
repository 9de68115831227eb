/** `GET /metrics` in the Prometheus text format. */

import { Elysia } from 'elysia';
import { METRICS_CONTENT_TYPE } from '../telemetry/gateway-metrics.ts';
import type { ErrorResponses, MayOperate } from './errors.ts';

export interface MetricsOptions extends MayOperate {
  readonly errors: ErrorResponses;
  readonly metricsText: () => string | Promise<string>;
}

export function metricsPlugin({ errors, metricsText, ...may }: MetricsOptions) {
  return new Elysia({ name: 'metrics' }).get('/metrics', ({ request }) =>
    errors.operators(
      request,
      async () =>
        new Response(await metricsText(), { headers: { 'content-type': METRICS_CONTENT_TYPE } }),
      may,
    ),
  );
}

/** Routes about the gateway itself: `/`, health, metrics, and which targets and engines serve. */

import { Elysia } from 'elysia';
import type { RequestContext } from '../lib/http/routes.ts';
import { METRICS_CONTENT_TYPE } from '../telemetry/gateway-metrics.ts';
import type { HealthSnapshot } from '../upstream/health/snapshot.ts';
import { KNOWN_ENDPOINTS } from './endpoints.ts';
import type { ErrorResponses, MayOperate } from './errors.ts';

export interface HealthOptions {
  /** Undefined: ready; otherwise the reason why it is not. */
  readonly unready: () => string | undefined;
  /** The mark of the folder of the program's files, by which commands know whose files they see. */
  readonly homeMark?: () => string | undefined;
}

/** `GET /healthz` and `/readyz`. */
export function healthPlugin({ unready, homeMark }: HealthOptions) {
  return new Elysia({ name: 'health' })
    .get('/healthz', () => {
      const home = homeMark?.();
      return json(home === undefined ? { status: 'ok' } : { status: 'ok', home });
    })
    .get('/readyz', () => {
      const reason = unready();
      return reason === undefined
        ? json({ status: 'ready' })
        : json({ status: 'not ready', reason }, 503);
    });
}

/** `GET /`: name, version and endpoints as JSON; browsers are redirected to the page. */
export function aboutPlugin({ version }: { readonly version: string }) {
  return (
    new Elysia({ name: 'about' })
      .head('/', () => new Response(null))
      // Claude Code asks whether anything is there, older releases at `/`.
      .head('/api/hello', () => new Response(null))
      .get('/api/hello', () => json({ message: 'hello' }))
      .get('/', ({ request }: RequestContext) =>
        // Programs that do not care about the form send no `accept`, or one of everything.
        request.headers.get('accept')?.includes('text/html')
          ? new Response(null, { status: 302, headers: { location: '/ui', vary: 'accept' } })
          : json({ name: 'hopgate', version, endpoints: KNOWN_ENDPOINTS }),
      )
  );
}

interface MetricsOptions extends MayOperate {
  readonly errors: ErrorResponses;
  readonly metricsText: () => string | Promise<string>;
}

/** `GET /metrics` in the Prometheus text format. */
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

interface TargetHealthOptions extends MayOperate {
  readonly errors: ErrorResponses;
  readonly health: {
    snapshot(): HealthSnapshot;
    /** The shared engines by name, and what they have: keys, and the replicas. */
    engines(): { readonly engines: Readonly<Record<string, object>> };
  };
}

/** `GET /health/targets` and `/health/engines`: which serve, which do not, why, and since when. */
export function targetHealthPlugin({ errors, health, ...may }: TargetHealthOptions) {
  const answer =
    (report: () => object) =>
    ({ request }: { readonly request: Request }) =>
      errors.operators(request, () => json(report()), may);
  return new Elysia({ name: 'target-health' })
    .get('/health/targets', answer(health.snapshot))
    .get('/health/engines', answer(health.engines));
}

export const json = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } });

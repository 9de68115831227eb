/** `GET /health/targets` and `/health/engines`: which targets and engines serve, which do not, why, and since when. */

import { Elysia } from 'elysia';
import type { HealthSnapshot } from '../upstream/health/snapshot.ts';
import { isLocalRequest } from './auth.ts';
import type { ErrorResponses } from './errors.ts';
import { json } from './json.ts';

export interface TargetHealthOptions {
  readonly errors: ErrorResponses;
  readonly health: {
    snapshot(): HealthSnapshot;
    /** The shared engines by name, and what they have: keys, and the replicas. */
    engines(): { readonly engines: Readonly<Record<string, object>> };
  };
  /** As for `/metrics`: no key is needed of a client that names this machine as its host. */
  readonly metricsOpen: () => boolean;
}

export function targetHealthPlugin({ errors, health, metricsOpen }: TargetHealthOptions) {
  const answer =
    (report: () => object) =>
    ({ request }: { readonly request: Request }) =>
      errors.guarded(
        request,
        async () => json(report()),
        metricsOpen() && isLocalRequest(request.headers),
      );
  return new Elysia({ name: 'target-health' })
    .get('/health/targets', answer(health.snapshot))
    .get('/health/engines', answer(health.engines));
}

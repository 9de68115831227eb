/** `GET /health/targets`: which targets serve, which rest, why, and until when. */

import { Elysia } from 'elysia';
import type { HealthSnapshot } from '../upstream/health/snapshot.ts';
import { isLocalRequest } from './auth.ts';
import type { ErrorResponses } from './errors.ts';
import { json } from './json.ts';

export interface TargetHealthOptions {
  readonly errors: ErrorResponses;
  readonly health: { snapshot(): HealthSnapshot };
  /** As for `/metrics`: no key is needed of a client that names this machine as its host. */
  readonly metricsOpen: () => boolean;
}

export function targetHealthPlugin({ errors, health, metricsOpen }: TargetHealthOptions) {
  return new Elysia({ name: 'target-health' }).get('/health/targets', ({ request }) =>
    errors.guarded(
      request,
      async () => json(health.snapshot()),
      metricsOpen() && isLocalRequest(request.headers),
    ),
  );
}

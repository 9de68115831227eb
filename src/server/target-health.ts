/** `GET /health/targets` and `/health/engines`: which targets and engines serve, which do not, why, and since when. */

import { Elysia } from 'elysia';
import type { HealthSnapshot } from '../upstream/health/snapshot.ts';
import type { ErrorResponses, MayOperate } from './errors.ts';
import { json } from './json.ts';

export interface TargetHealthOptions extends MayOperate {
  readonly errors: ErrorResponses;
  readonly health: {
    snapshot(): HealthSnapshot;
    /** The shared engines by name, and what they have: keys, and the replicas. */
    engines(): { readonly engines: Readonly<Record<string, object>> };
  };
}

export function targetHealthPlugin({ errors, health, ...may }: TargetHealthOptions) {
  const answer =
    (report: () => object) =>
    ({ request }: { readonly request: Request }) =>
      errors.operators(request, () => json(report()), may);
  return new Elysia({ name: 'target-health' })
    .get('/health/targets', answer(health.snapshot))
    .get('/health/engines', answer(health.engines));
}

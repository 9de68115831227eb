/** `GET /v1/usage`: the holder of a key sees what is used and left of its limits and budgets. */

import { Elysia } from 'elysia';
import type { Principal } from '../keys/principal.ts';
import type { UsageReport } from './usage-report.ts';

export interface UsagePluginOptions {
  readonly errors: {
    guarded(
      request: Request,
      answer: (principal: Principal) => Promise<Response>,
    ): Promise<Response>;
  };
  readonly usage: (
    principal: Principal,
  ) => Promise<UsageReport & { readonly spent: object | null }>;
}

export function usagePlugin({ errors, usage }: UsagePluginOptions) {
  return new Elysia({ name: 'usage' }).get('/v1/usage', ({ request }) =>
    errors.guarded(request, async (principal) => Response.json(await usage(principal))),
  );
}

/** `GET /ui/api/reports/NAME`: usage, spend and health for a single user, where no key is needed. */

import { Elysia } from 'elysia';
import { needsKey } from '../../config/sections/auth.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { guard } from './guard.ts';
import type { UiOptions } from './options.ts';

export const reportRoutes = (options: UiOptions) =>
  new Elysia().use(guard(options)).get('/reports/:name', async ({ request, params }) => {
    if (needsKey(options.config().auth)) {
      const message = `GET /admin/v1/${params.name} has this, and takes an admin key.`;
      throw new GatewayError('permission', message);
    }
    const report = options.reports[params.name];
    if (report === undefined) throw new GatewayError('not_found', 'There is no such report.');
    const answer = await report(new URL(request.url).searchParams);
    answer.headers.set('cache-control', 'no-store');
    return answer;
  });

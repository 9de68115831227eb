/** `/ui/api/replay`, `/ui/api/bisect` and `/ui/api/jobs…`: jobs are begun, listed, followed and cancelled. */

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { GatewayError } from '../../../conversation/errors.ts';
import { empty, json } from '../answers.ts';
import type { ApiContext } from '../context.ts';
import { guard } from '../guard.ts';
import { checked, readJson } from '../json-body.ts';
import {
  BISECT_BODY,
  bisectJob,
  bisectPlan,
  REPLAY_BODY,
  replayJob,
  replayPlan,
} from './job-specs.ts';

const ONE_JOB = { params: Type.Object({ id: Type.String() }) };
/** Bytes of a request whose texts were edited. */
const EDITED_BYTES = 8 * 2 ** 20;

// Bodies are read after the guard and the check for several workers, and bounded.
const UNPARSED = { parse: 'none' } as const;

export const jobRoutes = (context: ApiContext) => {
  const { jobs, options } = context;
  const checkWorkers = (command: 'replay' | 'bisect') => {
    if (options.config().workers <= 1) return;
    const why = 'With several workers, a job cannot be followed from here:';
    throw new GatewayError('conflict', `${why} use "hopgate ${command}" on the command line.`);
  };
  return new Elysia()
    .use(guard(options))
    .get('/jobs', ({ viewer }) => json(jobs.list(viewer)))
    .get(
      '/jobs/:id',
      ({ params, request, viewer }) => jobs.follow(params.id, request, viewer),
      ONE_JOB,
    )
    .delete(
      '/jobs/:id',
      ({ params, viewer }) => {
        jobs.cancel(params.id, viewer);
        return empty(204);
      },
      { ...ONE_JOB, ...UNPARSED },
    )
    .post(
      '/replay/plan',
      async ({ request, viewer }) => {
        const body = checked(REPLAY_BODY, await readJson(request, EDITED_BYTES));
        return json(await replayPlan(body, viewer, context));
      },
      UNPARSED,
    )
    .post(
      '/bisect/plan',
      async ({ request, viewer }) => {
        const body = checked(BISECT_BODY, await readJson(request));
        return json(await bisectPlan(body, viewer, context));
      },
      UNPARSED,
    )
    .post(
      '/replay',
      async ({ request, viewer }) => {
        checkWorkers('replay');
        const body = checked(REPLAY_BODY, await readJson(request, EDITED_BYTES));
        return json(jobs.start(await replayJob(body, viewer, context), viewer), 202);
      },
      UNPARSED,
    )
    .post(
      '/bisect',
      async ({ request, viewer }) => {
        checkWorkers('bisect');
        const body = checked(BISECT_BODY, await readJson(request));
        return json(jobs.start(await bisectJob(body, viewer, context), viewer), 202);
      },
      UNPARSED,
    );
};

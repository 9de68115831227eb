/** `/ui/api/replay`, `/ui/api/bisect` and `/ui/api/jobs…`: jobs are begun, listed, followed and cancelled. */

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { GatewayError } from '../../../conversation/errors.ts';
import { empty, json } from '../answers.ts';
import type { ApiContext } from '../context.ts';
import { guard, type Viewer } from '../guard.ts';
import { readJson } from '../json-body.ts';
import type { JobView } from './api-jobs.ts';
import { type AskedJob, bisectJob, replayJob } from './job-specs.ts';

const ONE_JOB = { params: Type.Object({ id: Type.String() }) };

interface Kind {
  readonly job: AskedJob;
  /** Most bytes of a request; left out: as of any other. */
  readonly bytes?: number;
}

const KINDS: Readonly<Record<JobView['kind'], Kind>> = {
  // Its texts may be edited.
  replay: { job: replayJob, bytes: 8 * 2 ** 20 },
  bisect: { job: bisectJob },
};

// Bodies are read after the guard and the check for several workers, and bounded.
const UNPARSED = { parse: 'none' } as const;

interface Asked {
  readonly request: Request;
  readonly viewer: Viewer;
}

export const jobRoutes = (context: ApiContext) => {
  const { jobs, options } = context;
  const asked = async (kind: JobView['kind'], { request, viewer }: Asked) => {
    const { job, bytes } = KINDS[kind];
    return job(await readJson(request, bytes), viewer, context);
  };
  const plan = (kind: JobView['kind']) => async (one: Asked) =>
    json(await (await asked(kind, one)).plan());
  const start = (kind: JobView['kind']) => async (one: Asked) => {
    if (options.config().workers > 1) {
      const why = 'With several workers, a job cannot be followed from here:';
      throw new GatewayError('conflict', `${why} use "hopgate ${kind}" on the command line.`);
    }
    return json(jobs.start((await asked(kind, one)).job, one.viewer), 202);
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
    .post('/replay/plan', plan('replay'), UNPARSED)
    .post('/bisect/plan', plan('bisect'), UNPARSED)
    .post('/replay', start('replay'), UNPARSED)
    .post('/bisect', start('bisect'), UNPARSED);
};

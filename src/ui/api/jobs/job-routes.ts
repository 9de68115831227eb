/** `/ui/api/replay`, `/ui/api/bisect` and `/ui/api/jobs…`: jobs are begun, read and cancelled. */

import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { GatewayError, invalid } from '../../../conversation/errors.ts';
import type { Principal } from '../../../keys/principal.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { bisection, bisectionAsJson, DEFAULT_BUDGET } from '../../../samples/bisect/run.ts';
import {
  checkReplay,
  countRuns,
  type ReplayOptions,
} from '../../../samples/replay/check-replay.ts';
import { readEdit } from '../../../samples/replay/edits.ts';
import { checkTarget } from '../../../samples/replay/known-target.ts';
import { planBisection, planReplay } from '../../../samples/replay/plan.ts';
import { replay } from '../../../samples/replay/replay.ts';
import { runAsJson, runsAsJson } from '../../../samples/replay/runs.ts';
import { fromSample } from '../../../samples/replay/source.ts';
import type { RequestEdit, SpendPlan } from '../../../samples/replay/types.ts';
import { empty, json } from '../answers.ts';
import type { ApiContext } from '../context.ts';
import { guard, type Viewer } from '../guard.ts';
import { LIMITS } from '../info.ts';
import { checked, flag, offset, queryOf, readJson, shortText, wholeNumber } from '../parameters.ts';
import type { JobSpec } from './jobs.ts';

const COMMON = {
  id: shortText('id'),
  /** `client-request` when left out. */
  stage: shortText('stage'),
  /** `provider/model`. */
  to: shortText('to'),
  /** false: without any repair. */
  repair: flag('repair', true),
};

const TARGETS = { title: 'targets', description: 'a list of provider/model' };
const EDITS = { title: 'edits', description: 'a list of changes, each as MEMBER=VALUE' };

const REPLAY_BODY = Type.Object({
  ...COMMON,
  repeat: wholeNumber('repeat', { least: 1, most: LIMITS.runs, fallback: 1 }),
  /** Several targets, each a column of the result. */
  targets: Type.Array(Type.String({ ...TARGETS, maxLength: 300 }), {
    ...TARGETS,
    maxItems: 6,
    default: [],
  }),
  /** Changes to the body before it is sent, as `hopgate replay --edit` takes them: `MEMBER=VALUE`; null removes. */
  edits: Type.Array(Type.String(EDITS), { ...EDITS, maxItems: 100, default: [] }),
});

export type ReplayRequest = Partial<Static<typeof REPLAY_BODY>>;

const BISECT_BODY = Type.Object({
  ...COMMON,
  /** Most requests to send. */
  budget: wholeNumber('budget', { least: 1, most: LIMITS.budget, fallback: DEFAULT_BUDGET }),
});

export type BisectRequest = Partial<Static<typeof BISECT_BODY>>;

/** @throws GatewayError invalid_request */
function editOf(written: string): RequestEdit {
  const edit = readEdit(written);
  if (edit !== undefined) return edit;
  throw invalid(`"${written.slice(0, 100)}" is not a change: write MEMBER=VALUE.`, 'edits');
}

/** A job as it was asked for: the work, and what it would cost. @throws GatewayError for what is not there or not possible */
type AskedJob = (
  body: JsonObject,
  viewer: Viewer,
  context: ApiContext,
) => Promise<{ readonly job: JobSpec; plan(): SpendPlan | Promise<SpendPlan> }>;

/** Checked as far as it can be before anything is sent. */
const replayJob: AskedJob = async (sent, viewer, context) => {
  const config = context.options.config();
  const body = checked(REPLAY_BODY, sent);
  const { source, ...common } = await sourceOf(body, viewer, context);
  const options: ReplayOptions = {
    config,
    sources: [source],
    to: [...(body.to === undefined ? [] : [body.to]), ...body.targets],
    edits: body.edits.map(editOf),
    repair: body.repair,
    repeat: body.repeat,
    as: callerFor(viewer),
  };
  const total = countRuns(options);
  if (total > LIMITS.runs) {
    throw invalid(`That would be ${total} requests; the limit is ${LIMITS.runs}.`, 'repeat');
  }
  checkReplay(options, context.options);
  return {
    plan: () => planReplay(options, context.prices, context.options.protocols),
    job: {
      kind: 'replay',
      ...common,
      total,
      async run(signal, send) {
        const { runs, comparison } = await replay(
          { ...options, signal, onRun: (run) => send({ type: 'run', run: runAsJson(run) }) },
          context.options,
        );
        return runsAsJson(runs, comparison);
      },
    },
  };
};

const bisectJob: AskedJob = async (sent, viewer, context) => {
  const body = checked(BISECT_BODY, sent);
  const { source, ...common } = await sourceOf(body, viewer, context);
  const { to, repair, budget } = body;
  return {
    plan: () => planBisection(source, body, context.prices, context.options.protocols),
    job: {
      kind: 'bisect',
      ...common,
      total: budget,
      async run(signal, send) {
        const found = await bisection(
          {
            config: context.options.config(),
            source,
            store: context.store,
            to,
            repair,
            budget,
            signal,
            as: callerFor(viewer),
            onResume(known) {
              const text = `Resuming an earlier run: ${known} answers are known.`;
              send({ type: 'note', text });
            },
            onProbe: ({ key: _, ...probe }) => send({ type: 'probe', probe }),
          },
          context.options,
        );
        showSamples(Object.values(found.samples), context);
        return bisectionAsJson(found);
      },
    },
  };
};

/** The request that a job sends. */
async function sourceOf(
  { id = '', stage = 'client-request', to }: Static<typeof BISECT_BODY | typeof REPLAY_BODY>,
  viewer: Viewer,
  context: ApiContext,
) {
  const { store, meta } = await context.recorded(id, viewer);
  if (to !== undefined) checkTarget(to, context.options.config());
  return { sample: meta.id, stage, source: fromSample(store, meta, stage) };
}

/** Requests are sent in the viewer's own name: what their key may not do, a replay may not do either. */
const callerFor = ({ principal }: Viewer): Principal | undefined =>
  principal.id === '' ? undefined : principal;

/** Puts samples that a job made into the live lists. */
function showSamples(ids: readonly (string | null)[], { store, live }: ApiContext): void {
  for (const id of ids) {
    const meta = id === null ? undefined : store.find(id);
    if (meta !== undefined) live.show(store.row(meta));
  }
}

type Kind = JobSpec['kind'];

/** Each job, and the most bytes of a request for it: the texts of a replay may be edited. */
const ASKED = { replay: [replayJob, 8 * 2 ** 20], bisect: [bisectJob, undefined] } as const;

// Bodies are read after the guard and the check for several workers, and bounded.
const UNPARSED = { parse: 'none' } as const;

interface Asked {
  readonly request: Request;
  readonly viewer: Viewer;
}

export const jobRoutes = (context: ApiContext) => {
  const { jobs, options } = context;
  const asked = async (kind: Kind, { request, viewer }: Asked) => {
    const [job, bytes] = ASKED[kind];
    return job(await readJson(request, bytes), viewer, context);
  };
  const plan = (kind: Kind) => async (one: Asked) => json(await (await asked(kind, one)).plan());
  const start = (kind: Kind) => async (one: Asked) => {
    if (options.config().workers > 1) {
      const why = 'With several workers, a job cannot be followed from here:';
      throw new GatewayError('conflict', `${why} use "hopgate ${kind}" on the command line.`);
    }
    return json(jobs.start((await asked(kind, one)).job, one.viewer), 202);
  };
  return new Elysia()
    .use(guard(options))
    .get(
      '/jobs/:id',
      ({ params, query, viewer }) =>
        json({ events: jobs.events(params.id, viewer).slice(query.from) }),
      queryOf(Type.Object({ from: offset('from') })),
    )
    .delete(
      '/jobs/:id',
      ({ params, viewer }) => {
        jobs.cancel(params.id, viewer);
        return empty(204);
      },
      UNPARSED,
    )
    .post('/replay/plan', plan('replay'), UNPARSED)
    .post('/bisect/plan', plan('bisect'), UNPARSED)
    .post('/replay', start('replay'), UNPARSED)
    .post('/bisect', start('bisect'), UNPARSED);
};

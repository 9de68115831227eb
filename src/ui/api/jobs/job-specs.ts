/** Replays and bisections that the page asks for, as jobs: the members of a request, checked, and the work to run. */

import { type Static, Type } from '@sinclair/typebox';
import { invalid } from '../../../conversation/errors.ts';
import type { Principal } from '../../../keys/principal.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { bisection, bisectionAsJson, DEFAULT_BUDGET } from '../../../samples/bisect/run.ts';
import {
  checkReplay,
  checkSettingsForAll,
  countRuns,
  type ReplayOptions,
} from '../../../samples/replay/check-replay.ts';
import { checkTarget } from '../../../samples/replay/known-target.ts';
import { planBisection, planReplay } from '../../../samples/replay/plan.ts';
import { replay } from '../../../samples/replay/replay.ts';
import { runAsJson, runsAsJson } from '../../../samples/replay/runs.ts';
import { fromSample } from '../../../samples/replay/source.ts';
import type { RequestEdit, SpendPlan } from '../../../samples/replay/types.ts';
import type { ApiContext } from '../context.ts';
import type { Viewer } from '../guard.ts';
import { LIMITS } from '../info.ts';
import { checked } from '../json-body.ts';
import { flag, shortText, wholeNumber } from '../parameters.ts';
import type { JobSpec } from './jobs.ts';

const COMMON = {
  id: shortText('id'),
  stage: shortText('stage'),
  to: shortText('to'),
  repair: flag('repair', true),
};

const TARGETS = { title: 'targets', description: 'a list of provider/model' };
const EDITS = { title: 'edits', description: 'a list of changes, each with at and value' };
const SETTINGS = { title: 'compare', description: 'a list of settings' };

const REPLAY_BODY = Type.Object({
  ...COMMON,
  repeat: wholeNumber('repeat', { least: 1, most: LIMITS.runs, fallback: 1 }),
  compare: Type.Array(Type.String(SETTINGS), { ...SETTINGS, maxItems: 8, default: [] }),
  targets: Type.Array(Type.String({ ...TARGETS, maxLength: 300 }), {
    ...TARGETS,
    maxItems: 6,
    default: [],
  }),
  edits: Type.Array(Type.Object({ at: Type.String(EDITS), value: Type.Unknown() }), {
    ...EDITS,
    maxItems: 100,
    default: [],
  }),
});

const BISECT_BODY = Type.Object({
  ...COMMON,
  budget: wholeNumber('budget', { least: 1, most: LIMITS.budget, fallback: DEFAULT_BUDGET }),
});

/** A job as it was asked for: the work, and what it would cost. @throws GatewayError for what is not there or not possible */
export type AskedJob = (
  body: JsonObject,
  viewer: Viewer,
  context: ApiContext,
) => Promise<{ readonly job: JobSpec; plan(): SpendPlan | Promise<SpendPlan> }>;

/** Checked as far as it can be before anything is sent. */
export const replayJob: AskedJob = async (sent, viewer, context) => {
  const config = context.options.config();
  const body = checked(REPLAY_BODY, sent);
  const { source, ...common } = await sourceOf(body, viewer, context);
  checkSettingsForAll(body.compare, config);
  const options: ReplayOptions = {
    config,
    sources: [source],
    to: [...(body.to === undefined ? [] : [body.to]), ...body.targets],
    edits: body.edits as readonly RequestEdit[],
    repair: body.repair,
    compare: body.compare,
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
      async run({ signal, progress }) {
        const { runs, comparison } = await replay(
          { ...options, signal, onRun: (run) => progress({ type: 'run', run: runAsJson(run) }) },
          context.options,
        );
        return { kind: 'replay', result: runsAsJson(runs, comparison) };
      },
    },
  };
};

export const bisectJob: AskedJob = async (sent, viewer, context) => {
  const body = checked(BISECT_BODY, sent);
  const { source, ...common } = await sourceOf(body, viewer, context);
  const { to, repair, budget } = body;
  return {
    plan: () => planBisection(source, body, context.prices, context.options.protocols),
    job: {
      kind: 'bisect',
      ...common,
      total: budget,
      async run({ signal, progress, note }) {
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
            onResume: (known) => note(`Resuming an earlier run: ${known} answers are known.`),
            onProbe: ({ key: _, ...probe }) => progress({ type: 'probe', probe }),
          },
          context.options,
        );
        showSamples(Object.values(found.samples), context);
        return { kind: 'bisect', result: bisectionAsJson(found) };
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
  const meta = await context.sampleFor(id, viewer);
  if (to !== undefined) checkTarget(to, context.options.config());
  return { sample: meta.id, stage, source: fromSample(context.store, meta, stage) };
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

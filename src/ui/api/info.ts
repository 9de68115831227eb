/** `/ui/api/info`: settings of the gateway that the page needs first; `/ui/api/recording` changes one. `/ui/api/reports`. */

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { needsKey } from '../../config/sections/auth.ts';
import { SAMPLE_MODES } from '../../config/sections/samples.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { isGlob } from '../../lib/text/glob.ts';
import { json } from './answers.ts';
import { guard, type Viewer } from './guard.ts';
import type { UiOptions } from './options.ts';
import { checked, readJson } from './parameters.ts';

/** Most jobs at the same time, requests of one replay, probes of one bisection. */
export const LIMITS = { jobs: 4, runs: 200, budget: 500 } as const;

/** `provider/model` for each model that is known by its name and that the key may use: targets of a replay. */
function targetsOf(
  { config }: Pick<UiOptions, 'config'>,
  { policy }: Viewer['principal'],
): readonly string[] {
  const { providers, routes } = config();
  const routed = routes.flatMap(({ to }) => to.map(({ target }) => target));
  return Object.values(providers).flatMap(({ name, models }) => {
    const listed = models.map((model) => `${name}/${model}`);
    const own = routed.filter((target) => target.startsWith(`${name}/`));
    return [...new Set([...listed, ...own])].filter((target) => {
      const model = target.slice(name.length + 1);
      return !isGlob(model) && policy.allowsTarget(target, { provider: name, model });
    });
  });
}

const MODE = { title: 'mode', description: 'off, errors or all' };
const RECORDING_BODY = Type.Object({
  mode: Type.Union(
    SAMPLE_MODES.map((mode) => Type.Literal(mode, MODE)),
    MODE,
  ),
});

export const infoRoutes = (options: UiOptions) =>
  new Elysia()
    .use(guard(options))
    .get('/info', ({ viewer }) => json(infoFor(viewer, options)))
    .post(
      '/recording',
      async ({ request, viewer }) => {
        checkMaySwitch(viewer, options);
        const { mode } = checked(RECORDING_BODY, await readJson(request));
        options.recorder.switchMode(mode);
        return json(infoFor(viewer, options));
      },
      { parse: 'none' },
    );

/** @throws GatewayError permission, conflict */
function checkMaySwitch({ owner }: Viewer, options: UiOptions): void {
  if (owner !== undefined) {
    throw new GatewayError('permission', 'Only a key that sees all exchanges may do this.');
  }
  if (options.config().workers > 1) {
    const why = 'With several workers, this would reach one of them:';
    throw new GatewayError('conflict', `${why} set samples.mode in the configuration.`);
  }
}

export function infoFor({ key, owner, principal }: Viewer, options: UiOptions) {
  const { samples, auth, routes, providers, workers } = options.config();
  const { mode, recent } = options.recorder;
  return {
    version: options.version,
    /** Milliseconds since 1970, by the server's clock. */
    now: Date.now(),
    samples: {
      mode,
      /** Another mode is in force until the process reloads or restarts. */
      configured: samples.mode,
      /** This caller may switch the mode: `POST /ui/api/recording`. */
      may_switch: owner === undefined && workers === 1,
      /** The folder; left out for callers that see only their own exchanges. */
      ...(owner === undefined && { dir: options.root }),
      /** Days after which recorded exchanges are deleted, and failed ones; 0 = never. */
      keep_days: samples.keepDays,
      keep_failed_days: samples.keepFailedDays,
      /** The most that this process holds in memory beside the recorded ones; null: none, as with several workers. */
      recent: recent ? { count: recent.limits.count, bytes: recent.limits.bytes } : null,
      by_route: routes.some((route) => route.samples !== undefined),
      /** Content that is blanked before it is written. */
      redact: samples.redact,
    },
    auth: needsKey(auth),
    /** The admin API is on. Without any keys, `GET /ui/api/reports/` has usage, spend and health. */
    admin: auth.adminKeys.length > 0,
    /** Name of the caller's key; '' without keys. */
    key,
    /** Whose exchanges are shown. */
    sees: owner === undefined ? ('all' as const) : ('own' as const),
    targets: targetsOf(options, principal),
    /** Otherwise every cost is null. */
    priced: Object.values(providers).some(({ prices }) => prices.length > 0),
    // The next request may reach another process, where the job cannot be followed.
    limits: workers > 1 ? { ...LIMITS, jobs: 0 } : LIMITS,
  };
}

/** `GET /ui/api/reports/NAME`: usage, spend and health for a single user, where no key is needed. */
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

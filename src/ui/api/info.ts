/** `GET /ui/api/info`: settings of the gateway that the page needs first; `POST /ui/api/recording` changes one. */

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { needsKey } from '../../config/sections/auth.ts';
import { SAMPLE_MODES } from '../../config/sections/samples.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { json } from './answers.ts';
import type { Info, TargetChoice } from './api.ts';
import { guard, type Viewer } from './guard.ts';
import { checked, readJson } from './json-body.ts';
import type { UiOptions } from './options.ts';

/** Most jobs at the same time, requests of one replay, probes of one bisection. */
export const LIMITS = { jobs: 4, runs: 200, budget: 500 } as const;

const isGlob = (model: string) => /[*?]/.test(model);

/** Providers with their known models as targets of a replay. */
function targetsOf(
  { config }: Pick<UiOptions, 'config'>,
  { policy }: Viewer['principal'],
): readonly TargetChoice[] {
  const { providers, routes } = config();
  return Object.values(providers).flatMap(({ name, protocol, models }) => {
    const routed = routes.flatMap(({ to }) => to.map(({ target }) => target));
    const own = routed.filter((target) => target.startsWith(`${name}/`) && !isGlob(target));
    const named = models.filter((model) => !isGlob(model)).map((model) => `${name}/${model}`);
    const any = models.some(isGlob) || models.length === 0;
    const all = [...new Set([...named, ...own])];
    const isAllowed = (model: string) =>
      policy.allowsTarget(`${name}/${model}`, { provider: name, model });
    const allowed = all.filter((target) => isAllowed(target.slice(name.length + 1)));
    const mayAny = any && isAllowed('*');
    // A key of single models learns of no provider that has none of them.
    if (allowed.length === 0 && !mayAny && !isAllowed('*')) return [];
    return { provider: name, protocol, models: allowed, any: mayAny };
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

function infoFor({ key, owner, principal }: Viewer, options: UiOptions): Info {
  const { samples, auth, routes, providers, workers } = options.config();
  const { mode, recent } = options.recorder;
  return {
    version: options.version,
    now: Date.now(),
    samples: {
      mode,
      configured: samples.mode,
      may_switch: owner === undefined && workers === 1,
      ...(owner === undefined && { dir: options.root }),
      keep_days: samples.keepDays,
      keep_failed_days: samples.keepFailedDays,
      recent: recent ? { count: recent.limits.count, bytes: recent.limits.bytes } : null,
      by_route: routes.some((route) => route.samples !== undefined),
      redact: samples.redact,
    },
    auth: needsKey(auth),
    admin: auth.adminKeys.length > 0,
    key,
    sees: owner === undefined ? 'all' : 'own',
    targets: targetsOf(options, principal),
    priced: Object.values(providers).some(({ prices }) => prices.length > 0),
    // The next request may reach another process, where the job cannot be followed.
    limits: workers > 1 ? { ...LIMITS, jobs: 0 } : LIMITS,
  };
}

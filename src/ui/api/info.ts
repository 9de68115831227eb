/** `GET /ui/api/info`: settings of the gateway that the page needs first; `POST /ui/api/recording` changes one. */

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { needsKey } from '../../config/sections/auth.ts';
import { SAMPLE_MODES } from '../../config/sections/samples.ts';
import { GatewayError } from '../../conversation/errors.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { json } from './answers.ts';
import { guard, type Viewer } from './guard.ts';
import { checked, readJson } from './json-body.ts';
import type { UiOptions } from './options.ts';

/** Most jobs at the same time, requests of one replay, probes of one bisection. */
export const LIMITS = { jobs: 4, runs: 200, budget: 500 } as const;

const isGlob = (model: string) => /[*?]/.test(model);

/** A provider in the menu of replay targets. */
interface TargetChoice {
  readonly provider: string;
  readonly protocol: ProtocolName;
  /** `provider/model`, ready for `to`. */
  readonly models: readonly string[];
  /** The provider accepts other model names as well. */
  readonly any: boolean;
}

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

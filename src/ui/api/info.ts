/** `GET /ui/api/info`: settings of the gateway that the page needs first. */

import { Elysia } from 'elysia';
import { json } from './answers.ts';
import type { Info, TargetChoice } from './api.ts';
import { guard, type Viewer } from './guard.ts';
import type { UiOptions } from './options.ts';

/** Most jobs at the same time, requests of one replay, probes of one bisection. */
export const LIMITS = { jobs: 4, runs: 200, budget: 500 } as const;

const isGlob = (model: string) => /[*?]/.test(model);

/** Providers with their known models as targets of a replay. */
function targetsOf({ config }: Pick<UiOptions, 'config'>): readonly TargetChoice[] {
  const { providers, routes } = config();
  return Object.values(providers).map(({ name, protocol, models }) => {
    const routed = routes.flatMap(({ to }) => to.map(({ target }) => target));
    const own = routed.filter((target) => target.startsWith(`${name}/`) && !isGlob(target));
    const named = models.filter((model) => !isGlob(model)).map((model) => `${name}/${model}`);
    const any = models.some(isGlob) || models.length === 0;
    return { provider: name, protocol, models: [...new Set([...named, ...own])], any };
  });
}

export const infoRoutes = (options: UiOptions) =>
  new Elysia().use(guard(options)).get('/info', ({ viewer }) => json(infoFor(viewer, options)));

function infoFor({ key, owner }: Viewer, options: UiOptions): Info {
  const { samples, auth, routes, providers, workers } = options.config();
  return {
    version: options.version,
    now: Date.now(),
    samples: {
      mode: samples.mode,
      by_route: routes.some((route) => route.samples !== undefined),
      redact: samples.redact,
    },
    auth: auth.keys.length > 0,
    key,
    sees: owner === undefined ? 'all' : 'own',
    targets: targetsOf(options),
    priced: Object.values(providers).some(({ prices }) => prices.length > 0),
    // The next request may reach another process, where the job cannot be followed.
    limits: workers > 1 ? { ...LIMITS, jobs: 0 } : LIMITS,
  };
}

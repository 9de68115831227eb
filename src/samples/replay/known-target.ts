/** Checks that the configuration has a target that a user names: a catch-all route would send the request elsewhere. */

import type { Config } from '../../config/config.ts';
import { invalid } from '../../conversation/errors.ts';
import { suggest } from '../../lib/text/did-you-mean.ts';
import { globTest, isGlob } from '../../lib/text/glob.ts';

const PARAM = 'to';

/**
 * Runs before anything is sent, since a request may cost money.
 * @param to `provider/model` as the user wrote it
 * @throws GatewayError invalid_request: no such provider, no model, or one that the provider does not list
 */
export function checkTarget(to: string, config: Pick<Config, 'providers' | 'routes'>): void {
  const { providers, routes } = config;
  const { provider, model } = parts(to);
  if (provider === '' || model === '') {
    const near = closest(provider || model, Object.keys(providers), (name) => `${name}/MODEL`);
    throw invalid(`"${short(to)}" is not a target: write provider/model.${near}`, PARAM);
  }
  checkProvider(to, config);
  const { models } = providers[provider]!;
  // A provider without a list of models takes any name.
  if (models.length === 0 || models.some((listed) => globTest(listed)(model))) return;
  if (routes.some((route) => route.to.some(({ target }) => target === to))) return;
  const exact = models.filter((listed) => !isGlob(listed));
  const hint = closest(model, exact, (name) => `${provider}/${name}`);
  const list = hint === '' ? ` It lists ${models.slice(0, 8).join(', ')}.` : hint;
  throw invalid(
    `The provider "${provider}" does not list the model "${short(model)}".${list}`,
    PARAM,
  );
}

/**
 * Checks the target of a recorded exchange: its model was requested before, so only its provider must be
 * configured. Where nothing is configured, the demo model replaces any target.
 * @throws GatewayError invalid_request when the provider is not configured
 */
export function checkRecorded(target: string, config: Pick<Config, 'providers' | 'source'>): void {
  if (config.source.kind !== 'demo') checkProvider(target, config);
}

function checkProvider(to: string, { providers }: Pick<Config, 'providers'>): void {
  const { provider } = parts(to);
  if (Object.hasOwn(providers, provider)) return;
  const names = Object.keys(providers);
  const hint = closest(provider, names, (name) => name);
  const configured = hint === '' ? ` Configured: ${names.slice(0, 20).join(', ')}.` : hint;
  throw invalid(`There is no provider "${short(provider)}".${configured}`, PARAM);
}

function parts(to: string): { provider: string; model: string } {
  const slash = to.indexOf('/');
  return slash < 0
    ? { provider: to, model: '' }
    : { provider: to.slice(0, slash), model: to.slice(slash + 1) };
}

function closest(
  written: string,
  names: readonly string[],
  shown: (name: string) => string,
): string {
  const near = suggest(written, names);
  return near === undefined ? '' : ` Did you mean "${shown(near)}"?`;
}

const short = (text: string) => (text.length > 100 ? `${text.slice(0, 100)}…` : text);

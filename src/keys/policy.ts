/** Turns the patterns of a key into what it may use. */

import type { Permissions } from '../config/sections/keys/settings.ts';
import { anyExactGlob } from '../lib/text/glob.ts';
import { type Policy, WITHOUT_KEY } from './principal.ts';

const ALL = WITHOUT_KEY.policy;

/**
 * What is allowed by each of the permissions.
 *
 * A pattern of `models` with a slash is about targets, `provider/model`, however they were asked for. One without
 * is about names as clients ask for them: whatever the routes make of such a name is allowed. A name that itself
 * addresses a target (`provider/model`, also with `claude-` before it) counts as that target alone, or a pattern
 * like `claude-*` would open every provider.
 */
export function policyOf(permissions: readonly Permissions[]): Policy {
  const own = permissions.filter(
    ({ models, tools, routes, spaces }) =>
      models !== undefined || tools !== undefined || routes !== undefined || spaces !== undefined,
  );
  if (own.length === 0) return ALL;
  const policies = own.map(singlePolicy);
  if (policies.length === 1) return policies[0]!;
  return {
    everyModel: policies.every(({ everyModel }) => everyModel),
    allowsModel: (asked) => policies.every((one) => one.allowsModel(asked)),
    allowsTarget: (asked, target) => policies.every((one) => one.allowsTarget(asked, target)),
    allowsRoute: (name) => policies.every((one) => one.allowsRoute(name)),
    allowsTool: (name) => policies.every((one) => one.allowsTool(name)),
    everyTool: policies.every(({ everyTool }) => everyTool),
    allowsSpace: (space) => policies.every((one) => one.allowsSpace(space)),
  };
}

function singlePolicy({ models, tools, routes, spaces }: Permissions): Policy {
  const anyOf = (patterns: readonly string[] | undefined) =>
    patterns === undefined ? () => true : anyExactGlob(patterns);
  return {
    ...(models === undefined || models.includes('*')
      ? { everyModel: true, allowsModel: ALL.allowsModel, allowsTarget: ALL.allowsTarget }
      : { everyModel: false, ...modelPolicy(models) }),
    allowsRoute: anyOf(routes),
    allowsTool: anyOf(tools),
    everyTool: tools === undefined || tools.includes('*'),
    allowsSpace: anyOf(spaces),
  };
}

function modelPolicy(models: readonly string[]): Pick<Policy, 'allowsModel' | 'allowsTarget'> {
  const aboutTargets = models.filter((pattern) => pattern.includes('/'));
  const isName = anyExactGlob(models.filter((pattern) => !pattern.includes('/')));
  const isTarget = anyExactGlob(aboutTargets);
  return {
    allowsModel: (asked) => aboutTargets.length > 0 || isName(asked),
    allowsTarget(asked, { provider, model }) {
      const address = `${provider}/${model}`;
      if (isTarget(address)) return true;
      return asked !== address && asked !== `claude-${address}` && isName(asked);
    },
  };
}

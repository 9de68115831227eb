/** Makes a principal from what its key or token says, and from the shared budgets that its labels choose. */

import type { SharedBudget } from '../config/sections/keys/budgets.ts';
import {
  type KeySettings,
  least,
  leastLimits,
  type Permissions,
} from '../config/sections/keys/settings.ts';
import { anyExactGlob } from '../lib/text/glob.ts';
import { type Budget, type Policy, type Principal, WITHOUT_KEY } from './principal.ts';

export interface PrincipalParts {
  readonly id: string;
  readonly name: string;
  readonly sees: 'own' | 'all';
  /** One for each key of the name: the principal may do only what all of them may. */
  readonly settings: readonly KeySettings[];
  /** Further permissions that narrow those of the settings. */
  readonly narrowed?: Permissions;
  /** Labels beside those of the settings, which come first. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** @param shared the budgets of the configuration: those whose labels choose this principal apply to it */
export function makePrincipal(
  { id, name, sees, settings, narrowed, labels: more }: PrincipalParts,
  shared: readonly SharedBudget[],
): Principal {
  const labels = Object.assign({}, more, ...settings.map((one) => one.labels).toReversed());
  const own = settings.flatMap(({ budgets }) => budgets);
  const expires = least(settings.map((one) => one.expires));
  return {
    id,
    name,
    sees,
    labels,
    ...(expires !== undefined && { expires }),
    policy: policyOf(narrowed === undefined ? settings : [...settings, narrowed]),
    limits: leastLimits(settings.map(({ limits }) => limits)),
    budgets: [...smallestOfEach(own), ...sharedBy(labels, shared)],
  };
}

/** Where no key is needed: the budgets that are for all requests hold there, too. */
export const withoutKey = (shared: readonly SharedBudget[]): Principal => {
  const budgets = sharedBy({}, shared);
  return budgets.length === 0 ? WITHOUT_KEY : { ...WITHOUT_KEY, budgets };
};

function sharedBy(
  labels: Readonly<Record<string, string>>,
  shared: readonly SharedBudget[],
): readonly Budget[] {
  return shared.filter(({ keys }) =>
    Object.entries(keys).every(
      ([name, value]) => Object.hasOwn(labels, name) && labels[name] === value,
    ),
  );
}

function smallestOfEach(budgets: readonly Budget[]): readonly Budget[] {
  const byId = new Map<string, Budget>();
  for (const budget of budgets) {
    const other = byId.get(budget.id);
    if (other === undefined || budget.nanoUsd < other.nanoUsd) byId.set(budget.id, budget);
  }
  return [...byId.values()];
}

const ALL = WITHOUT_KEY.policy;

/**
 * Allows only what each of the permissions allows.
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

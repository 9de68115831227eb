/** Makes a principal from what its key or token says, and from the shared budgets that its labels choose. */

import type { SharedBudget } from '../config/sections/keys/budgets.ts';
import {
  type KeySettings,
  least,
  leastLimits,
  type Permissions,
} from '../config/sections/keys/settings.ts';
import { policyOf } from './policy.ts';
import { type Budget, type Principal, WITHOUT_KEY } from './principal.ts';

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

/** The budgets whose labels these labels have. */
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

/** The keys, spend and budgets behind the admin API. */

import { configuredKeys } from '../../admin/configured-keys.ts';
import type { AdminOptions } from '../../admin/plugin.ts';
import { onlyNames, wholeNumber } from '../../admin/request-parts.ts';
import { KeyChanges } from '../../keys/key-changes.ts';
import type { RunTimeKeys } from '../../keys/run-time-keys.ts';
import type { OpenLimits } from '../../limits/open-limits.ts';
import type { OwnedBudget } from '../../limits/usage-report.ts';
import { type SpendSource, spendReports } from '../../money/reports.ts';
import { event, type Log } from '../../telemetry/log.ts';
import { healthReport } from '../../upstream/health/snapshot.ts';
import type { Configured } from '../configured.ts';

const USUAL_BUDGETS = 200;
const MAX_BUDGETS = 1000;

export interface AdminServices {
  readonly current: () => Configured;
  readonly keys: RunTimeKeys;
  readonly spend: SpendSource;
  readonly limits: OpenLimits;
  readonly log: Log;
  readonly address: AdminOptions['address'];
}

/** Names of the keys made at run time; of several of one name, the id of the last one. */
export const keyNames = (keys: RunTimeKeys) => ({
  nameOf: (id: string) => keys.loaded.byId(id)?.record.name,
  idOf: (wanted: string) =>
    [...keys.loaded.all].findLast(({ record }) => record.name === wanted)?.record.id,
});

/** Reports that the page also shows to a single user without keys. */
export const openReports = ({
  current,
  keys,
  spend,
}: Pick<AdminServices, 'current' | 'keys' | 'spend'>) => ({
  ...spendReports(spend, keyNames(keys).nameOf),
  health(query: URLSearchParams) {
    onlyNames(query, []);
    const { services, upstreams } = current();
    const { providers, workers } = services.table.config;
    const report = healthReport(Object.values(providers), upstreams.known);
    return Response.json({ ...report, workers });
  },
});

export function adminOptions(services: AdminServices): AdminOptions {
  const { current, keys, limits, log, address } = services;
  const config = () => current().services.table.config;
  return {
    admin: (headers) => current().admin(headers),
    address,
    keys: new KeyChanges({ place: keys, routes: () => config().routes.map(({ name }) => name) }),
    configured: () => configuredKeys(config().auth.keys),
    reports: {
      ...openReports(services),
      async budgets(query) {
        onlyNames(query, ['limit']);
        const limit = wholeNumber(query, 'limit', USUAL_BUDGETS, MAX_BUDGETS);
        return Response.json(await limits.budgets(ownedBudgets(current()), limit));
      },
    },
    onChange: (change) => event(log, 'keys.changed', { ...change }),
    onFailure: ({ status, message, cause }) =>
      event(log, 'admin.failed', { status, message, cause: String(cause) }, 'error'),
  };
}

/** The shared ones, those of configured keys, those of keys made at run time. */
function* ownedBudgets({ services, keys }: Configured): Iterable<OwnedBudget> {
  const { auth, budgets } = services.table.config;
  for (const budget of budgets) yield { budget, labels: budget.keys };
  for (const { name, budgets: own } of auth.keys) {
    for (const budget of own) yield { budget, key: { id: name, name } };
  }
  const shared = new Set<unknown>(budgets);
  for (const { id, name, budgets: all } of keys.runTimePrincipals()) {
    for (const budget of all) if (!shared.has(budget)) yield { budget, key: { id, name } };
  }
}

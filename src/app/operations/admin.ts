/** What the admin API works on: keys, spend, budgets. */

import { configuredKeys } from '../../admin/configured-keys.ts';
import type { AdminOptions } from '../../admin/plugin.ts';
import { KeyChanges } from '../../keys/key-changes.ts';
import type { RunTimeKeys } from '../../keys/run-time-keys.ts';
import type { OpenLimits } from '../../limits/open-limits.ts';
import type { SpendJournal } from '../../money/journal.ts';
import { spendReports } from '../../money/reports.ts';
import { event, type Log } from '../../telemetry/log.ts';
import type { Configured } from '../configured.ts';

export interface AdminServices {
  readonly current: () => Configured;
  readonly keys: RunTimeKeys;
  readonly journal: SpendJournal;
  readonly limits: OpenLimits;
  readonly log: Log;
  readonly address: AdminOptions['address'];
}

export function adminOptions(services: AdminServices): AdminOptions {
  const { current, keys, journal, limits, log, address } = services;
  const config = () => current().services.table.config;
  return {
    admin: (headers) => current().admin(headers),
    address,
    keys: new KeyChanges({ file: keys, routes: () => config().routes.map(({ name }) => name) }),
    configured: () => configuredKeys(config().auth.keys),
    reports: {
      ...spendReports(journal),
      async budgets() {
        const { auth, budgets } = config();
        const all = [...budgets, ...auth.keys.flatMap((key) => key.budgets)];
        return Response.json(await limits.budgets(all));
      },
    },
    onChange: (change) => event(log, 'keys.changed', { ...change }),
    onFailure: ({ status, message, cause }) =>
      event(log, 'admin.failed', { status, message, cause: String(cause) }, 'error'),
  };
}

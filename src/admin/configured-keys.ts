/** The keys of the configuration as the admin API shows them: in the words of the file, without the key. */

import type { AuthKey } from '../config/sections/auth.ts';
import type { Budget } from '../config/sections/keys/budgets.ts';
import { writtenLimits } from '../config/sections/keys/settings.ts';
import type { JsonObject } from '../lib/json/json.ts';
import type { ConfiguredKeyView } from './plugin.ts';

export const configuredKeys = (keys: readonly AuthKey[]): readonly ConfiguredKeyView[] =>
  keys.map((key) => {
    const { name, sees, labels, models, tools, routes, spaces, expires, limits, budgets } = key;
    return {
      id: name,
      name,
      source: 'configuration',
      sees,
      labels,
      ...(models !== undefined && { models }),
      ...(tools !== undefined && { tools }),
      ...(routes !== undefined && { routes }),
      ...(spaces !== undefined && { spaces }),
      ...(expires !== undefined && { expires: new Date(expires).toISOString() }),
      limits: writtenLimits(limits),
      budgets: budgets.map(budgetView),
    };
  });

const budgetView = ({ name, nanoUsd, per, timeZone, warn, over }: Budget): JsonObject => ({
  name,
  usd: nanoUsd / 1e9,
  per,
  time_zone: timeZone,
  warn,
  over: over.action === 'route' ? over.route : over.action,
});

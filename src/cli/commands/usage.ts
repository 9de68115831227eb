/** `hopgate usage`: what was used and spent, by key, model, target, session or label, from the file of spend. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readConfigFile } from '../../config/load.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { openEngines } from '../../engines/open-engines.ts';
import { usdText } from '../../lib/text/usd.ts';
import { readRowsQuery, spendCsv } from '../../money/rows.ts';
import type { SpendReader } from '../../money/schema.ts';
import { sharedSpendReader } from '../../money/shared/open-shared.ts';
import { openSpendReader } from '../../money/spend-store.ts';
import { readUsageQuery, type UsageGroup, usageBy, usageJson } from '../../money/usage.ts';
import type { CommandSpec, Invocation } from '../command.ts';
import { loadForCommand, reportProblems } from '../load-config.ts';
import { jsonOption } from '../shared-options.ts';
import { fittingTable } from '../terminal.ts';

export const USAGE: CommandSpec = {
  name: 'usage',
  group: 'Look',
  summary: 'report usage and spend',
  description: [
    'Reads the totals, even if the gateway is not running: of all replicas if engines.database is configured, else of this machine. Times are in UTC. Usage is counted in whole hours, sessions in whole days.',
    '--csv prints every single request to a vendor instead, one row each.',
  ],
  options: [
    {
      name: 'by',
      value: 'WHAT',
      summary: 'key, model, target, session or label.NAME',
      default: 'key',
    },
    {
      name: 'since',
      value: 'TIME',
      summary: 'a period such as 24h or 30d, or a time',
      default: '30d',
    },
    { name: 'until', value: 'TIME', summary: 'the end, in the same form', default: 'now' },
    { name: 'step', value: 'STEP', summary: 'one row per', choices: ['hour', 'day', 'month'] },
    { name: 'key', value: 'ID', summary: 'only this key' },
    { name: 'csv', summary: 'print single requests to vendors as CSV' },
    jsonOption(),
  ],
  examples: [
    { line: 'hopgate usage', summary: 'The last 30 days, by key.' },
    {
      line: 'hopgate usage --by label.team --since 7d --step day',
      summary: 'The last week, by team and day.',
    },
    {
      line: 'hopgate usage --since 24h --csv > spend.csv',
      summary: 'Every request of the last day, as CSV.',
    },
  ],
  exits: [
    [0, 'shown, even if there is nothing'],
    [1, 'the configuration, the file or the database cannot be read'],
  ],
  run: runUsage,
};

type Opened = SpendReader & { close(): void | Promise<void> };

async function runUsage(invocation: Invocation): Promise<number> {
  const { text, flag, io, out, err } = invocation;
  const parameters: Readonly<Record<string, string | undefined>> = {
    by: text('by'),
    from: text('since'),
    to: text('until'),
    step: text('step'),
    key: text('key'),
  };
  const now = Date.now();
  const query = readUsageQuery((name) => parameters[name], now);
  const reader = await openReader(invocation);
  if (typeof reader === 'number') return reader;
  try {
    if (flag('csv')) {
      const from = parameters.from ?? '30d';
      const rows = readRowsQuery((name) => (name === 'from' ? from : parameters[name]), now);
      for await (const piece of spendCsv(reader, rows)) io.stdout.write(piece);
      return 0;
    }
    const groups = await usageBy(reader, query);
    if (flag('json')) out.line(JSON.stringify(usageJson(query, groups), null, 2));
    else if (groups.length === 0) err.line('Nothing was used in this time.');
    else for (const line of tableOf(groups, query.step !== undefined, out.columns)) out.line(line);
    return 0;
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    err.line(thrown.message);
    return 1;
  } finally {
    await reader.close();
  }
}

/** What is read: the shared database or the file. A number: the exit code, and why was said. */
async function openReader(invocation: Invocation): Promise<Opened | number> {
  const { io, err } = invocation;
  const loaded = await loadForCommand(invocation);
  // Without knowing where spend is, the file of this machine would pass for all of it.
  if (!loaded.ok && mentionsDatabase(loaded.file)) {
    reportProblems(invocation, loaded);
    return 1;
  }
  if (loaded.ok && loaded.config.engines.database !== undefined) {
    const { database } = loaded.config.engines;
    const engines = openEngines({ database, onError: 'local', seal: [] }, () => {});
    return { ...sharedSpendReader(engines.database!), close: () => engines.close() };
  }
  const path = join(io.environment.home, 'state', 'spend.db');
  if (!existsSync(path)) {
    err.line(`Nothing was spent yet: there is no ${path}.`);
    return 0;
  }
  try {
    return openSpendReader(path);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    err.line(`${path} cannot be read: ${why}`);
    return 1;
  }
}

/** Without one, a configuration with problems (a key that only the service has) keeps nobody from the file. */
function mentionsDatabase(file: string | undefined): boolean {
  const text = file === undefined ? undefined : readConfigFile(file);
  return typeof text === 'string' && /\bdatabase\b/.test(text);
}

function tableOf(
  groups: readonly UsageGroup[],
  steps: boolean,
  columns: number | undefined,
): readonly string[] {
  const head = ['NAME', 'TRIES', 'INPUT', 'CACHED', 'OUTPUT', 'COST USD', 'UNPRICED', 'ESTIMATED'];
  const rows = groups.map(({ name, start, sums }) => [
    ...(steps ? [new Date(start!).toISOString().slice(0, 16)] : []),
    name === null || name === '' ? '–' : name,
    String(sums.tries),
    String(sums.input + sums.cache_write),
    String(sums.cache_read),
    String(sums.output + sums.reasoning),
    usdText(sums.cost),
    String(sums.unpriced),
    String(sums.estimated),
  ]);
  return fittingTable(rows, steps ? ['FROM', ...head] : head, columns, {
    spare: ['ESTIMATED', 'UNPRICED', 'CACHED'],
    cut: { NAME: 20 },
  });
}

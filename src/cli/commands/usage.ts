/** `hopgate usage`: what was used and spent, by key, model, target, session or label, from the file of spend. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runAtOnce } from '../../lib/loop/steps.ts';
import { usdText } from '../../lib/text/usd.ts';
import { readRowsQuery, spendCsv } from '../../money/rows.ts';
import { openSpendReader } from '../../money/spend-store.ts';
import { readUsageQuery, type UsageGroup, usageBy, usageJson } from '../../money/usage.ts';
import type { CommandSpec, Invocation } from '../command.ts';
import { jsonOption } from '../shared-options.ts';
import { fittingTable } from '../terminal.ts';

export const USAGE: CommandSpec = {
  name: 'usage',
  group: 'Look',
  summary: 'show what was used and spent',
  description: [
    'Reads the totals on this machine, whether the gateway runs or not. Times are UTC and count in whole hours, sessions in whole days.',
    '--csv prints the single tries at upstreams instead, one row each.',
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
      summary: 'a length such as 24h or 30d, or a time',
      default: '30d',
    },
    { name: 'until', value: 'TIME', summary: 'the end; the same forms', default: 'now' },
    { name: 'step', value: 'STEP', summary: 'a row for each', choices: ['hour', 'day', 'month'] },
    { name: 'key', value: 'ID', summary: 'only this key' },
    { name: 'csv', summary: 'print single tries as CSV' },
    jsonOption(),
  ],
  examples: [
    { line: 'hopgate usage', summary: 'The last 30 days by key.' },
    {
      line: 'hopgate usage --by label.team --since 7d --step day',
      summary: 'A week by team and day.',
    },
    { line: 'hopgate usage --since 24h --csv > spend.csv', summary: 'The tries of a day.' },
  ],
  exits: [
    [0, 'shown, also when there is nothing'],
    [1, 'the file cannot be read'],
  ],
  run: runUsage,
};

async function runUsage({ text, flag, io, out, err }: Invocation): Promise<number> {
  const path = join(io.environment.home, 'state', 'spend.db');
  const parameters: Readonly<Record<string, string | undefined>> = {
    by: text('by'),
    from: text('since'),
    to: text('until'),
    step: text('step'),
    key: text('key'),
  };
  const now = Date.now();
  const query = readUsageQuery((name) => parameters[name], now);
  if (!existsSync(path)) {
    err.line(`Nothing was spent yet: there is no ${path}.`);
    return 0;
  }
  let reader: ReturnType<typeof openSpendReader>;
  try {
    reader = openSpendReader(path);
  } catch (thrown) {
    err.line(
      `${path} cannot be read: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    );
    return 1;
  }
  try {
    if (flag('csv')) {
      const from = parameters.from ?? '30d';
      const rows = readRowsQuery((name) => (name === 'from' ? from : parameters[name]), now);
      for await (const piece of spendCsv(reader, rows)) io.stdout.write(piece);
      return 0;
    }
    const groups = runAtOnce(usageBy(reader, query));
    if (flag('json')) out.line(JSON.stringify(usageJson(query, groups), null, 2));
    else if (groups.length === 0) err.line('Nothing was used in this time.');
    else for (const line of tableOf(groups, query.step !== undefined, out.columns)) out.line(line);
    return 0;
  } finally {
    reader.close();
  }
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
  return fittingTable(rows, steps ? ['FROM', ...head] : head, columns, [
    'ESTIMATED',
    'UNPRICED',
    'CACHED',
  ]);
}

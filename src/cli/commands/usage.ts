import { GatewayError } from '../../conversation/errors.ts';
import { usdText } from '../../lib/text/usd.ts';
import { lostCosts, requestCounts } from '../../money/row-reports.ts';
import { readRowsQuery, spendCsv } from '../../money/rows.ts';
import type { Sums } from '../../money/schema.ts';
import {
  type CacheCosts,
  type RequestCounts,
  readUsageQuery,
  totalOf,
  type UsageGroup,
  usageBy,
  usageJson,
} from '../../money/usage.ts';
import { type CommandSpec, type Invocation, JSON_OPTION, UsageError } from '../command.ts';
import { openSpend } from '../spend-to-read.ts';
import { fittingTable } from '../terminal.ts';

export const USAGE: CommandSpec = {
  name: 'usage',
  others: ['spend', 'cost', 'costs', 'stats'],
  summary: 'report usage and spend',
  description: [
    'Reads the totals, even if the gateway is not running: of all replicas if engines.database is configured, else of this machine. Times are in UTC. Usage is counted in whole hours, sessions in whole days.',
    'A request can take several attempts. How many requests there were is known for as long as single attempts are kept (spend.keep_days).',
    'READ % is the share of the prompts that came from the caches of vendors. LOST USD is what prompts cost more because a cache no longer had what the last request of their session, less than five minutes before, had left there; only clients that send a session id are counted.',
    '--csv prints every single request to a vendor instead, one row each.',
  ],
  options: {
    by: { value: 'WHAT', summary: 'key, model, target, session or label.NAME', default: 'key' },
    since: { value: 'TIME', summary: 'a period such as 24h or 30d, or a time', default: '30d' },
    until: { value: 'TIME', summary: 'the end, in the same form', default: 'now' },
    step: { value: 'STEP', summary: 'one row for each', choices: ['hour', 'day', 'month'] },
    key: { value: 'ID', summary: 'only this key' },
    csv: { summary: 'print single requests to vendors as CSV' },
    json: JSON_OPTION,
  },
  examples: {
    'hopgate usage': 'The last 30 days, by key.',
    'hopgate usage --by label.team --since 7d --step day': 'The last week, by team and day.',
    'hopgate usage --since 24h --csv > spend.csv':
      'Every request to a vendor in the last 24 hours, as CSV.',
  },
  exits: {
    0: 'shown, even if there is nothing',
    1: 'the configuration, the file or the database cannot be read',
  },
  run: runUsage,
};

/** Parameters of the API that are options here; the names of the others are the same. */
const OPTIONS: Readonly<Record<string, string>> = { from: 'since', to: 'until' };

/** What `read` refuses, in the names of the options. */
function asOptions<T>(read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    throw new UsageError(
      thrown.message.replace(/'(\w{1,20})'/g, (_, name: string) => `--${OPTIONS[name] ?? name}`),
    );
  }
}

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
  const query = asOptions(() => readUsageQuery((name) => parameters[name], now));
  const reader = await openSpend(invocation);
  if (typeof reader === 'number') return reader;
  try {
    if (flag('csv')) {
      const from = parameters.from ?? '30d';
      const rows = readRowsQuery((name) => (name === 'from' ? from : parameters[name]), now);
      for await (const piece of spendCsv(reader, rows, reader.keyNames)) io.stdout.write(piece);
      return 0;
    }
    const groups = await usageBy(reader, query);
    const ids = query.by === 'key' ? groups.flatMap(({ name }) => name ?? []) : [];
    const names = await reader.keyNames(ids);
    const requests = await requestCounts(reader, query, groups);
    const lost = await lostCosts(reader, query, groups);
    if (flag('json')) {
      const nameOf = (id: string) => names.get(id);
      out.line(JSON.stringify(usageJson(query, groups, { nameOf, requests, lost }), null, 2));
    } else if (groups.length === 0) {
      err.line('Nothing was used in this time.');
    } else {
      const lines = tableOf(
        groups,
        { requests, lost },
        query.step !== undefined,
        names,
        out.columns,
      );
      for (const line of lines) out.line(line);
    }
    return 0;
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    err.line(thrown.message);
    return 1;
  } finally {
    await reader.close();
  }
}

const COUNTS =
  'REQUESTS,ATTEMPTS,INPUT,CACHED,READ %,OUTPUT,COST USD,LOST USD,UNPRICED,ESTIMATED'.split(',');

function shareRead(sums: Sums): string {
  const all = sums.input + sums.cache_read + sums.cache_write;
  return all === 0 ? '–' : String(Math.round((100 * sums.cache_read) / all));
}

function tableOf(
  groups: readonly UsageGroup[],
  { requests, lost }: { readonly requests: RequestCounts; readonly lost: CacheCosts },
  steps: boolean,
  names: ReadonlyMap<string, string>,
  columns: number | undefined,
): readonly string[] {
  const named = names.size > 0;
  const shown = (name: string | null) => (name === null || name === '' ? '–' : name);
  const counts = (sums: Sums, count: number | undefined, missed: number | undefined) => [
    count === undefined ? '–' : String(count),
    String(sums.tries),
    String(sums.input + sums.cache_write),
    String(sums.cache_read),
    shareRead(sums),
    String(sums.output + sums.reasoning),
    usdText(sums.cost),
    missed === undefined ? '–' : usdText(missed),
    String(sums.unpriced),
    String(sums.estimated),
  ];
  const rows = groups.map(({ name, start, sums }, i) => [
    ...(steps ? [new Date(start!).toISOString().slice(0, 16)] : []),
    shown(names.get(name ?? '') ?? name),
    ...(named ? [shown(name)] : []),
    ...counts(sums, requests.groups[i], lost.groups[i]),
  ]);
  const titles = [...(steps ? ['FROM'] : []), 'NAME', ...(named ? ['KEY'] : [])];
  const total = ['TOTAL', ...titles.slice(1).map(() => '')];
  rows.push([...total, ...counts(totalOf(groups), requests.total, lost.total)]);
  return fittingTable(rows, [...titles, ...COUNTS], columns, {
    spare: ['ESTIMATED', 'UNPRICED', 'CACHED', 'ATTEMPTS', 'LOST USD', 'READ %', 'KEY'],
    cut: { NAME: 20 },
    right: COUNTS,
  });
}

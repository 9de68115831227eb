/** Usage as CSV, one line for each group and step. */

import { usdText } from '../lib/text/usd.ts';
import { cell } from './rows.ts';
import { SUM_COLUMNS } from './schema.ts';
import type { UsageGroup, UsageNames, UsageQuery } from './usage.ts';

/** RFC 4180; `cost_usd` is a plain decimal. */
export function usageCsv(
  { by, step }: UsageQuery,
  groups: readonly UsageGroup[],
  { nameOf }: UsageNames = {},
): string {
  const what = typeof by === 'object' ? `label.${by.label}` : by;
  const counts = SUM_COLUMNS.filter((column) => column !== 'cost');
  const named = by === 'key';
  const head = [
    ...(step === undefined ? [] : ['from']),
    what,
    ...(named ? ['key_name'] : []),
    'cost_usd',
    ...counts,
  ];
  const lines = groups.map(({ name, start, others, sums }) =>
    [
      ...(start === undefined ? [] : [new Date(start).toISOString()]),
      cell(others ? '(others)' : name),
      ...(named ? [cell(nameOf?.(name ?? '') ?? null)] : []),
      usdText(sums.cost),
      ...counts.map((column) => cell(sums[column])),
    ].join(','),
  );
  return `${[head.map((title) => cell(title)).join(','), ...lines].join('\r\n')}\r\n`;
}

/** The options of `hopgate keys` that say what a key may use, as the members of its JSON. */

import { PERIODS } from '../../../config/sections/keys/budgets.ts';
import type { LimitName } from '../../../config/sections/keys/settings.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { type Invocation, type OptionSpec, UsageError } from '../../command.ts';

const LISTS = ['models', 'tools', 'routes', 'spaces'] as const;
const LIMITS: Readonly<Record<LimitName, string>> = {
  requests_per_minute: 'requests per minute',
  tokens_per_minute: 'tokens per minute',
  concurrent: 'requests at the same time',
};
const optionOf = (limit: string) => limit.replaceAll('_', '-');

export const KEY_OPTIONS: readonly OptionSpec[] = [
  { name: 'labels', value: 'NAME=VALUE,…', summary: 'labels, which budgets use to select keys' },
  { name: 'models', value: 'GLOB,…', summary: 'models the key may use' },
  { name: 'tools', value: 'GLOB,…', summary: 'server tools the key may use' },
  { name: 'routes', value: 'GLOB,…', summary: 'routes the key may use' },
  { name: 'spaces', value: 'GLOB,…', summary: 'memory spaces the key may use' },
  { name: 'expires', value: 'TIME', summary: 'a date, or a time with its time zone' },
  ...Object.entries(LIMITS).map(
    ([limit, summary]): OptionSpec => ({
      name: optionOf(limit),
      value: 'N',
      summary,
      range: [1, Number.MAX_SAFE_INTEGER],
    }),
  ),
  { name: 'budgets', value: 'USD/PERIOD,…', summary: 'amounts of money: 20/day,200/month' },
];

/** The members that options give; what is left out stays. @throws UsageError */
export function settingsOf({ text, number }: Invocation): JsonObject {
  const body: Record<string, JsonObject[string]> = {};
  const labels = text('labels');
  if (labels !== undefined) {
    body.labels = Object.fromEntries(
      partsOf(labels).map((part) => {
        const at = part.indexOf('=');
        if (at < 1) throw new UsageError(`--labels: "${part}" is not NAME=VALUE.`);
        return [part.slice(0, at), part.slice(at + 1)];
      }),
    );
  }
  for (const name of LISTS) {
    const list = text(name);
    if (list !== undefined) body[name] = partsOf(list);
  }
  const expires = text('expires');
  if (expires !== undefined) body.expires = expires;
  const limits = Object.keys(LIMITS).flatMap((limit) => {
    const value = number(optionOf(limit));
    return value === undefined ? [] : [[limit, value] as const];
  });
  if (limits.length > 0) body.limits = Object.fromEntries(limits);
  const budgets = text('budgets');
  if (budgets !== undefined) body.budgets = partsOf(budgets).map(budgetOf);
  return body;
}

const partsOf = (list: string): string[] =>
  list
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

function budgetOf(part: string): JsonObject {
  const [usd = '', per = '', ...rest] = part.split('/');
  const isAmount = /^\d{1,7}(?:\.\d{1,9})?$/.test(usd);
  if (isAmount && rest.length === 0 && PERIODS.some((period) => period === per)) {
    return { usd: Number(usd), per };
  }
  throw new UsageError(
    `--budgets: "${part}" is not USD/PERIOD, with one of ${PERIODS.join(', ')}.`,
  );
}

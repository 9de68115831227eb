/** The options of `hopgate keys` that say what a key may use, as the members of its JSON. */

import { PERIODS } from '../../../config/sections/keys/budgets.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { type Invocation, type OptionSpec, UsageError } from '../../command.ts';

const LISTS = ['models', 'tools', 'routes', 'spaces'] as const;
const NUMBERS = ['requests-per-minute', 'tokens-per-minute', 'concurrent'] as const;

export const KEY_OPTIONS: readonly OptionSpec[] = [
  { name: 'labels', value: 'NAME=VALUE,…', summary: 'labels, which budgets use to select keys' },
  { name: 'models', value: 'GLOB,…', summary: 'models the key may use' },
  { name: 'tools', value: 'GLOB,…', summary: 'server tools the key may use' },
  { name: 'routes', value: 'GLOB,…', summary: 'routes the key may use' },
  { name: 'spaces', value: 'GLOB,…', summary: 'memory spaces the key may use' },
  { name: 'expires', value: 'TIME', summary: 'a date, or a time with its time zone' },
  {
    name: 'requests-per-minute',
    value: 'N',
    summary: 'requests per minute',
    range: [1, Number.MAX_SAFE_INTEGER],
  },
  {
    name: 'tokens-per-minute',
    value: 'N',
    summary: 'tokens per minute',
    range: [1, Number.MAX_SAFE_INTEGER],
  },
  {
    name: 'concurrent',
    value: 'N',
    summary: 'requests at the same time',
    range: [1, Number.MAX_SAFE_INTEGER],
  },
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
  const limits = NUMBERS.flatMap((name) => {
    const value = number(name);
    return value === undefined ? [] : [[name.replaceAll('-', '_'), value] as const];
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

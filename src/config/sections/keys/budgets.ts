import { isTimeZone } from '../../../lib/text/calendar.ts';
import { suggest } from '../../../lib/text/did-you-mean.ts';
import type { Findings, Path } from '../../file/problem.ts';
import {
  choice,
  closed,
  httpUrl,
  list,
  named,
  number,
  type ProgramForm,
  string,
  text,
} from '../../file/schema.ts';

/** Nano-USD are exact in a number up to here. */
const MAX_USD = 9_000_000;
/** Characters of a name or of a label's value. */
const SHORT_TEXT = '^[^\\u0000-\\u001f\\u007f]{1,200}$';

export const PERIODS = ['minute', 'hour', 'day', 'week', 'month', 'total'] as const;

/** A text of one line for names and labels. */
export const shortText = (description: string) =>
  string(description, {
    minLength: 1,
    pattern: SHORT_TEXT,
    'x-mismatch': 'must be one line of at most 200 characters',
  });

export const labelMap = (description: string) =>
  named(shortText('The value of the label.'), description, '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$');

const amount = {
  usd: number('The amount in USD.', { minimum: 0, maximum: MAX_USD }),
  per: choice(
    PERIODS,
    'The calendar period of the amount; each period starts at zero. `total` never ends.',
  ),
  time_zone: text('The IANA time zone in which periods begin, such as "Europe/Berlin".')
    .reads((zone, { path, findings }) => {
      if (!isTimeZone(zone)) findings.problems.push({ path, message: 'is not an IANA time zone' });
      return zone;
    })
    .byDefault('UTC'),
  warn: list(
    number(undefined, { minimum: 0, maximum: 1 }),
    'Shares of the amount at which a warning is sent, each once per period.',
  )
    .reads((shares): readonly number[] => [...new Set(shares)].sort((a, b) => a - b))
    .byDefault([0.5, 0.8]),
  over: text('When the amount is spent: `refuse`, `warn`, or the name of a route.').byDefault(
    'refuse',
  ),
  webhook: httpUrl(
    'An address that gets a POST for each warning, and when the amount is spent.',
  ).optional('warnings are logged only'),
};

export const keyBudget = closed('An amount of money for a period.', {
  name: shortText('A name for messages. Spend is counted under it.').optional('its period'),
  ...amount,
});

export const budgets = list(
  closed('An amount of money that several keys share.', {
    name: shortText('A name for messages. Spend is counted under it.'),
    keys: labelMap(
      'The keys that share the budget: those that have each of these labels.',
    ).byDefault({}),
    ...amount,
  }),
  'Budgets that keys share. A budget without `keys` is shared by all requests.',
);

type Amount = ProgramForm<typeof keyBudget>;

/** An amount of money for one period. */
export interface Budget extends Omit<Amount, 'name' | 'usd' | 'over'> {
  /** Stable: what was spent belongs to it. */
  readonly id: string;
  /** For messages. */
  readonly name: string;
  /** 1e-9 USD, an integer. */
  readonly nanoUsd: number;
  /** What happens when it is used up; a route's name sends requests there. */
  readonly over:
    | { readonly action: 'refuse' | 'warn' }
    | { readonly action: 'route'; readonly route: string };
}

/** A budget of the section, and the labels of the keys that share it. */
export interface SharedBudget extends Budget {
  readonly keys: Readonly<Record<string, string>>;
}

/** The names of the routes, for budgets that send requests to one. */
export type RouteNames = ReadonlySet<string>;

export function resolveBudgets(
  written: ProgramForm<typeof budgets>,
  routes: RouteNames,
  findings: Findings,
): readonly SharedBudget[] {
  const names = new Set<string>();
  return written.map((one, index) => {
    const path: Path = ['budgets', index];
    if (names.has(one.name)) {
      findings.problems.push({ path: [...path, 'name'], message: 'another budget has this name' });
    }
    names.add(one.name);
    const id = `budget:${encodeURIComponent(one.name)}`;
    return {
      ...resolveAmount(one, { id, name: one.name, path }, routes, findings),
      keys: one.keys,
    };
  });
}

/**
 * The budgets of one key.
 * @param key its id, and its name for messages
 */
export function resolveKeyBudgets(
  written: readonly Amount[],
  key: { readonly id: string; readonly name: string; readonly path: Path },
  routes: RouteNames,
  findings: Findings,
): readonly Budget[] {
  const ids = new Set<string>();
  return written.map((one, index) => {
    const path: Path = [...key.path, 'budgets', index];
    // A period can occur once without a name: the order of budgets decides nothing.
    const own = one.name === undefined ? `per ${one.per}` : encodeURIComponent(one.name);
    const id = `key:${encodeURIComponent(key.id)}/${own}`;
    if (ids.has(id)) {
      const message = `another budget of this key has ${one.name === undefined ? 'this period: give each a name' : 'this name'}`;
      findings.problems.push({ path, message });
    }
    ids.add(id);
    const name = `${key.name}: ${one.name ?? `per ${one.per}`}`;
    return resolveAmount(one, { id, name, path }, routes, findings);
  });
}

function resolveAmount(
  { usd, per, timeZone, warn, over, webhook }: Amount,
  { id, name, path }: { readonly id: string; readonly name: string; readonly path: Path },
  routes: RouteNames,
  { problems }: Findings,
): Budget {
  const action = over === 'refuse' || over === 'warn' ? over : undefined;
  if (action === undefined && !routes.has(over)) {
    problems.push({
      path: [...path, 'over'],
      message: 'must be refuse, warn or the name of a route',
      suggestion: suggest(over, ['refuse', 'warn', ...routes]),
    });
  }
  return {
    id,
    name,
    nanoUsd: Math.round(usd * 1e9),
    per,
    timeZone,
    warn,
    over: action === undefined ? { action: 'route', route: over } : { action },
    ...(webhook !== undefined && { webhook }),
  };
}

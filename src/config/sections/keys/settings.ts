/** Permissions and limits of a gateway key: the part that keys of the file and keys of the admin API share. */

import { type Static, Type } from '@sinclair/typebox';
import { isDay } from '../../../lib/text/calendar-day.ts';
import { globTest } from '../../../lib/text/glob.ts';
import type { Findings, Path } from '../../file/problem.ts';
import { byDefault, closed, count, optional, text } from '../../file/schema-types.ts';
import { type Budget, keyBudget, labelMap, type RouteNames, resolveKeyBudgets } from './budgets.ts';

/** Entries of one list, characters of one pattern. */
const MAX_PATTERNS = 200;
const LONG_PATTERN = 500;

const patterns = (item: string, description: string) =>
  optional(Type.Array(text(item), { description }), 'all of them');

/** The members of a key, as the file and the admin API have them. */
export const keySettings = {
  labels: byDefault(labelMap('Names and values of your choice; budgets select keys by them.'), {}),
  models: patterns(
    'A glob; upper and lower case differ.',
    'Models that the key may use: names as clients ask for them, or provider/model for targets.',
  ),
  tools: patterns(
    'A glob; upper and lower case differ.',
    'Server tools that the key may use, by name: web_search, or that of an HTTP or MCP tool.',
  ),
  routes: patterns('A glob; upper and lower case differ.', 'Routes that may serve the key.'),
  spaces: patterns('A glob; upper and lower case differ.', 'Memory spaces that the key may use.'),
  expires: optional(
    text(
      'A date (its first moment in UTC) or a time with its zone, such as "2027-01-01T00:00:00Z".',
    ),
    'never',
  ),
  limits: byDefault(
    closed(
      {
        requests_per_minute: optional(count('Requests per minute, spread evenly.', 1), 'no limit'),
        tokens_per_minute: optional(count('Tokens per minute, spread evenly.', 1), 'no limit'),
        concurrent: optional(count('Requests at the same time, streams included.', 1), 'no limit'),
      },
      'How much the key may use.',
    ),
    {},
  ),
  budgets: byDefault(
    Type.Array(keyBudget, { description: 'Budgets in USD; all of them apply.' }),
    [],
  ),
};

const schema = closed(keySettings, 'What a key may use, and how much.');
export type FileKeySettings = Static<typeof schema>;

/** As in the configuration; what is left out has no limit. */
export interface KeyLimits {
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  /** Exchanges at a time, streams included. */
  readonly concurrent?: number;
}

type WrittenLimits = FileKeySettings['limits'];
/** A limit as the configuration, messages and reports name it. */
export type LimitName = keyof WrittenLimits;

const LIMIT_KEYS: Readonly<Record<LimitName, keyof KeyLimits>> = {
  requests_per_minute: 'requestsPerMinute',
  tokens_per_minute: 'tokensPerMinute',
  concurrent: 'concurrent',
};
const LIMITS = Object.entries(LIMIT_KEYS) as readonly (readonly [LimitName, keyof KeyLimits])[];

/** What a key may use: globs, case-sensitive; everything where a list is left out. */
export interface Permissions {
  /** Names as clients ask for them, or `provider/model`. */
  readonly models?: readonly string[];
  readonly tools?: readonly string[];
  readonly routes?: readonly string[];
  /** Memory spaces. */
  readonly spaces?: readonly string[];
}

export interface KeySettings extends Permissions {
  readonly labels: Readonly<Record<string, string>>;
  /** Milliseconds since 1970. */
  readonly expires?: number;
  readonly limits: KeyLimits;
  readonly budgets: readonly Budget[];
}

/** @param key what the settings belong to, and where they stand */
export function resolveKeySettings(
  written: FileKeySettings,
  key: { readonly id: string; readonly name: string; readonly path: Path },
  routes: RouteNames,
  findings: Findings,
): KeySettings {
  const { labels, models, tools, spaces, limits } = written;
  for (const name of ['models', 'tools', 'routes', 'spaces'] as const) {
    checkPatterns(written[name], [...key.path, name], findings);
  }
  written.routes?.forEach((glob, index) => {
    const test = globTest(glob);
    if (![...routes].some(test)) {
      const path = [...key.path, 'routes', index];
      findings.warnings.push({ path, message: 'no route has this name' });
    }
  });
  const expires = written.expires === undefined ? undefined : timeOf(written.expires);
  if (written.expires !== undefined && expires === undefined) {
    findings.problems.push({
      path: [...key.path, 'expires'],
      message: 'must be a date such as 2027-01-31, or a time such as 2027-01-31T18:00:00Z',
    });
  }
  return {
    labels,
    ...(models !== undefined && { models }),
    ...(tools !== undefined && { tools }),
    ...(written.routes !== undefined && { routes: written.routes }),
    ...(spaces !== undefined && { spaces }),
    ...(expires !== undefined && { expires }),
    limits: resolveKeyLimits(limits),
    budgets: resolveKeyBudgets(written.budgets, key, routes, findings),
  };
}

const resolveKeyLimits = (written: WrittenLimits): KeyLimits =>
  limitsBy(LIMITS.map(([name, key]) => [key, written[name]]));

/** Limits as the file has them. */
export const writtenLimits = (limits: KeyLimits): WrittenLimits =>
  limitsBy(LIMITS.map(([name, key]) => [name, limits[key]]));

/** The lowest limit of each kind. */
export const leastLimits = (all: readonly KeyLimits[]): KeyLimits =>
  all.length === 1
    ? all[0]!
    : limitsBy(LIMITS.map(([, key]) => [key, least(all.map((one) => one[key]))]));

const limitsBy = <Name extends string>(
  all: readonly (readonly [Name, number | undefined])[],
): Partial<Record<Name, number>> =>
  Object.fromEntries(all.filter(([, limit]) => limit !== undefined)) as Partial<
    Record<Name, number>
  >;

/** Undefined: none of the values is given. */
export function least(values: readonly (number | undefined)[]): number | undefined {
  const given = values.filter((value) => value !== undefined);
  return given.length === 0 ? undefined : Math.min(...given);
}

function checkPatterns(list: readonly string[] | undefined, path: Path, findings: Findings): void {
  if (list === undefined) return;
  if (list.length > MAX_PATTERNS) {
    findings.problems.push({ path, message: `must hold at most ${MAX_PATTERNS} entries` });
  }
  if (list.some((glob) => glob.length > LONG_PATTERN)) {
    const message = `must hold no pattern of more than ${LONG_PATTERN} characters`;
    findings.problems.push({ path, message });
  }
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIME = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** Milliseconds since 1970; undefined for what is neither a date nor a time with its zone. */
function timeOf(written: string): number | undefined {
  if (!DATE.test(written) && !TIME.test(written)) return undefined;
  const iso = DATE.test(written) ? `${written}T00:00:00Z` : written.replace(' ', 'T').toUpperCase();
  const time = Date.parse(iso);
  if (Number.isNaN(time)) return undefined;
  return isDay(iso.slice(0, 10)) ? time : undefined;
}

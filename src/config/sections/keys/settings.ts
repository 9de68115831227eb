/** Permissions and limits of a gateway key: the part that keys of the file and keys of the admin API share. */

import { isDay } from '../../../lib/text/calendar.ts';
import { globTest } from '../../../lib/text/glob.ts';
import type { Findings, Path } from '../../file/problem.ts';
import {
  closed,
  count,
  type FileForm,
  inProgram,
  list,
  type ProgramForm,
  programName,
  type Reading,
  text,
} from '../../file/schema.ts';
import { type Budget, keyBudget, labelMap, type RouteNames, resolveKeyBudgets } from './budgets.ts';

/** Entries of one list, characters of one pattern. */
const MAX_PATTERNS = 200;
const LONG_PATTERN = 500;

const patterns = (description: string) =>
  list(text('A glob; upper and lower case differ.'), description)
    .reads(checkedPatterns)
    .optional('all of them');

const limits = closed('How much the key may use.', {
  requests_per_minute: count('Requests per minute, spread evenly.', 1).optional('no limit'),
  tokens_per_minute: count('Tokens per minute, spread evenly.', 1).optional('no limit'),
  concurrent: count('Requests at the same time, streams included.', 1).optional('no limit'),
});

/** The members of a key, as the file and the admin API have them. */
export const keySettings = {
  labels: labelMap('Names and values of your choice; budgets select keys by them.').byDefault({}),
  models: patterns(
    'Models that the key may use: names as clients ask for them, or provider/model for targets.',
  ),
  tools: patterns(
    'Server tools that the key may use, by name: web_search, or that of an HTTP or MCP tool.',
  ),
  routes: patterns('Routes that may serve the key.'),
  spaces: patterns('Memory spaces that the key may use.'),
  expires: text(
    'A date (its first moment in UTC) or a time with its zone, such as "2027-01-01T00:00:00Z".',
  )
    .reads(timeOf)
    .optional('never'),
  limits: limits.byDefault({}),
  budgets: list(
    keyBudget,
    'Budgets in USD, with the keys of `budgets`; all of them apply.',
  ).byDefault([]),
};

const schema = closed('Settings of a key.', keySettings);
/** The settings of a key as they are written and stored. */
export type FileKeySettings = FileForm<typeof schema>;
type OwnSettings = ProgramForm<typeof schema>;

/** As in the configuration; what is left out has no limit. */
export type KeyLimits = ProgramForm<typeof limits>;
/** A limit as the configuration, messages and reports name it. */
export type LimitName = keyof typeof limits.properties;

const LIMITS = Object.entries(limits.properties).map(
  ([name, node]) => [name as LimitName, programName(name, node) as keyof KeyLimits] as const,
);

/** What a key may use: globs, case-sensitive; everything where a list is left out. */
export type Permissions = Pick<OwnSettings, 'models' | 'tools' | 'routes' | 'spaces'>;

export interface KeySettings extends Omit<OwnSettings, 'budgets'> {
  readonly budgets: readonly Budget[];
}

/** The key that settings belong to, and where they stand. */
interface KeyPlace {
  readonly id: string;
  readonly name: string;
  readonly path: Path;
}

/** The settings of a key made at run time. */
export function readKeySettings(
  written: FileKeySettings,
  key: KeyPlace,
  routes: RouteNames,
  findings: Findings,
): KeySettings {
  const own = inProgram(schema, written, { path: key.path, findings });
  return resolveKeySettings(own, key, routes, findings);
}

export function resolveKeySettings(
  { labels, models, tools, routes: ownRoutes, spaces, expires, limits, budgets }: OwnSettings,
  key: KeyPlace,
  routes: RouteNames,
  findings: Findings,
): KeySettings {
  ownRoutes?.forEach((glob, index) => {
    const test = globTest(glob);
    if ([...routes].some(test)) return;
    findings.warnings.push({
      path: [...key.path, 'routes', index],
      message: 'no route has this name',
    });
  });
  return {
    labels,
    models,
    tools,
    routes: ownRoutes,
    spaces,
    expires,
    limits,
    budgets: resolveKeyBudgets(budgets, key, routes, findings),
  };
}

export const writtenLimits = (limits: KeyLimits): FileKeySettings['limits'] =>
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

function checkedPatterns(globs: readonly string[], { path, findings }: Reading): readonly string[] {
  if (globs.length > MAX_PATTERNS) {
    findings.problems.push({ path, message: `must hold at most ${MAX_PATTERNS} entries` });
  }
  if (globs.some((glob) => glob.length > LONG_PATTERN)) {
    const message = `must hold no pattern of more than ${LONG_PATTERN} characters`;
    findings.problems.push({ path, message });
  }
  return globs;
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIME = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** Milliseconds since 1970. */
function timeOf(written: string, { path, findings }: Reading): number | undefined {
  const isDate = DATE.test(written);
  const iso = isDate ? `${written}T00:00:00Z` : written.replace(' ', 'T').toUpperCase();
  const time = isDate || TIME.test(written) ? Date.parse(iso) : Number.NaN;
  if (!Number.isNaN(time) && isDay(iso.slice(0, 10))) return time;
  findings.problems.push({
    path,
    message: 'must be a date such as 2027-01-31, or a time such as 2027-01-31T18:00:00Z',
  });
  return undefined;
}

/** The `when` of a route: the conditions a request must meet, and how ranges, patterns and times are read. */

import { EFFORTS } from '../../conversation/models/efforts.ts';
import { PROTOCOL_NAMES } from '../../conversation/protocol-names.ts';
import { suggest } from '../../lib/text/did-you-mean.ts';
import {
  byDefault,
  choice,
  closed,
  either,
  flag,
  integer,
  list,
  lowerCased,
  named,
  oneOrMore,
  optional,
  type ProgramForm,
  type Reading,
  reads,
  string,
  text,
} from '../file/schema.ts';
import { CATEGORIES } from './categories.ts';

const anything = 'any';
const RANGE =
  '^\\s*(?:[<>]=?\\s*|=\\s*)?\\d+(\\.\\d+)?[kKmM]?\\s*(\\.\\.\\s*\\d+(\\.\\d+)?[kKmM]?\\s*)?$';

/** A range, or a share of a window. */
const SIZE = `^\\s*<=?\\s*\\d+(\\.\\d+)?\\s*%\\s*$|${RANGE}`;

const size = integer(undefined, 0);

const howMany = (what: string) =>
  reads(
    either(
      [flag(), size, string(undefined, { pattern: RANGE })],
      `${what}: true = some, false = none, or a range such as ">10".`,
    ),
    rangeOf,
  );
const HOURS = '^\\s*\\d{1,2}:\\d{2}\\s*-\\s*\\d{1,2}:\\d{2}\\s*$';
const hours = string('Start and end, such as "22:00-06:00"; the end is excluded.', {
  pattern: HOURS,
});

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;

const conditions = closed(
  {
    model: optional(
      oneOrMore(
        reads(
          text('A glob ("claude-*"; case does not matter) or a "/regular expression/".'),
          checkedPattern,
        ),
        'The model name that the client asked for, after aliases.',
      ),
      anything,
    ),
    protocol: optional(
      oneOrMore(choice(PROTOCOL_NAMES, 'A protocol.'), 'The protocol that the client speaks.'),
      anything,
    ),
    category: optional(
      oneOrMore(choice(CATEGORIES, 'A category.'), 'The category that the classifier finds.'),
      anything,
    ),
    tokens: optional(
      either(
        [size, string(undefined, { pattern: SIZE })],
        'Size of the prompt, estimated: ">60000", "<=1000", "1k..5k" or a number; "<80%": less than this share of the context window of the first target in `to`.',
      ),
      anything,
    ),
    stream: optional(flag('Whether the client asked for a stream.'), anything),
    images: optional(howMany('Images in the last user turn'), anything),
    documents: optional(howMany('PDFs and other files in the prompt'), anything),
    tools: optional(howMany('Tools of any kind'), anything),
    tool_names: optional(
      oneOrMore(text('A glob.'), "Names of the client's own tools; one match is enough."),
      anything,
    ),
    hosted_tools: optional(
      oneOrMore(text('A glob.'), 'Names of hosted tools such as web_search; one match is enough.'),
      anything,
    ),
    thinking: optional(flag('Whether the client wants reasoning.'), anything),
    effort: optional(
      oneOrMore(choice(EFFORTS, 'An effort.'), 'The reasoning effort that the client asked for.'),
      anything,
    ),
    background: optional(
      flag('Whether this looks like a side job (a title, a summary).'),
      anything,
    ),
    headers: optional(
      lowerCased(
        named(
          reads(
            either([flag(), string(), list(string(), undefined, { minItems: 1 })]),
            (value): readonly string[] | false =>
              typeof value === 'boolean'
                ? value && ['*']
                : typeof value === 'string'
                  ? [value]
                  : value,
          ),
          'Header name → globs; true = present, false = absent.',
        ),
      ),
      anything,
    ),
    text: optional(
      oneOrMore(text('A glob.'), 'The text of the last user turn ("*urgent*").'),
      anything,
    ),
    time: optional(
      reads(
        either(
          [
            hours,
            closed(
              {
                hours: byDefault(hours, '00:00-24:00'),
                days: optional(
                  oneOrMore(choice(DAYS, 'A day.'), 'Days on which the window begins.'),
                  'every day',
                ),
                zone: optional(text('IANA time zone, such as "Europe/Berlin".'), "the machine's"),
              },
              'A window of time.',
            ),
          ],
          'A time of day such as "22:00-06:00", or a mapping with hours, days and zone.',
        ),
        windowOf,
      ),
      anything,
    ),
  },
  'Conditions; all that are given must hold.',
);

/**
 * All conditions that are given must hold; of a list, one entry must. Globs know `*` and `?` and ignore
 * case.
 */
export const when = reads(conditions, ({ tokens, ...more }, { path, findings }) => {
  const windowShare = parseShare(tokens);
  const at = { path: [...path, 'tokens'], findings };
  return {
    ...more,
    ...(windowShare !== undefined && { windowShare }),
    ...(tokens !== undefined && windowShare === undefined && { tokens: rangeOf(tokens, at) }),
  };
});

/** Whole numbers, both ends included. */
export interface NumberRange {
  readonly min: number;
  /** Infinity when open. */
  readonly max: number;
}

export interface WhenConfig extends Omit<ProgramForm<typeof conditions>, 'tokens'> {
  readonly tokens?: NumberRange | undefined;
  /** The largest prompt, as a share of the context window of the route's first target: 0.8. */
  readonly windowShare?: number;
}

export interface TimeWindow {
  /** Minutes of the day; with `from > to` the window runs over midnight. */
  readonly from: number;
  readonly to: number;
  /** 0 = Sunday … 6; all when left out. A window over midnight belongs to the day on which it begins. */
  readonly days?: readonly number[];
  /** IANA name; the machine's own when left out. */
  readonly zone?: string;
}

function checkedPattern(pattern: string, { path, findings }: Reading): string {
  if (pattern.startsWith('/') && compileRegex(pattern) === undefined) {
    findings.problems.push({ path, message: 'is not a regular expression' });
  }
  return pattern;
}

function rangeOf(
  value: string | number | boolean,
  { path, findings }: Pick<Reading, 'path' | 'findings'>,
): NumberRange | undefined {
  const range = parseRange(value);
  if (range === undefined) {
    findings.problems.push({ path, message: 'is a range that holds no number' });
  }
  return range;
}

const UNITS: Readonly<Record<string, number>> = { k: 1000, m: 1_000_000 };

/**
 * `>60000`, `<=1000`, `1k..5k`, `3`, and for counts `true` (1 and more) and `false` (none).
 * Undefined when it is empty (`5..3`, `<0`) or not a range.
 */
export function parseRange(written: string | number | boolean): NumberRange | undefined {
  if (typeof written === 'boolean') {
    return written ? { min: 1, max: Number.POSITIVE_INFINITY } : { min: 0, max: 0 };
  }
  if (typeof written === 'number') return { min: written, max: written };
  const parts =
    /^\s*(?:([<>]=?|=)\s*)?(\d+(?:\.\d+)?)([km]?)\s*(?:(\.\.)\s*(\d+(?:\.\d+)?)([km]?)\s*)?$/i.exec(
      written,
    );
  if (parts === null) return undefined;
  const size = (digits: string, unit = '') => Number(digits) * (UNITS[unit.toLowerCase()] ?? 1);
  const [, sign, digits, unit, dots, endDigits, endUnit] = parts;
  const number = size(digits!, unit);
  if (dots !== undefined) {
    const max = size(endDigits!, endUnit);
    return sign === undefined && max >= number ? { min: number, max } : undefined;
  }
  switch (sign) {
    case '>':
      return { min: Math.floor(number) + 1, max: Number.POSITIVE_INFINITY };
    case '>=':
      return { min: number, max: Number.POSITIVE_INFINITY };
    case '<':
      return number > 0 ? { min: 0, max: Math.ceil(number) - 1 } : undefined;
    case '<=':
      return { min: 0, max: number };
    default:
      return { min: number, max: number };
  }
}

/** `<80%` as 0.8; undefined when it is no share. */
function parseShare(written: string | number | undefined): number | undefined {
  const percent = /^\s*<=?\s*(\d+(?:\.\d+)?)\s*%\s*$/.exec(String(written ?? ''))?.[1];
  return percent === undefined ? undefined : Number(percent) / 100;
}

/** `/pattern/flags` compiled; undefined when it is not one. */
export function compileRegex(text: string): RegExp | undefined {
  const end = text.lastIndexOf('/');
  if (!text.startsWith('/') || end === 0) return undefined;
  const flags = text.slice(end + 1);
  // `g` and `y` keep state between tests.
  if (/[^imsuv]/.test(flags)) return undefined;
  try {
    return new RegExp(text.slice(1, end), flags);
  } catch {
    return undefined;
  }
}

interface WrittenWindow {
  readonly hours: string;
  readonly days?: readonly (typeof DAYS)[number][];
  readonly zone?: string;
}

function windowOf(
  written: string | WrittenWindow,
  { path, findings }: Reading,
): TimeWindow | undefined {
  const { hours, days, zone }: WrittenWindow =
    typeof written === 'string' ? { hours: written } : written;
  const [from, to] = hours.split('-').map(minutes);
  if (from === undefined || to === undefined || from === to) {
    findings.problems.push({
      path: typeof written === 'string' ? path : [...path, 'hours'],
      message: 'is not a window of time such as "22:00-06:00"',
    });
    return undefined;
  }
  if (zone !== undefined && !isZone(zone)) {
    findings.problems.push({
      path: [...path, 'zone'],
      message: 'is not a time zone',
      suggestion: suggest(zone, Intl.supportedValuesOf('timeZone')),
    });
    return undefined;
  }
  return { from, to, days: days?.map((day) => DAYS.indexOf(day)), zone };
}

function minutes(text: string): number | undefined {
  const [hour, minute] = text.trim().split(':').map(Number);
  if (hour === undefined || minute === undefined || minute > 59) return undefined;
  const total = hour * 60 + minute;
  return total <= 24 * 60 ? total : undefined;
}

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

/** The `when` of a route: the conditions a request must meet, and how ranges, patterns and times are read. */

import { type Static, Type } from '@sinclair/typebox';
import { EFFORTS } from '../../conversation/models/efforts.ts';
import { PROTOCOL_NAMES, type ProtocolName } from '../../conversation/protocol-names.ts';
import { suggest } from '../../lib/text/did-you-mean.ts';
import type { Findings, Path } from '../file/problem.ts';
import {
  byDefault,
  choice,
  closed,
  flag,
  listOf,
  named,
  oneOrMore,
  optional,
  text,
} from '../file/schema-types.ts';
import { CATEGORIES, type Category } from './categories.ts';

const anything = 'any';
const RANGE =
  '^\\s*(?:[<>]=?\\s*|=\\s*)?\\d+(\\.\\d+)?[kKmM]?\\s*(\\.\\.\\s*\\d+(\\.\\d+)?[kKmM]?\\s*)?$';

/** A range, or a share of a window. */
const SIZE = `^\\s*<=?\\s*\\d+(\\.\\d+)?\\s*%\\s*$|${RANGE}`;

const howMany = (what: string) =>
  Type.Union([Type.Boolean(), Type.Integer({ minimum: 0 }), Type.String({ pattern: RANGE })], {
    description: `${what}: true = some, false = none, or a range such as ">10".`,
  });
const HOURS = '^\\s*\\d{1,2}:\\d{2}\\s*-\\s*\\d{1,2}:\\d{2}\\s*$';
const hours = Type.String({
  pattern: HOURS,
  description: 'Start and end, such as "22:00-06:00"; the end is excluded.',
});

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;

export const when = closed(
  {
    model: optional(
      oneOrMore(
        text('A glob ("claude-*"; case does not matter) or a "/regular expression/".'),
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
      Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: SIZE })], {
        description:
          'Size of the prompt, estimated: ">60000", "<=1000", "1k..5k" or a number; "<80%": less than this share of the context window of the first target in `to`.',
      }),
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
      named(
        Type.Union([Type.Boolean(), Type.String(), Type.Array(Type.String(), { minItems: 1 })]),
        'Header name → globs; true = present, false = absent.',
      ),
      anything,
    ),
    text: optional(
      oneOrMore(text('A glob.'), 'The text of the last user turn ("*urgent*").'),
      anything,
    ),
    time: optional(
      Type.Union(
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
        {
          description:
            'A time of day such as "22:00-06:00", or a mapping with hours, days and zone.',
        },
      ),
      anything,
    ),
  },
  'Conditions; all that are given must hold.',
);

/** Whole numbers, both ends included. */
export interface NumberRange {
  readonly min: number;
  /** Infinity when open. */
  readonly max: number;
}

/**
 * All conditions that are given must hold; of a list, one entry must. Globs know `*` and `?` and ignore
 * case.
 */
export interface WhenConfig {
  /** Globs, or `/regular expressions/`. */
  readonly model?: readonly string[];
  readonly protocol?: readonly ProtocolName[];
  readonly category?: readonly Category[];
  readonly tokens?: NumberRange;
  /** The largest prompt, as a share of the context window of the route's first target: 0.8. */
  readonly windowShare?: number;
  readonly stream?: boolean;
  /** How many; `true` in the file is 1 and more, `false` none. */
  readonly images?: NumberRange;
  readonly documents?: NumberRange;
  /** The client's own tools and hosted ones together. */
  readonly tools?: NumberRange;
  /** Globs over the names of the client's own tools. */
  readonly toolNames?: readonly string[];
  /** Globs over canonical names of hosted tools. */
  readonly hostedTools?: readonly string[];
  readonly thinking?: boolean;
  readonly effort?: readonly string[];
  readonly background?: boolean;
  /** Header name (lower case) → globs over its value; false: the header is absent. */
  readonly headers?: Readonly<Record<string, readonly string[] | false>>;
  /** Globs over the text of the last user turn. */
  readonly text?: readonly string[];
  readonly time?: TimeWindow;
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

type FileWhen = Static<typeof when>;

/** @param route the path of the route that the conditions belong to */
export function resolveWhen(written: FileWhen, route: Path, findings: Findings): WhenConfig {
  const path: Path = [...route, 'when'];
  const rangeOf = (key: 'tokens' | 'images' | 'documents' | 'tools') => {
    const value = written[key];
    if (value === undefined) return undefined;
    const parsed = parseRange(value);
    if (parsed === undefined) {
      findings.problems.push({ path: [...path, key], message: 'is a range that holds no number' });
    }
    return parsed;
  };
  const windowShare = parseShare(written.tokens);
  const model = listOf(written.model);
  for (const [index, pattern] of (model ?? []).entries()) {
    if (pattern.startsWith('/') && compileRegex(pattern) === undefined) {
      findings.problems.push({
        path: Array.isArray(written.model) ? [...path, 'model', index] : [...path, 'model'],
        message: 'is not a regular expression',
      });
    }
  }
  return withoutUndefined({
    model,
    protocol: listOf(written.protocol),
    category: listOf(written.category),
    tokens: windowShare === undefined ? rangeOf('tokens') : undefined,
    windowShare,
    stream: written.stream,
    images: rangeOf('images'),
    documents: rangeOf('documents'),
    tools: rangeOf('tools'),
    toolNames: listOf(written.tool_names),
    hostedTools: listOf(written.hosted_tools),
    thinking: written.thinking,
    effort: listOf(written.effort),
    background: written.background,
    headers: written.headers === undefined ? undefined : resolveHeaders(written.headers),
    text: listOf(written.text),
    time: written.time === undefined ? undefined : resolveTime(written.time, path, findings),
  });
}

function withoutUndefined(conditions: WhenConfig): WhenConfig {
  return Object.fromEntries(Object.entries(conditions).filter(([, value]) => value !== undefined));
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

function resolveHeaders(headers: NonNullable<FileWhen['headers']>): WhenConfig['headers'] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase(),
      value === false ? false : value === true ? ['*'] : (listOf(value) ?? []),
    ]),
  );
}

function resolveTime(
  written: NonNullable<FileWhen['time']>,
  parent: Path,
  findings: Findings,
): TimeWindow | undefined {
  const path: Path = [...parent, 'time'];
  const window = typeof written === 'string' ? { hours: written } : written;
  const [from, to] = window.hours.split('-').map(minutes);
  if (from === undefined || to === undefined || from === to) {
    findings.problems.push({
      path: typeof written === 'string' ? path : [...path, 'hours'],
      message: 'is not a window of time such as "22:00-06:00"',
    });
    return undefined;
  }
  const days = 'days' in window ? listOf(window.days) : undefined;
  const zone = 'zone' in window ? window.zone : undefined;
  if (zone !== undefined && !isZone(zone)) {
    findings.problems.push({
      path: [...path, 'zone'],
      message: 'is not a time zone',
      suggestion: suggest(zone, Intl.supportedValuesOf('timeZone')),
    });
    return undefined;
  }
  return {
    from,
    to,
    ...(days === undefined ? {} : { days: days.map((day) => DAYS.indexOf(day)) }),
    ...(zone === undefined ? {} : { zone }),
  };
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

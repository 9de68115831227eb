/** The `when` of a route: the conditions a request must meet, and how ranges, patterns and times are read. */

import { EFFORTS } from '../../conversation/models/efforts.ts';
import { PROTOCOL_NAMES } from '../../conversation/protocol-names.ts';
import {
  choice,
  closed,
  either,
  flag,
  integer,
  list,
  named,
  oneOrMore,
  type ProgramForm,
  type Reading,
  string,
  text,
} from '../file/schema.ts';
import { CATEGORIES } from './categories.ts';
import { timeWindow } from './time-window.ts';

const anything = 'any';
const RANGE =
  '^\\s*(?:[<>]=?\\s*|=\\s*)?\\d+(\\.\\d+)?[kKmM]?\\s*(\\.\\.\\s*\\d+(\\.\\d+)?[kKmM]?\\s*)?$';

/** A range, or a share of a window. */
const SIZE = `^\\s*<=?\\s*\\d+(\\.\\d+)?\\s*%\\s*$|${RANGE}`;

const size = integer(undefined, 0);

const howMany = (description: string) =>
  either([flag(), size, string(undefined, { pattern: RANGE })], description).reads(rangeOf);

const conditions = closed('Conditions; all that are given must hold.', {
  model: oneOrMore(
    text('A glob ("claude-*"; case does not matter) or a "/regular expression/".').reads(
      checkedPattern,
    ),
    'The model name that the client asked for, after aliases.',
  ).optional(anything),
  protocol: oneOrMore(
    choice(PROTOCOL_NAMES, 'A protocol.'),
    'The protocol that the client speaks.',
  ).optional(anything),
  category: oneOrMore(
    choice(CATEGORIES, 'A category.'),
    'The category that the classifier finds.',
  ).optional(anything),
  tokens: either(
    [size, string(undefined, { pattern: SIZE })],
    'Size of the prompt, estimated: ">60000", "<=1000", "1k..5k" or a number; "<80%": less than this share of the context window of the first target in `to`.',
  ).optional(anything),
  stream: flag('The client asks for a stream.').optional(anything),
  images: howMany(
    'Images in the last user turn: true = some, false = none, or a range such as ">10".',
  ).optional(anything),
  documents: howMany('PDFs and other files in the prompt, as images.').optional(anything),
  tools: howMany('Tools of any kind, as images.').optional(anything),
  tool_names: oneOrMore(
    text('A glob.'),
    "Names of the client's own tools; one match is enough.",
  ).optional(anything),
  hosted_tools: oneOrMore(
    text('A glob.'),
    'Names of hosted tools such as web_search; one match is enough.',
  ).optional(anything),
  thinking: flag('The client wants reasoning.').optional(anything),
  effort: oneOrMore(
    choice(EFFORTS, 'An effort.'),
    'The reasoning effort that the client asked for.',
  ).optional(anything),
  background: flag('It looks like a side job (a title, a summary).').optional(anything),
  headers: named(
    either([flag(), string(), list(string(), undefined, { minItems: 1 })]).reads(
      (value): readonly string[] | false =>
        typeof value === 'boolean' ? value && ['*'] : typeof value === 'string' ? [value] : value,
    ),
    'Header name → globs; true = present, false = absent.',
  )
    .lowerCased()
    .optional(anything),
  text: oneOrMore(text('A glob.'), 'The text of the last user turn ("*urgent*").').optional(
    anything,
  ),
  time: timeWindow("the machine's").optional(anything),
});

/**
 * All conditions that are given must hold; of a list, one entry must. Globs know `*` and `?` and ignore
 * case.
 */
export const when = conditions.reads(({ tokens, ...more }, { path, findings }) => {
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

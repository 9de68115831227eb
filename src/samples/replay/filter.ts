/** Parses times and filters of samples as people write them. */

import { invalid } from '../../conversation/errors.ts';
import { isGlob } from '../../lib/text/glob.ts';
import type { SampleFilter } from '../sample.ts';

const UNITS: Readonly<Record<string, number>> = { s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };

/**
 * A time in milliseconds since 1970, from `30m`, `2h`, `7d` (this long ago), a date or a time of day.
 * @throws GatewayError invalid_request
 */
export function parseTime(written: string, now: number): number {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)\s*([smhdw])$/.exec(written.trim()) ?? [];
  if (digits !== undefined && unit !== undefined) return now - Number(digits) * UNITS[unit]!;
  const time = Date.parse(written);
  if (Number.isNaN(time)) {
    throw invalid(`"${written}" is not a time: write 30m, 2h, 7d, or 2026-01-31T12:00.`);
  }
  return time;
}

/** Names of the conditions of a filter. */
export const FILTER_NAMES = [
  'since',
  'until',
  'status',
  'model',
  'note',
  'session',
  'entry',
  'error',
] as const;
type FilterName = (typeof FILTER_NAMES)[number];

/** The text of each condition. */
export type FilterTexts = Readonly<Partial<Record<FilterName, string>>>;

const STATUS = /^\s*([1-5]\d\d|[1-5]xx|ok|failed|cut|unfinished|open)\s*$/i;

const MAX_STATES = 20;

/** A glob is compared with every name in the index: more of it would take seconds. */
const MAX_GLOB = 100;
const MAX_STARS = 4;
const MAX_NAME = 1000;

/** @throws GatewayError invalid_request for a glob that is too long, or has too many stars */
export function checkGlob(pattern: string): void {
  if (pattern.length > MAX_NAME) throw invalid(`A name has at most ${MAX_NAME} characters.`);
  if (!isGlob(pattern)) return;
  if (pattern.length > MAX_GLOB || pattern.split('*').length > MAX_STARS + 1) {
    throw invalid(`A pattern has at most ${MAX_GLOB} characters, and ${MAX_STARS} "*" among them.`);
  }
}

/** @throws GatewayError invalid_request */
export function parseFilter(given: FilterTexts, now: number): SampleFilter {
  const { since, until, status, ...rest } = given;
  for (const pattern of [rest.model, rest.note]) if (pattern !== undefined) checkGlob(pattern);
  const states = status?.split(',', MAX_STATES + 1) ?? [];
  if (states.length > MAX_STATES) throw invalid(`At most ${MAX_STATES} states are compared.`);
  if (!states.every((part) => STATUS.test(part))) {
    throw invalid(
      `"${status}" is not a status: write 500, 5xx, ok, failed, cut, unfinished, open, or several.`,
    );
  }
  return {
    ...rest,
    ...(status !== undefined && { status }),
    ...(since !== undefined && { since: parseTime(since, now) }),
    ...(until !== undefined && { until: parseTime(until, now) }),
  };
}

/** `status=5xx model=glm*`. @throws GatewayError invalid_request */
export function parseWhere(where: string, now: number): SampleFilter {
  const given: Partial<Record<FilterName, string>> = {};
  for (const part of where.split(/[\s&]+/).filter((word) => word !== '')) {
    const [, key, value] = /^([a-z]+)=(.+)$/.exec(part) ?? [];
    if (
      key === undefined ||
      value === undefined ||
      !(FILTER_NAMES as readonly string[]).includes(key)
    ) {
      throw invalid(
        `"${part}" is not a condition: write ${FILTER_NAMES.map((name) => `${name}=…`).join(', ')}.`,
      );
    }
    given[key as FilterName] = value;
  }
  return parseFilter(given, now);
}

/** Parses times and filters of samples as people write them. */

import { invalid } from '../../conversation/errors.ts';
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

/** @throws GatewayError invalid_request */
export function parseFilter(given: FilterTexts, now: number): SampleFilter {
  const { since, until, status, ...rest } = given;
  if (status !== undefined && !status.split(',').every((part) => STATUS.test(part))) {
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

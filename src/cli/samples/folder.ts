/** The folder of samples a command works on, and times and filters as people write them. */

import { resolve } from 'node:path';
import { expandHome } from '../../config/environment.ts';
import type { SampleBook, SampleFilter, SampleMeta } from '../../conversation/sample.ts';
import { type Invocation, UsageError } from '../command.ts';
import { loadOrTell } from '../load-config.ts';

/** The samples of `--dir`, else of the configuration; undefined when that cannot be used. */
export async function bookOf(invocation: Invocation): Promise<SampleBook | undefined> {
  const { text, io, deps } = invocation;
  const dir = text('dir');
  if (dir !== undefined)
    return deps.samples(resolve(io.cwd, expandHome(dir, io.environment.userHome)));
  const config = await loadOrTell(invocation);
  return config === undefined ? undefined : deps.samples(resolve(io.cwd, config.samples.dir));
}

/** @throws UsageError when there is no such sample, or several */
export function sampleOf(book: SampleBook, id: string | undefined, command: string): SampleMeta {
  if (id === undefined) throw new UsageError(`"hopgate ${command}" needs the id of a sample.`);
  const meta = book.find(id);
  if (meta === undefined) {
    throw new UsageError(`There is no sample "${id}" in ${book.root}, or more than one fits.`);
  }
  return meta;
}

const UNITS: Readonly<Record<string, number>> = { s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };

/**
 * `30m`, `2h`, `7d` (so long ago), a date or a time; milliseconds since 1970.
 * @throws UsageError
 */
export function timeGiven(written: string, now: number): number {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)\s*([smhdw])$/.exec(written.trim()) ?? [];
  if (digits !== undefined && unit !== undefined) return now - Number(digits) * UNITS[unit]!;
  const time = Date.parse(written);
  if (Number.isNaN(time)) {
    throw new UsageError(`"${written}" is no time: write 30m, 2h, 7d, or 2026-01-31T12:00.`);
  }
  return time;
}

const KEYS = ['since', 'until', 'status', 'model', 'note', 'session', 'entry', 'error'] as const;
type Key = (typeof KEYS)[number];

const STATUS = /^\s*([1-5]\d\d|[1-5]xx|ok|failed|cut|open)\s*$/i;

/** @throws UsageError */
export function filterFrom(
  given: Readonly<Partial<Record<Key, string>>>,
  now: number,
): SampleFilter {
  const { since, until, status, ...rest } = given;
  if (status !== undefined && !status.split(',').every((part) => STATUS.test(part))) {
    throw new UsageError(`"${status}" is no status: write 500, 5xx, ok, failed, cut, or several.`);
  }
  return {
    ...rest,
    ...(status !== undefined && { status }),
    ...(since !== undefined && { since: timeGiven(since, now) }),
    ...(until !== undefined && { until: timeGiven(until, now) }),
  };
}

/** The filter options of a command line. @throws UsageError */
export function filterOf({ text }: Pick<Invocation, 'text'>, now: number): SampleFilter {
  const given = KEYS.map((key) => [key, text(key)] as const).filter(([, value]) => value);
  return filterFrom(Object.fromEntries(given), now);
}

/** `status=5xx model=glm*`. @throws UsageError */
export function filterWhere(where: string, now: number): SampleFilter {
  const given: Partial<Record<Key, string>> = {};
  for (const part of where.split(/[\s&]+/).filter((word) => word !== '')) {
    const [, key, value] = /^([a-z]+)=(.+)$/.exec(part) ?? [];
    if (key === undefined || value === undefined || !(KEYS as readonly string[]).includes(key)) {
      throw new UsageError(
        `"${part}" is no condition: write ${KEYS.map((name) => `${name}=…`).join(', ')}.`,
      );
    }
    given[key as Key] = value;
  }
  return filterFrom(given, now);
}

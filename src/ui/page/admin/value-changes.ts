/** Changes between two versions of a key, field by field, as texts. */

import { t } from '../kit/language.ts';

export type Fields = Readonly<Record<string, unknown>>;

export interface FieldChange {
  /** `limits.concurrent` */
  readonly name: string;
  /** Undefined: it was not there. */
  readonly from: string | undefined;
  /** Undefined: it is not there any more. */
  readonly to: string | undefined;
}

/** Counted up by every change. */
const NOISE = new Set(['version']);

/** Objects are compared member by member, lists as a whole; in the order of the newer version. */
export function changesBetween(before: Fields, after: Fields, path = ''): readonly FieldChange[] {
  const names = [...new Set([...Object.keys(after), ...Object.keys(before)])];
  return names.flatMap((name) => {
    const [from, to] = [before[name], after[name]];
    const full = path === '' ? name : `${path}.${name}`;
    if (NOISE.has(full) || JSON.stringify(from) === JSON.stringify(to)) return [];
    if (isFields(from ?? {}) && isFields(to ?? {}) && (isFields(from) || isFields(to))) {
      return changesBetween((from ?? {}) as Fields, (to ?? {}) as Fields, full);
    }
    const change = { name: full, from: textOf(from), to: textOf(to) };
    // A list that was empty and is not there any more is no change to a reader.
    return change.from === change.to ? [] : [change];
  });
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Undefined for nothing: left out, an empty list, false. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null || value === false) return undefined;
  if (Array.isArray(value)) {
    return value.length === 0
      ? undefined
      : value.map((one) => textOf(one) ?? '–').join(value.some(isFields) ? '; ' : ', ');
  }
  if (isFields(value)) {
    return Object.entries(value)
      .map(([name, inner]) => `${name} ${textOf(inner) ?? '–'}`)
      .join(', ');
  }
  return value === true ? t`yes` : String(value);
}

/** Translates the filter of a list into conditions of an SQL query. */

import type { SampleFilter } from '../sample.ts';

export interface Conditions {
  /** `WHERE …`, or ''. */
  readonly where: string;
  readonly values: readonly (string | number)[];
}

/** A GLOB pattern with `*` and `?` but without brackets. A plain word may occur anywhere. */
function glob(words: string): string {
  const escaped = words.toLowerCase().replace(/\[/g, '[[]');
  return /[*?]/.test(words) ? escaped : `*${escaped}*`;
}

function statusCondition(wanted: string): Conditions {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  for (const word of wanted.toLowerCase().split(',')) {
    const part = word.trim();
    if (part === 'ok') parts.push(`(status BETWEEN 200 AND 399 AND error = '' AND state = 'done')`);
    else if (part === 'failed') parts.push('failed = 1');
    else if (part === 'cut') {
      parts.push(`(state = 'cut' OR (stream = 1 AND status < 400 AND error != ''))`);
    } else if (part === 'unfinished' || part === 'open') {
      parts.push('state = ?');
      values.push(part === 'open' ? 'open' : 'cut');
    } else if (/^[1-5]xx$/.test(part)) {
      parts.push('status BETWEEN ? AND ?');
      values.push(Number(part[0]) * 100, Number(part[0]) * 100 + 99);
    } else {
      parts.push('status = ?');
      values.push(Number(part));
    }
  }
  return { where: `(${parts.join(' OR ')})`, values };
}

/** All given conditions must hold. */
export function conditionsOf(filter: SampleFilter): Conditions {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  const add = (sql: string, ...more: (string | number)[]) => {
    parts.push(sql);
    values.push(...more);
  };
  if (filter.since !== undefined) add('time >= ?', filter.since);
  if (filter.until !== undefined) add('time < ?', filter.until);
  if (filter.entry !== undefined) add('entry = ?', filter.entry);
  if (filter.session !== undefined) add('session GLOB ?', sessionGlob(filter.session));
  if (filter.error !== undefined) add('error = ?', filter.error);
  if (filter.owner !== undefined) add('owner = ?', filter.owner);
  if (filter.before !== undefined) {
    const { time, id } = filter.before;
    add('(time, id) < (?, ?)', time, id);
  }
  if (filter.q !== undefined && filter.q !== '') {
    const fields = ['id', 'model', 'target', 'session', 'error', 'notes'];
    const words = filter.q.toLowerCase();
    const found = fields.map((field) => `instr(lower(${field}), ?) > 0`).join(' OR ');
    add(`(${found})`, ...fields.map(() => words));
  }
  if (filter.note !== undefined) {
    // A note is `name` or `name=count` between commas.
    const name = filter.note.toLowerCase().replace(/\[/g, '[[]');
    add(`(',' || replace(notes, '=', ',') || ',') GLOB ?`, `*,${name},*`);
  }
  if (filter.model !== undefined) {
    add('(lower(model) GLOB ? OR lower(target) GLOB ?)', glob(filter.model), glob(filter.model));
  }
  if (filter.status !== undefined) {
    const status = statusCondition(filter.status);
    add(status.where, ...status.values);
  }
  return { where: parts.length === 0 ? '' : `WHERE ${parts.join(' AND ')}`, values };
}

/** The whole name or its beginning. */
const sessionGlob = (session: string) => `${session.replace(/[[*?]/g, '[$&]')}*`;

/** Keys and audit entries as rows of a table: the same columns in the file and in the database. */

import { isObject, type JsonObject, tryParse } from '../lib/json/json.ts';
import type { AuditEntry, ChainedEntry } from './audit-chain.ts';
import type { KeyRecord } from './key-store.ts';

/** SQLite has no boolean. */
export interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly created: number;
  readonly updated: number;
  readonly blocked: number | boolean;
  readonly revoked: number | null;
  readonly settings: string;
}

export interface AuditRow {
  readonly seq: number;
  readonly time: number;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly before: string | null;
  readonly after: string | null;
  readonly previous: string;
  readonly hash: string;
}

export const NO_SETTINGS: KeyRecord['settings'] = { labels: {}, limits: {}, budgets: [] };

export function recordOf(row: KeyRow): KeyRecord {
  const settings = tryParse(row.settings);
  return {
    id: row.id,
    name: row.name,
    version: row.version,
    created: row.created,
    updated: row.updated,
    // Settings that cannot be read would be no limits at all.
    blocked: Boolean(row.blocked) || !isObject(settings),
    revoked: row.revoked ?? undefined,
    settings: { ...NO_SETTINGS, ...(isObject(settings) && settings) },
  };
}

export const entryOf = (row: AuditRow): ChainedEntry => ({
  ...row,
  before: row.before === null ? null : objectIn(row.before),
  after: row.after === null ? null : objectIn(row.after),
});

/** A text that was changed by hand may be no object: the hash of its entry differs then. */
function objectIn(text: string): JsonObject {
  const value = tryParse(text);
  return isObject(value) ? value : {};
}

/** In the order of {@link AuditRow}. */
export function auditValues(
  { seq, time, actor, action, target, before, after }: AuditEntry,
  previous: string,
  hash: string,
): [number, number, string, string, string, string | null, string | null, string, string] {
  const text = (value: JsonObject | null) => (value === null ? null : JSON.stringify(value));
  return [seq, time, actor, action, target, text(before), text(after), previous, hash];
}

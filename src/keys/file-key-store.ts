/** Keys made at run time in SQLite: their settings, digests of their secrets, and the audit entry of each change. */

import type { Database } from 'bun:sqlite';
import { openSource } from '../state/moving/source-store.ts';
import { openStateFile } from '../state/versioned-store.ts';
import {
  type AuditEntry,
  ChainCheck,
  type ChainedEntry,
  type ChainFault,
  hashOf,
} from './audit-chain.ts';
import { keyFault, type LastEntry, missingKey } from './audited-keys.ts';
import { type AuditRow, auditValues, entryOf, type KeyRow, recordOf } from './key-rows.ts';
import {
  type AuditFilter,
  type AuditNote,
  type AuditReport,
  type ChangedKey,
  type ChangePlan,
  type KeyChange,
  type KeyPage,
  type KeyRecord,
  type MovableKeys,
  type PlannedChange,
  REQUEST_MS,
  type RequestMark,
  RequestReused,
  type SecretRecord,
} from './key-store.ts';

const SCHEMA = `
CREATE TABLE keys (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL, created INTEGER NOT NULL,
  updated INTEGER NOT NULL, blocked INTEGER NOT NULL, revoked INTEGER, settings TEXT NOT NULL,
  change INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX keys_change ON keys (change);
CREATE INDEX keys_created ON keys (created, id);
CREATE TABLE secrets (
  digest TEXT PRIMARY KEY, key TEXT NOT NULL, created INTEGER NOT NULL, until INTEGER
) WITHOUT ROWID;
CREATE INDEX secrets_key ON secrets (key);
CREATE TABLE requests (
  key TEXT PRIMARY KEY, body TEXT NOT NULL, target TEXT NOT NULL, time INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX requests_time ON requests (time);
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,
  target TEXT NOT NULL, before TEXT, after TEXT, previous TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX audit_target ON audit (target, seq);
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO head VALUES (1, 0, '');
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit entries are never changed'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit entries are never removed'); END;
`;

const MIGRATIONS = [SCHEMA];

interface ChangeRow extends KeyRow {
  readonly change: number;
}

interface SecretRow {
  readonly digest: string;
  readonly key: string;
  readonly created: number;
  readonly until: number | null;
}

/** Milliseconds to wait for another process's write. */
const BUSY_MS = 2000;
const KEY_COLUMNS = 'id, name, version, created, updated, blocked, revoked, settings, change';
const AUDIT_COLUMNS = 'seq, time, actor, action, target, before, after, previous, hash';

/** @throws SQLiteError, or an Error with a message for people when the file cannot be used */
export class FileKeyStore implements MovableKeys {
  readonly form = 'file';
  readonly #db: Database;

  /** @param file its path, or a file that is open for reading */
  constructor(file: string | Database) {
    if (typeof file !== 'string') {
      this.#db = file;
      return;
    }
    this.#db = openStateFile({ path: file, migrations: MIGRATIONS, busy: BUSY_MS });
    // A key that was revoked must not come back with a power cut.
    this.#db.run('PRAGMA synchronous = FULL');
  }

  /** Changes when another connection has written. */
  get dataVersion(): number {
    return this.#db.query<{ data_version: number }, []>('PRAGMA data_version').get()!.data_version;
  }

  /** What has changed since a number that an earlier call gave; 0: everything. */
  changesSince(change: number): { readonly keys: readonly KeyChange[]; readonly change: number } {
    return this.#db.transaction(() => {
      const rows = this.#db
        .query<ChangeRow, [number]>(
          `SELECT ${KEY_COLUMNS} FROM keys WHERE change > ? ORDER BY change`,
        )
        .all(change);
      if (rows.length === 0) return { keys: [], change };
      const secrets = this.#db
        .query<SecretRow, [number]>(
          'SELECT digest, key, s.created AS created, until FROM secrets s JOIN keys k ON k.id = s.key WHERE k.change > ?',
        )
        .all(change);
      const byKey = Map.groupBy(secrets, ({ key }) => key);
      const keys = rows.map((row) => ({
        record: recordOf(row),
        secrets: (byKey.get(row.id) ?? []).map(secretOf),
      }));
      return { keys, change: rows.at(-1)!.change };
    })();
  }

  get(id: string): KeyChange | undefined {
    const row = this.#db
      .query<KeyRow, [string]>(`SELECT ${KEY_COLUMNS} FROM keys WHERE id = ?`)
      .get(id);
    if (row === null) return undefined;
    const secrets = this.#db
      .query<SecretRow, [string]>('SELECT digest, key, created, until FROM secrets WHERE key = ?')
      .all(id);
    return { record: recordOf(row), secrets: secrets.map(secretOf) };
  }

  get count(): number {
    return this.#db.query<{ count: number }, []>('SELECT count(*) AS count FROM keys').get()!.count;
  }

  page(after: string, limit: number): readonly KeyChange[] {
    const rows = this.#db
      .query<{ id: string }, [string, number]>(
        'SELECT id FROM keys WHERE id > ? ORDER BY id LIMIT ?',
      )
      .all(after, limit);
    return this.many(rows.map(({ id }) => id));
  }

  /** In one snapshot of the file. */
  many(ids: readonly string[]): readonly KeyChange[] {
    return this.#db.transaction(() => ids.flatMap((id) => this.get(id) ?? []))();
  }

  list(page: KeyPage): readonly KeyRecord[] {
    const after = page.after === undefined ? undefined : this.get(page.after)?.record;
    return this.#db
      .query<KeyRow, [number, string, number, string, number]>(
        `SELECT ${KEY_COLUMNS} FROM keys WHERE (created, id) > (?1, ?2) AND (revoked IS NULL OR ?3)
         AND (?4 = '' OR instr(lower(id || ' ' || name || ' ' || settings), ?4) > 0) ORDER BY created, id LIMIT ?5`,
      )
      .all(
        after?.created ?? -1,
        after?.id ?? '',
        page.revoked ? 1 : 0,
        page.search?.toLowerCase() ?? '',
        page.limit,
      )
      .map(recordOf);
  }

  change(id: string, plan: ChangePlan, request?: RequestMark): ChangedKey {
    return this.#db
      .transaction(() => {
        const earlier = request === undefined ? undefined : this.#earlier(request);
        if (earlier !== undefined) return { ...this.get(earlier)!, repeated: true };
        const planned = plan(this.get(id));
        this.#write(planned);
        if (request !== undefined) this.#mark(request, id, planned.audit.time);
        return { ...this.get(id)!, repeated: false };
      })
      .immediate();
  }

  note(said: AuditNote): void {
    this.#db.transaction(() => this.#append(said)).immediate();
  }

  audit({ before, target, limit }: AuditFilter): readonly ChainedEntry[] {
    return this.#db
      .query<AuditRow, [number, string | null, string | null, number]>(
        `SELECT ${AUDIT_COLUMNS} FROM audit WHERE seq < ? AND (? IS NULL OR target = ?) ORDER BY seq DESC LIMIT ?`,
      )
      .all(before ?? Number.MAX_SAFE_INTEGER, target ?? null, target ?? null, limit)
      .map(entryOf);
  }

  /** In one snapshot of the file. */
  verifyAudit(): AuditReport {
    return this.#db.transaction(() => {
      const chain = new ChainCheck();
      const rows = this.#db
        .query<AuditRow, []>(`SELECT ${AUDIT_COLUMNS} FROM audit ORDER BY seq`)
        .iterate();
      for (const row of rows) {
        const fault = chain.next(entryOf(row));
        if (fault !== undefined) return { count: chain.count, head: chain.head, fault };
      }
      const fault = chain.end(this.#head()) ?? this.#keyFault();
      return { count: chain.count, head: chain.head, fault };
    })();
  }

  /** What a key says otherwise than the last entry about it. */
  #keyFault(): ChainFault | undefined {
    const gone = this.#db
      .query<{ readonly target: string; readonly entry: number }, []>(
        `SELECT target, max(seq) AS entry FROM audit
          WHERE action LIKE 'key.%' AND target NOT IN (SELECT id FROM keys) GROUP BY target LIMIT 1`,
      )
      .get();
    if (gone !== null) return missingKey(gone.target, gone.entry);
    const rows = this.#db
      .query<{ readonly id: string } & LastEntry, []>(
        `SELECT k.id, a.seq AS entry, a.after FROM keys k LEFT JOIN audit a
          ON a.seq = (SELECT max(seq) FROM audit WHERE target = k.id) ORDER BY k.id`,
      )
      .iterate();
    for (const row of rows) {
      const fault = keyFault(this.get(row.id)!, row);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  close(): void {
    this.#db.close();
  }

  #head() {
    return this.#db
      .query<{ readonly seq: number; readonly hash: string }, []>('SELECT seq, hash FROM head')
      .get()!;
  }

  #write({ record, secrets, audit }: PlannedChange): void {
    const { id, name, version, created, updated, blocked, revoked, settings } = record;
    this.#db
      .query(
        `INSERT OR REPLACE INTO keys (${KEY_COLUMNS})
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(change), 0) + 1 FROM keys))`,
      )
      .run(
        id,
        name,
        version,
        created,
        updated,
        blocked ? 1 : 0,
        revoked ?? null,
        JSON.stringify(settings),
      );
    if (secrets !== undefined) {
      this.#db.query('DELETE FROM secrets WHERE key = ?').run(id);
      const insert = this.#db.query(
        'INSERT INTO secrets (digest, key, created, until) VALUES (?, ?, ?, ?)',
      );
      for (const one of secrets) insert.run(one.digest, id, one.created, one.until ?? null);
    }
    this.#append({ ...audit, target: id });
  }

  #append(said: AuditNote): void {
    const head = this.#head();
    const entry: AuditEntry = { ...said, seq: head.seq + 1 };
    const hash = hashOf(entry, head.hash);
    this.#db
      .query(`INSERT INTO audit (${AUDIT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
      .run(...auditValues(entry, head.hash, hash));
    this.#db.query('UPDATE head SET seq = ?, hash = ?').run(entry.seq, hash);
  }

  /** The key that the same request was about; @throws RequestReused for another request */
  #earlier({ key, body }: RequestMark): string | undefined {
    const row = this.#db
      .query<{ readonly body: string; readonly target: string }, [string]>(
        'SELECT body, target FROM requests WHERE key = ?',
      )
      .get(key);
    if (row === null) return undefined;
    if (row.body !== body) throw new RequestReused();
    return row.target;
  }

  #mark({ key, body }: RequestMark, target: string, time: number): void {
    this.#db.query('DELETE FROM requests WHERE time < ?').run(time - REQUEST_MS);
    this.#db
      .query('INSERT INTO requests (key, body, target, time) VALUES (?, ?, ?, ?)')
      .run(key, body, target, time);
  }
}

const secretOf = ({ digest, key, created, until }: SecretRow): SecretRecord => ({
  digest,
  key,
  created,
  until: until ?? undefined,
});

/** The file to look at, which stays as it is; undefined: there is none. @throws Error with a message for people */
export function openKeysToRead(path: string): FileKeyStore | undefined {
  const source = openSource(path, MIGRATIONS.length);
  return source && new FileKeyStore(source.db);
}

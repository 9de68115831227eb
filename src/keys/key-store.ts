/** Keys made at run time, in the file of this machine or in the database of all replicas: settings, digests of secrets, and the audit entry of each change. */

import { isObject, type JsonObject, tryParse } from '../lib/json/json.ts';
import {
  placeholders,
  readJson,
  type SqlDatabase,
  type SqlStatements,
  type SqlValue,
} from '../state/sql/sql.ts';
import {
  type AuditEntry,
  ChainCheck,
  type ChainedEntry,
  type ChainFault,
  hashOf,
  keyFault,
  type LastEntry,
  missingKey,
  NO_SETTINGS,
} from './audit-chain.ts';
import type { KeyChange, KeyRecord, SecretRecord } from './key-records.ts';

/** A change that was asked for with an `Idempotency-Key`: asked for again, it is not made again. */
export interface RequestMark {
  /** A digest of who asks, for what, under which key. */
  readonly key: string;
  /** A digest of what was asked. */
  readonly body: string;
}

/** One page of keys in the order of creation. */
export interface KeyPage {
  /** The id of the last key of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
  /** Also those that were revoked. */
  readonly revoked: boolean;
  /** Only keys in whose id, name or settings this text stands, in small letters or not. */
  readonly search?: string | undefined;
}

export interface AuditFilter {
  /** The entries before this one; left out: from the newest. */
  readonly before?: number | undefined;
  /** The id of a key. */
  readonly target?: string | undefined;
  readonly limit: number;
}

export interface AuditReport {
  readonly count: number;
  /** The hash of the last entry. */
  readonly head: string;
  readonly fault: ChainFault | undefined;
}

/** What a change writes; all of it or nothing. */
export interface PlannedChange {
  readonly record: KeyRecord;
  /** Its secrets from now on; undefined: they stay. */
  readonly secrets?: readonly SecretRecord[];
  readonly audit: Omit<AuditEntry, 'seq' | 'target'>;
}

/** Decides what is written for the key as it is now; undefined: there is none. What it throws undoes everything. */
export type ChangePlan = (now: KeyChange | undefined) => PlannedChange;

export type ChangedKey = KeyChange & {
  /** The request was made before, and nothing was changed. */
  readonly repeated: boolean;
};

/** An entry of the audit before it has its place in the chain. */
export type AuditNote = Omit<AuditEntry, 'seq'>;

/** How long a repeated request is recognised. */
export const REQUEST_MS = 24 * 3_600_000;

/** The same `Idempotency-Key` came with another request. */
export class RequestReused extends Error {
  override readonly name = 'RequestReused';
}

/** Up to where the history of changes is known: the last audit entry. */
export interface Position {
  readonly seq: number;
  readonly hash: string;
}

export const BEGINNING: Position = { seq: 0, hash: '' };

/** What has changed since a position. */
export interface News {
  readonly keys: readonly KeyChange[];
  readonly position: Position;
  /** These are all keys there are: the history that was known is not that of this database. */
  readonly whole: boolean;
}

/** Milliseconds. */
const LOAD_MS = 5000;
/** Rows of one query. */
const PAGE = 5000;
/** Lock of the audit. */
const LOCK = 7_496_232;

const KEY_COLUMNS =
  'id, name, version, created, updated, blocked, revoked, settings, secrets, change';
const AUDIT_COLUMNS = 'seq, time, actor, action, target, before, after, previous, hash';

/** Every method rejects when the keys cannot be used: with EngineAway, or the error of the database. */
export class KeyStore {
  constructor(private readonly database: SqlDatabase) {}

  /** For messages: `file` of this machine, or `database` of all replicas. */
  get form(): SqlDatabase['form'] {
    return this.database.form;
  }

  /** One query where nothing has changed; undefined then. */
  async news({ seq, hash }: Position, deadlineMs: number): Promise<News | undefined> {
    const [head] = await this.database.query<Position & { readonly known: string | null }>(
      `SELECT seq, hash, (SELECT hash FROM hopgate.audit WHERE seq = $1) AS known
         FROM hopgate.audit_head`,
      [seq],
      deadlineMs,
    );
    if (head!.seq === seq && head!.hash === hash) return undefined;
    // A backup that was restored, or another database: what was known of another history is void.
    const whole = seq > 0 && head!.known !== hash;
    return { ...(await this.#since(whole ? BEGINNING : { seq, hash }, head!)), whole };
  }

  /** @param head the end of the history before this call: not every entry is about a key */
  async #since(from: Position, head: Position): Promise<Omit<News, 'whole'>> {
    const keys: KeyChange[] = [];
    for (let { seq } = from; ; ) {
      const rows = await this.#rows('change > $1 ORDER BY change LIMIT $2', [seq, PAGE]);
      for (const row of rows) keys.push(changeOf(row));
      seq = rows.at(-1)?.change ?? seq;
      if (rows.length === PAGE) continue;
      if (seq <= head.seq) return { keys, position: { seq: head.seq, hash: head.hash } };
      const [entry] = await this.database.query<Pick<Position, 'hash'>>(
        'SELECT hash FROM hopgate.audit WHERE seq = $1',
        [seq],
        LOAD_MS,
      );
      // Without an entry this is no history to go on with: all is read again the next time.
      return { keys, position: entry === undefined ? BEGINNING : { seq, hash: entry.hash } };
    }
  }

  get(id: string): Promise<KeyChange | undefined> {
    return keyIn(this.database, id);
  }

  #rows(where: string, values: readonly SqlValue[]): Promise<readonly KeyRow[]> {
    const sql = `SELECT ${KEY_COLUMNS} FROM hopgate.keys WHERE ${where}`;
    return this.database.query(sql, values, LOAD_MS);
  }

  async count(): Promise<number> {
    const [row] = await this.database.query<{ count: number }>(
      'SELECT count(*) AS count FROM hopgate.keys',
      [],
      LOAD_MS,
    );
    return row!.count;
  }

  /** Keys behind this id, in the order of ids. */
  async page(after: string, limit: number): Promise<readonly KeyChange[]> {
    const rows = await this.#rows('id > $1 ORDER BY id LIMIT $2', [after, limit]);
    return rows.map(changeOf);
  }

  /** Those of these keys that are there, in any order. */
  async many(ids: readonly string[]): Promise<readonly KeyChange[]> {
    if (ids.length === 0) return [];
    const rows = await this.#rows(`id IN (${placeholders(ids.length)})`, ids);
    return rows.map(changeOf);
  }

  async list({ after = '', limit, revoked, search = '' }: KeyPage): Promise<readonly KeyRecord[]> {
    const pattern = `%${search.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;
    const rows = await this.database.query<KeyRow>(
      `SELECT ${KEY_COLUMNS} FROM hopgate.keys
        WHERE ($1 = '' OR (created, id) > (coalesce((SELECT created FROM hopgate.keys WHERE id = $1), -1), $1))
          AND (revoked IS NULL OR $2)
          AND lower(id || ' ' || name || ' ' || settings) LIKE $3 ESCAPE '\\'
        ORDER BY created, id LIMIT $4`,
      [after, revoked, pattern, limit],
    );
    return rows.map(recordOf);
  }

  /**
   * Reads, decides and writes in one transaction, together with the audit entry and the mark of the request.
   * @returns the key after the change
   * @throws RequestReused, or what `plan` throws
   */
  change(id: string, plan: ChangePlan, request?: RequestMark): Promise<ChangedKey> {
    return this.#locked(async (inside) => {
      const earlier = request === undefined ? undefined : await earlierOf(request, inside);
      if (earlier !== undefined) return { ...(await keyIn(inside, earlier))!, repeated: true };
      const now = await keyIn(inside, id);
      const planned = plan(now);
      await write(planned, now?.secrets ?? [], inside);
      if (request !== undefined) await mark(request, id, planned.audit.time, inside);
      return { ...(await keyIn(inside, id))!, repeated: false };
    });
  }

  /** Writes an entry of the audit that belongs to no key. */
  async note(said: AuditNote): Promise<void> {
    await this.#locked((inside) => append(said, inside));
  }

  /** The changes of this process go one after the other: they would only wait for each other in the database. */
  #changes: Promise<unknown> = Promise.resolve();

  #locked<T>(work: (inside: SqlStatements) => Promise<T>): Promise<T> {
    const done = this.#changes.then(() => this.database.transaction(work, { lock: LOCK }));
    this.#changes = done.catch(() => {});
    return done;
  }

  /** The newest first. */
  async audit({ before, target, limit }: AuditFilter): Promise<readonly ChainedEntry[]> {
    const rows = await this.database.query<AuditRow>(
      `SELECT ${AUDIT_COLUMNS} FROM hopgate.audit
        WHERE seq < $1 AND (CAST($2 AS text) IS NULL OR target = $2) ORDER BY seq DESC LIMIT $3`,
      [before ?? Number.MAX_SAFE_INTEGER, target ?? null, limit],
    );
    return rows.map(entryOf);
  }

  /** Reads the whole chain. */
  async verifyAudit(): Promise<AuditReport> {
    const chain = new ChainCheck();
    const report = (fault: ChainFault | undefined): AuditReport => ({
      count: chain.count,
      head: chain.head,
      fault,
    });
    let fault = await this.#check(chain, Number.MAX_SAFE_INTEGER);
    if (fault !== undefined) return report(fault);
    const [head] = await this.database.query<Position>('SELECT seq, hash FROM hopgate.audit_head');
    // What others have written meanwhile.
    fault = await this.#check(chain, head!.seq);
    return report(fault ?? chain.end(head!) ?? (await this.#keyFault()));
  }

  /** Reads on from where the chain ends, up to an entry. */
  async #check(chain: ChainCheck, last: number): Promise<ChainFault | undefined> {
    for (;;) {
      const rows = await this.database.query<AuditRow>(
        `SELECT ${AUDIT_COLUMNS} FROM hopgate.audit WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3`,
        [chain.count, last, PAGE],
        LOAD_MS,
      );
      for (const row of rows) {
        const fault = chain.next(entryOf(row));
        if (fault !== undefined) return fault;
      }
      if (rows.length < PAGE) return undefined;
    }
  }

  /** What a key says otherwise than the last entry about it. Each statement sees both as of one moment. */
  async #keyFault(): Promise<ChainFault | undefined> {
    const [gone] = await this.database.query<{ readonly target: string; readonly entry: number }>(
      `SELECT target, max(seq) AS entry FROM hopgate.audit
        WHERE action LIKE 'key.%' AND NOT EXISTS (SELECT 1 FROM hopgate.keys WHERE id = target)
        GROUP BY target LIMIT 1`,
      [],
      LOAD_MS,
    );
    if (gone !== undefined) return missingKey(gone.target, gone.entry);
    for (let after = ''; ; ) {
      const rows = await this.database.query<KeyRow & LastEntry>(
        `SELECT k.*, a.seq AS entry, a.after FROM hopgate.keys k LEFT JOIN hopgate.audit a
            ON a.seq = (SELECT max(seq) FROM hopgate.audit WHERE target = k.id)
          WHERE k.id > $1 ORDER BY k.id LIMIT $2`,
        [after, PAGE],
        LOAD_MS,
      );
      for (const row of rows) {
        const fault = keyFault(changeOf(row), row);
        if (fault !== undefined) return fault;
      }
      if (rows.length < PAGE) return undefined;
      after = rows.at(-1)!.id;
    }
  }

  close(): void {
    this.database.close();
  }
}

async function keyIn({ query }: SqlStatements, id: string): Promise<KeyChange | undefined> {
  const [row] = await query<KeyRow>(`SELECT ${KEY_COLUMNS} FROM hopgate.keys WHERE id = $1`, [id]);
  return row && changeOf(row);
}

/** The key that the same request was about; @throws RequestReused for another request */
async function earlierOf(
  { key, body }: RequestMark,
  { query }: SqlStatements,
): Promise<string | undefined> {
  const [row] = await query<{ readonly body: string; readonly target: string }>(
    'SELECT body, target FROM hopgate.key_requests WHERE key = $1',
    [key],
  );
  if (row !== undefined && row.body !== body) throw new RequestReused();
  return row?.target;
}

async function mark(
  { key, body }: RequestMark,
  target: string,
  time: number,
  { query }: SqlStatements,
): Promise<void> {
  await query('DELETE FROM hopgate.key_requests WHERE time < $1', [time - REQUEST_MS]);
  await query(
    'INSERT INTO hopgate.key_requests (key, body, target, time) VALUES ($1, $2, $3, $4)',
    [key, body, target, time],
  );
}

/** @returns the number of the entry */
async function append(said: AuditNote, { query }: SqlStatements): Promise<number> {
  const [head] = await query<Position>('SELECT seq, hash FROM hopgate.audit_head');
  const entry: AuditEntry = { ...said, seq: head!.seq + 1 };
  const hash = hashOf(entry, head!.hash);
  await Promise.all([
    query(
      `INSERT INTO hopgate.audit (${AUDIT_COLUMNS}) VALUES (${placeholders(9)})`,
      auditValues(entry, head!.hash, hash),
    ),
    query('UPDATE hopgate.audit_head SET seq = $1, hash = $2', [entry.seq, hash]),
  ]);
  return entry.seq;
}

async function write(
  { record, secrets, audit }: PlannedChange,
  kept: readonly SecretRecord[],
  inside: SqlStatements,
): Promise<void> {
  const { id, name, version, created, updated, blocked, revoked, settings } = record;
  const change = await append({ ...audit, target: id }, inside);
  await inside.query(
    `INSERT INTO hopgate.keys (${KEY_COLUMNS}) VALUES (${placeholders(10)})
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version,
         created = excluded.created, updated = excluded.updated, blocked = excluded.blocked,
         revoked = excluded.revoked, settings = excluded.settings, secrets = excluded.secrets,
         change = excluded.change`,
    [
      id,
      name,
      version,
      created,
      updated,
      blocked,
      revoked ?? null,
      JSON.stringify(settings),
      JSON.stringify((secrets ?? kept).map(storedOf)),
      change,
    ],
  );
}

type StoredSecret = Omit<SecretRecord, 'key' | 'until'> & { readonly until: number | null };

const storedOf = ({ digest, created, until }: SecretRecord): StoredSecret => ({
  digest,
  created,
  until: until ?? null,
});

interface KeyRow extends Omit<KeyRecord, 'blocked' | 'revoked' | 'settings'> {
  readonly blocked: number | boolean;
  readonly revoked: number | null;
  readonly settings: string;
  readonly secrets: unknown;
  readonly change: number;
}

const changeOf = (row: KeyRow): KeyChange => ({
  record: recordOf(row),
  secrets: (readJson(row.secrets) as unknown as readonly StoredSecret[]).map(
    ({ digest, created, until }) => ({ digest, key: row.id, created, until: until ?? undefined }),
  ),
});

interface AuditRow extends Omit<ChainedEntry, 'before' | 'after'> {
  readonly before: string | null;
  readonly after: string | null;
}

function recordOf(row: KeyRow): KeyRecord {
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

const entryOf = (row: AuditRow): ChainedEntry => ({
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
function auditValues(
  { seq, time, actor, action, target, before, after }: AuditEntry,
  previous: string,
  hash: string,
): readonly SqlValue[] {
  const text = (value: JsonObject | null) => (value === null ? null : JSON.stringify(value));
  return [seq, time, actor, action, target, text(before), text(after), previous, hash];
}

/** Keys made at run time in Postgres, for all replicas: one chain of audit entries, one change at a time. */

import type { Sql, SqlReader } from '../../state/engines/engine.ts';
import { type Prepared, prepared } from '../../state/shared-tables.ts';
import { type AuditEntry, ChainCheck, type ChainedEntry, hashOf } from '../audit-chain.ts';
import { keyFault, type LastEntry, missingKey } from '../audited-keys.ts';
import { type AuditRow, auditValues, entryOf, type KeyRow, recordOf } from '../key-rows.ts';
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
} from '../key-store.ts';

// The number of a change is that of its audit entry, whose hash says which history it belongs to.
const MIGRATIONS = [
  `
CREATE TABLE hopgate.keys (
  id text COLLATE "C" PRIMARY KEY, name text NOT NULL, version bigint NOT NULL, created bigint NOT NULL,
  updated bigint NOT NULL, blocked boolean NOT NULL, revoked bigint, settings text NOT NULL,
  secrets json NOT NULL, change bigint NOT NULL
);
CREATE UNIQUE INDEX keys_change ON hopgate.keys (change);
CREATE INDEX keys_created ON hopgate.keys (created, id);
CREATE TABLE hopgate.key_requests (
  key text PRIMARY KEY, body text NOT NULL, target text NOT NULL, time bigint NOT NULL
);
CREATE INDEX key_requests_time ON hopgate.key_requests (time);
CREATE TABLE hopgate.audit (
  seq bigint PRIMARY KEY, time bigint NOT NULL, actor text NOT NULL, action text NOT NULL,
  target text COLLATE "C" NOT NULL, before text, after text, previous text NOT NULL, hash text NOT NULL
);
CREATE INDEX audit_target ON hopgate.audit (target, seq);
CREATE TABLE hopgate.audit_head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one), seq bigint NOT NULL, hash text NOT NULL
);
INSERT INTO hopgate.audit_head VALUES (true, 0, '');
CREATE FUNCTION hopgate.keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'audit entries are never changed or removed';
END;
$$;
CREATE TRIGGER keep_audit BEFORE UPDATE OR DELETE OR TRUNCATE ON hopgate.audit
  FOR EACH STATEMENT EXECUTE FUNCTION hopgate.keep_audit();
`,
];

/** Milliseconds. */
const READ_MS = 2000;
const LOAD_MS = 5000;
const CHANGE_MS = 6000;
/** Less than a change may take: who waits in vain is refused, and the database does not count as away. */
const LOCK_MS = 3000;
/** A replica that freezes in a change holds up the others for so long. */
const IDLE_MS = 2000;
/** Rows of one query. */
const PAGE = 5000;
/** Of the audit. */
const LOCK = 7_496_232;

const KEY_COLUMNS =
  'k.id, k.name, k.version, k.created, k.updated, k.blocked, k.revoked, k.settings, k.secrets';
const AUDIT_COLUMNS = 'seq, time, actor, action, target, before, after, previous, hash';

type StoredSecret = Omit<SecretRecord, 'key' | 'until'> & { readonly until: number | null };

interface SharedKeyRow extends KeyRow {
  readonly secrets: readonly StoredSecret[];
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

/** What the plan of a change threw, which says nothing of the database. */
class Refused extends Error {
  override readonly name = 'Refused';
}

export class SharedKeyStore implements MovableKeys {
  readonly form = 'database';
  readonly #database: Sql;
  readonly #prepared: Prepared;
  /** The changes of this process go one after the other: they would only wait for each other in the database. */
  #changes: Promise<unknown> = Promise.resolve();

  /** @param ready brings the tables up to date; left out: as they are needed */
  constructor(database: Sql, ready: Prepared = prepared(database, 'keys', MIGRATIONS)) {
    this.#database = database;
    this.#prepared = ready;
  }

  /**
   * One query where nothing has changed; undefined then.
   * @throws EngineAway, or the database's error
   */
  async news({ seq, hash }: Position, deadlineMs: number): Promise<News | undefined> {
    await this.#prepared();
    const [head] = await this.#database.query<Position & { readonly known: string | null }>(
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
      const rows = await this.#database.query<SharedKeyRow & { readonly change: number }>(
        `SELECT ${KEY_COLUMNS}, k.change FROM hopgate.keys k WHERE k.change > $1 ORDER BY k.change LIMIT $2`,
        [seq, PAGE],
        LOAD_MS,
      );
      for (const row of rows) keys.push(changeOf(row));
      seq = rows.at(-1)?.change ?? seq;
      if (rows.length === PAGE) continue;
      if (seq <= head.seq) return { keys, position: { seq: head.seq, hash: head.hash } };
      const [entry] = await this.#database.query<Pick<Position, 'hash'>>(
        'SELECT hash FROM hopgate.audit WHERE seq = $1',
        [seq],
        LOAD_MS,
      );
      // Without an entry this is no history to go on with: all is read again the next time.
      return { keys, position: entry === undefined ? BEGINNING : { seq, hash: entry.hash } };
    }
  }

  async get(id: string): Promise<KeyChange | undefined> {
    await this.#prepared();
    return this.#get(id, (sql, values) => this.#database.query(sql, values, READ_MS));
  }

  async #get(id: string, query: SqlReader['query']): Promise<KeyChange | undefined> {
    const [row] = await query<SharedKeyRow>(
      `SELECT ${KEY_COLUMNS} FROM hopgate.keys k WHERE id = $1`,
      [id],
    );
    return row && changeOf(row);
  }

  get count(): Promise<number> {
    return this.#prepared().then(async () => {
      const [row] = await this.#database.query<{ count: number }>(
        'SELECT count(*) AS count FROM hopgate.keys',
        [],
        LOAD_MS,
      );
      return row!.count;
    });
  }

  async page(after: string, limit: number): Promise<readonly KeyChange[]> {
    await this.#prepared();
    const rows = await this.#database.query<SharedKeyRow>(
      `SELECT ${KEY_COLUMNS} FROM hopgate.keys k WHERE id > $1 ORDER BY id LIMIT $2`,
      [after, limit],
      LOAD_MS,
    );
    return rows.map(changeOf);
  }

  async many(ids: readonly string[]): Promise<readonly KeyChange[]> {
    await this.#prepared();
    const rows = await this.#database.query<SharedKeyRow>(
      `SELECT ${KEY_COLUMNS} FROM hopgate.keys k WHERE id = ANY($1::text[])`,
      [ids],
      LOAD_MS,
    );
    return rows.map(changeOf);
  }

  async list({ after, limit, revoked, search }: KeyPage): Promise<readonly KeyRecord[]> {
    await this.#prepared();
    const rows = await this.#database.query<SharedKeyRow>(
      `SELECT ${KEY_COLUMNS} FROM hopgate.keys k
        WHERE ($1 = '' OR (created, id) > (coalesce((SELECT created FROM hopgate.keys WHERE id = $1), -1), $1))
          AND (revoked IS NULL OR $2)
          AND ($3 = '' OR strpos(lower(id || ' ' || name || ' ' || settings), $3) > 0)
        ORDER BY created, id LIMIT $4`,
      [after ?? '', revoked, search?.toLowerCase() ?? '', limit],
      READ_MS,
    );
    return rows.map(recordOf);
  }

  change(id: string, plan: ChangePlan, request?: RequestMark): Promise<ChangedKey> {
    const changed = this.#changes.then(() => this.#changed(id, plan, request));
    this.#changes = changed.catch(() => {});
    return changed;
  }

  async #changed(id: string, plan: ChangePlan, request?: RequestMark): Promise<ChangedKey> {
    try {
      return await this.#locked(async (query) => {
        const earlier = request === undefined ? undefined : await earlierOf(request, query);
        if (earlier !== undefined) {
          return { ...(await this.#get(earlier, query))!, repeated: true };
        }
        const planned = planOf(plan, await this.#get(id, query));
        await write(planned, query);
        if (request !== undefined) await mark(request, id, planned.audit.time, query);
        return { ...(await this.#get(id, query))!, repeated: false };
      });
    } catch (thrown) {
      throw thrown instanceof Refused ? thrown.cause : thrown;
    }
  }

  async note(said: AuditNote): Promise<void> {
    await this.#locked(async (query) => {
      const values = await nextEntry(said, query);
      await query(
        `WITH noted AS (
           INSERT INTO hopgate.audit (${AUDIT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         )
         UPDATE hopgate.audit_head SET seq = $1, hash = $9`,
        values,
      );
    });
  }

  /** One change at a time, over all replicas. */
  async #locked<T>(work: (query: SqlReader['query']) => Promise<T>): Promise<T> {
    await this.#prepared();
    return this.#database.transaction(async ({ query }) => {
      await query(
        `SELECT set_config('lock_timeout', $1, true),
           set_config('idle_in_transaction_session_timeout', $2, true)`,
        [`${LOCK_MS}`, `${IDLE_MS}`],
      );
      await query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
      return work(query);
    }, CHANGE_MS);
  }

  async audit({ before, target, limit }: AuditFilter): Promise<readonly ChainedEntry[]> {
    await this.#prepared();
    const rows = await this.#database.query<AuditRow>(
      `SELECT ${AUDIT_COLUMNS} FROM hopgate.audit WHERE seq < $1 AND ($2::text IS NULL OR target = $2)
        ORDER BY seq DESC LIMIT $3`,
      [before ?? Number.MAX_SAFE_INTEGER, target ?? null, limit],
      READ_MS,
    );
    return rows.map(entryOf);
  }

  async verifyAudit(): Promise<AuditReport> {
    await this.#prepared();
    const chain = new ChainCheck();
    const report = (fault: AuditReport['fault']) => ({
      count: chain.count,
      head: chain.head,
      fault,
    });
    let fault = await this.#check(chain, Number.MAX_SAFE_INTEGER);
    if (fault !== undefined) return report(fault);
    const [head] = await this.#database.query<Position>(
      'SELECT seq, hash FROM hopgate.audit_head',
      [],
      READ_MS,
    );
    // What other replicas have written meanwhile.
    fault = await this.#check(chain, head!.seq);
    return report(fault ?? chain.end(head!) ?? (await this.#keyFault()));
  }

  /** What a key says otherwise than the last entry about it. Each statement sees both as of one moment. */
  async #keyFault(): Promise<AuditReport['fault']> {
    const [gone] = await this.#database.query<{ readonly target: string; readonly entry: number }>(
      `SELECT target, max(seq) AS entry FROM hopgate.audit
        WHERE action LIKE 'key.%' AND NOT EXISTS (SELECT 1 FROM hopgate.keys WHERE id = target)
        GROUP BY target LIMIT 1`,
      [],
      LOAD_MS,
    );
    if (gone !== undefined) return missingKey(gone.target, gone.entry);
    for (let after = ''; ; ) {
      const rows = await this.#database.query<SharedKeyRow & LastEntry>(
        `SELECT ${KEY_COLUMNS}, a.seq AS entry, a.after FROM hopgate.keys k LEFT JOIN hopgate.audit a
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

  /** Reads on from where the chain ends, up to an entry. */
  async #check(chain: ChainCheck, most: number): Promise<AuditReport['fault']> {
    for (;;) {
      const rows = await this.#database.query<AuditRow>(
        `SELECT ${AUDIT_COLUMNS} FROM hopgate.audit WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3`,
        [chain.count, most, PAGE],
        LOAD_MS,
      );
      for (const row of rows) {
        const fault = chain.next(entryOf(row));
        if (fault !== undefined) return fault;
      }
      if (rows.length < PAGE) return undefined;
    }
  }
}

/** The key that the same request was about; @throws Refused for another request */
async function earlierOf(
  { key, body }: RequestMark,
  query: SqlReader['query'],
): Promise<string | undefined> {
  const [row] = await query<{ readonly body: string; readonly target: string }>(
    'SELECT body, target FROM hopgate.key_requests WHERE key = $1',
    [key],
  );
  if (row === undefined) return undefined;
  if (row.body !== body) throw new Refused('another request', { cause: new RequestReused() });
  return row.target;
}

async function mark(
  { key, body }: RequestMark,
  target: string,
  time: number,
  query: SqlReader['query'],
): Promise<void> {
  await query('DELETE FROM hopgate.key_requests WHERE time < $1', [time - REQUEST_MS]);
  await query(
    'INSERT INTO hopgate.key_requests (key, body, target, time) VALUES ($1, $2, $3, $4)',
    [key, body, target, time],
  );
}

function planOf(plan: ChangePlan, now: KeyChange | undefined): PlannedChange {
  try {
    return plan(now);
  } catch (thrown) {
    throw new Refused('the change was refused', { cause: thrown });
  }
}

/** The entry as it follows the last one, as values of its columns. */
async function nextEntry(said: AuditNote, query: SqlReader['query']) {
  const [head] = await query<Position>('SELECT seq, hash FROM hopgate.audit_head', []);
  const entry: AuditEntry = { ...said, seq: head!.seq + 1 };
  return auditValues(entry, head!.hash, hashOf(entry, head!.hash));
}

/** The key, its audit entry and the end of the chain, in one trip. */
async function write(
  { record, secrets, audit }: PlannedChange,
  query: SqlReader['query'],
): Promise<void> {
  const { id, name, version, created, updated, blocked, revoked, settings } = record;
  const entry = await nextEntry({ ...audit, target: id }, query);
  await query(
    `WITH noted AS (
       INSERT INTO hopgate.audit (${AUDIT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ), kept AS (
       INSERT INTO hopgate.keys AS k
           (id, name, version, created, updated, blocked, revoked, settings, secrets, change)
         VALUES ($5, $10, $11, $12, $13, $14, $15, $16, coalesce($17::json, '[]'), $1)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version,
           created = excluded.created, updated = excluded.updated, blocked = excluded.blocked,
           revoked = excluded.revoked, settings = excluded.settings, change = excluded.change,
           secrets = coalesce($17::json, k.secrets)
     )
     UPDATE hopgate.audit_head SET seq = $1, hash = $9`,
    [
      ...entry,
      name,
      version,
      created,
      updated,
      blocked,
      revoked ?? null,
      JSON.stringify(settings),
      secrets === undefined ? null : JSON.stringify(secrets.map(storedOf)),
    ],
  );
}

const storedOf = ({ digest, created, until }: SecretRecord): StoredSecret => ({
  digest,
  created,
  until: until ?? null,
});

const changeOf = (row: SharedKeyRow): KeyChange => ({
  record: recordOf(row),
  secrets: row.secrets.map(({ digest, created, until }) => ({
    digest,
    key: row.id,
    created,
    until: until ?? undefined,
  })),
});

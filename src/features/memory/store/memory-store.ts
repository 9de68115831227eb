/** The events of the memory in their tables, in a file of this machine or in the Postgres of all replicas: captured, read, erased. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { MemoryEvent } from '../../../conversation/memory.ts';
import { batchesOf } from '../../../lib/loop/batches.ts';
import { preciseNow } from '../../../lib/loop/precise-time.ts';
import { othersTurn } from '../../../lib/loop/steps.ts';
import { nameHash } from '../../../state/erasures.ts';
import type {
  SqlDatabase,
  SqlStatements,
  SqlValue,
  TransactionOptions,
} from '../../../state/sql/sql.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import type { SpaceCount } from '../backend.ts';
import { type CheckedEvent, type EventTurn, isEventId, type MemoryLimits } from '../event.ts';
import { DatabaseClock } from './database-clock.ts';
import { DatabaseTerms } from './database-terms.ts';
import { cursorOf, cursorPosition, type EventPage, type ListQuery } from './event-pages.ts';
import { FileTerms } from './file-terms.ts';
import {
  ERASURES_MS,
  type Group,
  MemoryWrite,
  type WriteKind,
  type WriteOutcome,
} from './memory-write.ts';
import { formsOf, type SqlForms } from './schema.ts';
import { type ReadEvent, SealedEvents, type StoredEvent } from './sealed-events.ts';
import type { ErasedSpace, TermsIndex } from './terms-index.ts';

export interface MemoryStoreOptions {
  readonly db: SqlDatabase;
  readonly seal: TextSeal;
  readonly limits: MemoryLimits;
  readonly dedupeMs: number;
}

/** A captured event, whose id makes a second write of it harmless. */
export interface CapturedEvent {
  readonly space: string;
  readonly event: CheckedEvent & { readonly id: string };
  /** When its turn began, as of {@link preciseNow}. */
  readonly began: number;
  readonly turn?: EventTurn;
  /** A hash of the id of the key that puts it in. */
  readonly owner?: string | undefined;
}

/** Milliseconds that a look-up may take. */
const READ_MS = 2000;
/** Milliseconds that a write, a list or a step of an erasure may take. */
const WRITE_MS = 5000;
/** Milliseconds after which a wait for the lock of a space is refused. */
const LOCK_MS = 3000;
/** Milliseconds for which a replica that freezes with a lock holds up the others. */
const IDLE_MS = 2000;
/** Digests that are written in one go. */
const DIGESTS = 16;

const HEAD = 'e.id, e.time, e.body, e.importance';

export class MemoryStore {
  readonly db: SqlDatabase;
  readonly forms: SqlForms;
  readonly sealed: SealedEvents;
  readonly terms: TermsIndex;
  readonly limits: MemoryLimits;
  readonly dedupeMs: number;
  /** Undefined: a file, whose clock is that of this process. */
  readonly clock: DatabaseClock | undefined;

  constructor({ db, seal, limits, dedupeMs }: MemoryStoreOptions) {
    this.db = db;
    this.limits = limits;
    this.dedupeMs = dedupeMs;
    this.forms = formsOf(db);
    this.sealed = new SealedEvents(seal);
    if (this.isFile) {
      this.terms = new FileTerms(db);
    } else {
      const clock = new DatabaseClock();
      this.clock = clock;
      this.terms = new DatabaseTerms(db, this.sealed, clock);
    }
  }

  get isFile(): boolean {
    return this.db.form === 'file';
  }

  /** The outcomes in order. The same events again change nothing. */
  async capture(captured: readonly CapturedEvent[]): Promise<readonly WriteOutcome[]> {
    if (this.clock?.isKnown === false) await this.clock.read(this.db);
    const groups: (Group & { readonly events: StoredEvent[] })[] = [];
    for (const { space, event, turn, owner } of captured) {
      const last = groups.at(-1);
      const stored = this.sealed.sealed(space, event);
      const isSame = last?.space === space && last.turn === turn && last.owner === owner;
      if (isSame) last.events.push(stored);
      else groups.push({ space, owner, turn, events: [stored] });
      await othersTurn();
    }
    const began = new Map(captured.map(({ event, began }) => [event.id, began]));
    const outcomes = await this.#write('capture', groups, began);
    return outcomes.map((one) => (typeof one === 'string' ? (one as WriteOutcome) : 'stored'));
  }

  /**
   * Adds all events or none. An event whose id the space already has stays unchanged (false).
   * @throws GatewayError that names the limit
   */
  async add(
    space: string,
    events: readonly CheckedEvent[],
    owner?: string,
  ): Promise<readonly (readonly [MemoryEvent, boolean])[]> {
    const given = events.map((event) => this.sealed.sealed(space, event));
    const outcomes = await this.#write('add', [{ space, owner, turn: undefined, events: given }]);
    return outcomes.map((outcome, at) => {
      const isNew = outcome === 'stored';
      const event = this.sealed.opened(space, isNew ? given[at]! : (outcome as ReadEvent));
      if (event !== undefined) return [event, isNew] as const;
      throw new GatewayError('internal', 'A stored event cannot be read (engines.seal).');
    });
  }

  /** Replaces the event of the same id. Undefined: it is not there any more. @throws GatewayError at a limit */
  async change(
    space: string,
    event: CheckedEvent & { readonly id: string },
    owner?: string,
  ): Promise<MemoryEvent | undefined> {
    const given = this.sealed.sealed(space, event);
    const [outcome] = await this.#write('change', [
      { space, owner, turn: undefined, events: [given] },
    ]);
    return outcome === 'absent' ? undefined : this.sealed.opened(space, given);
  }

  #write(kind: WriteKind, groups: readonly Group[], began?: ReadonlyMap<string, number>) {
    const spaces = [...new Set(groups.map(({ space }) => space))];
    return this.writing(spaces, (write) => write.put(kind, groups, began));
  }

  /** Does the work in one transaction that has the locks of these spaces. */
  async writing<T>(
    spaces: readonly string[],
    work: (write: MemoryWrite) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    const result = await this.#transaction(async (write) => {
      await this.#lock(write.inside, spaces);
      return work(write);
    }, options);
    await this.terms.added?.();
    return result;
  }

  #transaction<T>(
    work: (write: MemoryWrite) => Promise<T>,
    options: TransactionOptions = { deadlineMs: WRITE_MS },
  ): Promise<T> {
    return this.db.transaction(async (inside) => {
      const write = new MemoryWrite(inside, this);
      const result = await work(write);
      await write.finish();
      return result;
    }, options);
  }

  /** Takes the locks in one order for all. A file has one writer, and needs none. */
  async #lock(inside: SqlStatements, spaces: readonly string[]): Promise<void> {
    if (this.isFile) return;
    await inside.query(
      `SELECT set_config('lock_timeout', '${LOCK_MS}', true),
         set_config('idle_in_transaction_session_timeout', '${IDLE_MS}', true), pg_advisory_xact_lock(k)
       FROM (SELECT DISTINCT hashtextextended(name, 7496233) AS k
         FROM json_array_elements_text(CAST($1 AS json)) AS name ORDER BY k) AS locks`,
      [JSON.stringify(spaces)],
    );
  }

  async get(space: string, id: string): Promise<MemoryEvent | undefined> {
    if (!isEventId(id)) return undefined;
    const rows = await this.db.query<ReadEvent>(
      `SELECT ${HEAD} FROM hopgate.memory_spaces s JOIN hopgate.memory_events e ON e.space = s.id
         WHERE s.name = $1 AND e.id = $2`,
      [space, id],
      READ_MS,
    );
    return rows[0] && this.sealed.opened(space, rows[0]);
  }

  /**
   * One page of a space's events; empty where there is no space. Events that were sealed with a secret that is not
   * configured any more are missing. @throws GatewayError for a cursor that no page gave
   */
  async list(space: string, query: ListQuery): Promise<EventPage> {
    const { since, until, tag, limit, cursor, order } = query;
    const parts = ['s.name = $1'];
    const values: SqlValue[] = [space];
    const add = (sql: (...given: string[]) => string, ...more: SqlValue[]) => {
      parts.push(sql(...more.map((_, at) => `$${values.length + at + 1}`)));
      values.push(...more);
    };
    if (since !== undefined) add((ms) => `e.time >= ${ms}`, since);
    if (until !== undefined) add((ms) => `e.time < ${ms}`, until);
    if (tag !== undefined)
      add((one) => this.forms.has('e.tags', one!), this.sealed.tag(space, tag));
    if (cursor !== undefined) {
      const beyond = order === 'asc' ? '>' : '<';
      add((time, row) => `(e.time, e.seq) ${beyond} (${time}, ${row})`, ...cursorPosition(cursor));
    }
    const rows = await this.db.query<ReadEvent & { seq: number }>(
      `SELECT e.seq, ${HEAD} FROM hopgate.memory_spaces s JOIN hopgate.memory_events e ON e.space = s.id
         WHERE ${parts.join(' AND ')} ORDER BY e.time ${order}, e.seq ${order} LIMIT $${values.length + 1}`,
      [...values, limit + 1],
      WRITE_MS,
    );
    const events = rows.slice(0, limit).flatMap((one) => this.sealed.opened(space, one) ?? []);
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return last === undefined ? { events } : { events, next: cursorOf(last) };
  }

  /** Events by their rows, without rows of other spaces and events that cannot be opened. */
  async events(space: string, rows: readonly number[]): Promise<ReadonlyMap<number, MemoryEvent>> {
    if (rows.length === 0) return new Map();
    const found = await this.db.query<ReadEvent & { seq: number }>(
      `SELECT e.seq, ${HEAD} FROM hopgate.memory_events e WHERE ${this.forms.isOneOf('e.seq', '$2', 'bigint')}
         AND +e.space = (SELECT id FROM hopgate.memory_spaces WHERE name = $1)`,
      [space, JSON.stringify(rows)],
      READ_MS,
    );
    const opened = found.flatMap((one) => {
      const event = this.sealed.opened(space, one);
      return event === undefined ? [] : [[one.seq, event] as const];
    });
    return new Map(opened);
  }

  /** Writes digests of events from before there were digests. A digest that is not written is made again. */
  async saveDigests(
    digests: readonly (readonly [row: number, digest: Uint8Array])[],
  ): Promise<void> {
    const sql = 'UPDATE hopgate.memory_events SET digest = $2 WHERE seq = $1 AND digest IS NULL';
    for (const some of batchesOf(digests, DIGESTS)) {
      await othersTurn();
      await this.db.transaction((inside) =>
        Promise.all(some.map(([row, digest]) => inside.query(sql, [row, digest]))),
      );
    }
  }

  async remove(space: string, id: string): Promise<boolean> {
    if (!isEventId(id)) return false;
    return this.writing([space], async (write) => {
      const [found] = await write.inside.query<{ seq: number; in_space: number }>(
        `SELECT e.seq, e.space AS in_space FROM hopgate.memory_spaces s JOIN hopgate.memory_events e ON e.space = s.id
           WHERE s.name = $1 AND e.id = $2`,
        [space, id],
      );
      if (found === undefined) return false;
      await write.remove(found.in_space, [found.seq]);
      return true;
    });
  }

  /** Spaces that have events, sorted by name, after the name `after`. @param model counts the events without its vectors */
  spaces(after: string, limit: number, model?: string): Promise<readonly SpaceCount[]> {
    const waiting = `, events - (SELECT count(*) FROM hopgate.memory_vectors v
       WHERE v.space = s.id AND v.model = $3) AS waiting`;
    return this.db.query<SpaceCount>(
      `SELECT name AS space, events${model === undefined ? '' : waiting} FROM hopgate.memory_spaces s
         WHERE name > $1 AND events > 0 ORDER BY name LIMIT $2`,
      [after.toWellFormed().replaceAll('\0', ''), limit, ...(model === undefined ? [] : [model])],
      READ_MS,
    );
  }

  /** Whether nothing can be found in a space, as far as that is known without a trip. */
  async lacks(space: string): Promise<boolean> {
    if (!this.isFile) return false;
    const found = await this.db.query('SELECT 1 FROM memory_spaces WHERE name = $1', [space]);
    return found.length === 0;
  }

  /** Hides the space at once; {@link sweep} removes it. Returns its id, and its number of events. */
  async erase(space: string): Promise<ErasedSpace | undefined> {
    return this.writing([space], async ({ inside }) => {
      const now = this.clock === undefined ? preciseNow() : await this.clock.read(inside);
      await inside.query('DELETE FROM hopgate.memory_erasures WHERE at < $1', [now - ERASURES_MS]);
      await inside.query(
        `INSERT INTO hopgate.memory_erasures (space, at) VALUES ($1, $2)
           ON CONFLICT (space) DO UPDATE SET at = excluded.at`,
        [nameHash(space), now],
      );
      const [gone] = await inside.query<ErasedSpace>(
        'UPDATE hopgate.memory_spaces SET name = NULL WHERE name = $1 RETURNING id, events',
        [space],
      );
      return gone;
    });
  }

  /** Removes some of an erased space. False: nothing is left, the index is to be tidied, or another replica is at it. */
  async sweep(): Promise<boolean> {
    return this.#transaction(async (write) => {
      const { inside } = write;
      const [gone] = await inside.query<ErasedSpace>(
        `SELECT id, events FROM hopgate.memory_spaces s WHERE name IS NULL ORDER BY id LIMIT 1${this.forms.taking('s')}`,
      );
      if (gone === undefined) return false;
      const more = await this.terms.sweep(inside, gone, (rows) => write.removeRows(gone.id, rows));
      await inside.query('DELETE FROM hopgate.memory_shares WHERE bytes <= 0 AND space = $1', [
        gone.id,
      ]);
      return more;
    });
  }

  /** Whether nothing erased is left. */
  async isSwept(): Promise<boolean> {
    const found = await this.db.query(
      'SELECT 1 FROM hopgate.memory_spaces WHERE name IS NULL LIMIT 1',
    );
    return found.length === 0;
  }

  /** Lets writes wait for another process from here on: the last one of this process cannot be tried again. */
  async waitForLastWrite(): Promise<void> {
    if (this.isFile) await this.db.query('PRAGMA busy_timeout = 5000');
  }
}

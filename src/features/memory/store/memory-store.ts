/** The events of the memory in their tables, in a file of this machine or in the Postgres of all replicas: written, read, erased. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { MemoryEvent } from '../../../conversation/memory.ts';
import { preciseNow } from '../../../lib/loop/precise-time.ts';
import { othersTurn } from '../../../lib/loop/steps.ts';
import { nameHash } from '../../../state/erasures.ts';
import {
  placeholders,
  type SqlDatabase,
  type SqlStatements,
  type SqlValue,
  type TransactionOptions,
} from '../../../state/sql/sql.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import type { SpaceCount } from '../backend.ts';
import {
  type CheckedEvent,
  type EventTurn,
  isEventId,
  type MemoryLimits,
  memoryIsFull,
  shareIsFull,
  spaceIsFull,
} from '../event.ts';
import { DatabaseClock } from './database-clock.ts';
import { DatabaseTerms } from './database-terms.ts';
import { cursorOf, cursorPosition, type EventPage, type ListQuery } from './event-pages.ts';
import { FileTerms } from './file-terms.ts';
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
  /** When its turn began, as of `instant`. */
  readonly began: number;
  readonly turn?: EventTurn;
  /** Whose it is, as of {@link ownerOf}. */
  readonly owner?: string | undefined;
}

export type WriteOutcome = 'stored' | 'duplicate' | 'full' | 'erased';

/** Milliseconds that a look-up may take, and a write, a list or a step of an erasure. */
const READ_MS = 2000;
const WRITE_MS = 5000;
/** Erasures are known for so long. A captured event that waited for longer is dropped: nobody can say. */
const ERASURES_MS = 7 * 86_400_000;

const HEAD = 'e.id, e.time, e.body, e.importance';
const COLUMNS =
  'space, id, time, body, importance, print, bytes, length, digest, turn, owner, tags';

/** As tables name a key; undefined where there are no keys. */
export const ownerOf = (key: string | undefined): string | undefined =>
  key === undefined || key === '' ? undefined : nameHash(key);
/** Digests that are written in one go. */
const DIGESTS = 16;

/** Who waits for the lock of a space in vain is refused; a replica that freezes with one holds up the others for so long. */
const LOCK_MS = 3000;
const IDLE_MS = 2000;
/** Milliseconds since 1970, with fractions. */
const DATABASE_NOW = 'CAST(extract(epoch FROM clock_timestamp()) * 1000 AS double precision)';

export type WriteKind = 'capture' | 'add' | 'change';
/** Of a known id: the event that is there. */
export type PutOutcome = WriteOutcome | 'absent' | ReadEvent;

/** Events of one space, one turn and one owner, which follow each other. */
export interface Group {
  readonly space: string;
  readonly owner: string | undefined;
  readonly turn: EventTurn | undefined;
  readonly events: StoredEvent[];
}

/** A space in a transaction that writes. */
interface Place {
  readonly id: number;
  readonly name: string;
  events: number;
}

/** What stands in the way of new events: an event of the same id, with the same words, or of the same turn. */
interface KnownRow extends Omit<ReadEvent, 'body'> {
  readonly why: 'id' | 'print' | 'turn';
  readonly seq: number;
  readonly print: string;
  readonly body: Uint8Array | null;
}

/** All that one transaction of {@link MemoryStore} keeps while it writes. */
interface Writing {
  readonly kind: WriteKind;
  readonly inside: SqlStatements;
  readonly places: Map<string, Place | undefined>;
  /** Of all texts of all spaces. */
  bytes: number;
  /** Of texts by owner. */
  readonly shares: Map<string, number>;
}

/** What was removed. */
interface Freed {
  readonly bytes: number;
  readonly shares: ReadonlyMap<string, number>;
}

const addTo = (sums: Map<string, number>, name: string, amount: number) =>
  void sums.set(name, (sums.get(name) ?? 0) + amount);

export class MemoryStore {
  readonly db: SqlDatabase;
  readonly forms: SqlForms;
  readonly sealed: SealedEvents;
  readonly terms: TermsIndex;
  readonly #options: MemoryStoreOptions;
  readonly #clock = new DatabaseClock();

  constructor(options: MemoryStoreOptions) {
    const { db, seal } = options;
    this.#options = options;
    this.db = db;
    this.forms = formsOf(db);
    this.sealed = new SealedEvents(seal);
    const onClock = (time: number) => this.#clock.measured(time);
    this.terms = this.isFile
      ? new FileTerms(db)
      : new DatabaseTerms({ db, sealed: this.sealed, onClock });
  }

  get isFile(): boolean {
    return this.db.form === 'file';
  }

  /** The outcomes in order. The same events again change nothing. */
  async capture(captured: readonly CapturedEvent[]): Promise<readonly WriteOutcome[]> {
    if (!this.isFile && !this.#clock.isKnown) await this.#now(this.db);
    const groups: Group[] = [];
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
    return this.writing(spaces, (inside) => this.put(inside, kind, groups, began));
  }

  /** In one transaction, which has the locks of these spaces. */
  async writing<T>(
    spaces: readonly string[],
    work: (inside: SqlStatements) => Promise<T>,
    options: TransactionOptions = { deadlineMs: WRITE_MS },
  ): Promise<T> {
    const result = await this.db.transaction(async (inside) => {
      await this.#lock(inside, spaces);
      return work(inside);
    }, options);
    await this.terms.added();
    return result;
  }

  /** One order for all who take several. A file has one writer. */
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

  /**
   * Writes events into spaces whose locks the transaction has. `capture`: what cannot be stored is left out, and the
   * outcome says why. `add`: all or none; of a known id the event that is there. `change`: what is there is replaced.
   * @param began when the turns of captured events began, by their ids
   */
  async put(
    inside: SqlStatements,
    kind: WriteKind,
    groups: readonly Group[],
    began: ReadonlyMap<string, number> = new Map(),
  ): Promise<readonly PutOutcome[]> {
    const spaces = kind === 'capture' ? groups.map(({ space }) => space) : [];
    const owners = groups.flatMap(({ owner }) => owner ?? []);
    const { bytes, shares, erased, oldest } = await this.#state(inside, spaces, owners);
    const writing: Writing = { kind, inside, places: new Map(), bytes, shares };
    const outcomes: PutOutcome[] = [];
    for (const { events, ...group } of groups) {
      const at = erased.get(nameHash(group.space)) ?? 0;
      // Events from before an erasure are dropped too: a running turn must not bring its space back.
      const kept = events.filter(({ id, time }) => {
        const from = began.get(id);
        const ahead = from === undefined ? 0 : this.#ahead(from);
        return from === undefined || (from + ahead > Math.max(oldest, at) && time + ahead + 1 > at);
      });
      const put =
        kept.length === 0 ? [] : await this.#putGroup(writing, { ...group, events: kept });
      const byEvent = new Map(kept.map((event, i) => [event, put[i]!]));
      outcomes.push(...events.map((event) => byEvent.get(event) ?? 'erased'));
    }
    await this.#addBytes(inside, writing.bytes - bytes);
    return outcomes;
  }

  /** Bytes of all texts, those of these owners, and erasures of these spaces by their hashes. */
  async #state(inside: SqlStatements, spaces: readonly string[], owners: readonly string[]) {
    const { isOneOf } = this.forms;
    const rows = await inside.query<{ what: string; name: string; value: number }>(
      `SELECT 'bytes' AS what, '' AS name, bytes AS value FROM hopgate.memory_total
       UNION ALL SELECT 'now', '', ${this.isFile ? '0' : DATABASE_NOW}
       UNION ALL SELECT 'erased', space, at FROM hopgate.memory_erasures WHERE ${isOneOf('space', '$1', 'text')}
       UNION ALL SELECT 'share', h.owner, sum(CASE WHEN h.bytes < s.bytes THEN h.bytes ELSE s.bytes END)
         FROM hopgate.memory_shares h JOIN hopgate.memory_spaces s ON s.id = h.space AND s.name IS NOT NULL
         WHERE ${isOneOf('h.owner', '$2', 'text')} GROUP BY h.owner`,
      [JSON.stringify([...new Set(spaces.map(nameHash))]), JSON.stringify([...new Set(owners)])],
    );
    const of = (what: string) =>
      new Map(rows.flatMap((row) => (row.what === what ? [[row.name, row.value] as const] : [])));
    const now = this.isFile ? preciseNow() : of('now').get('')!;
    if (!this.isFile) this.#clock.measured(now);
    return {
      bytes: of('bytes').get('')!,
      shares: of('share'),
      erased: of('erased'),
      oldest: now - ERASURES_MS,
    };
  }

  async #putGroup(writing: Writing, group: Group): Promise<readonly PutOutcome[]> {
    const { kind, inside } = writing;
    const { limits, dedupeMs } = this.#options;
    const place = await this.#place(writing, group.space);
    if (place === undefined) return group.events.map(() => 'absent');
    const known = await this.#known(inside, place, kind, group);
    const keep = new Set(group.turn?.prints.map((one) => this.sealed.print(group.space, one)));
    const gone = new Set(
      known.flatMap(({ why, seq, print }) =>
        why === 'turn'
          ? keep.has(print)
            ? []
            : [seq]
          : why === 'id' && kind === 'change'
            ? [seq]
            : [],
      ),
    );
    if (gone.size > 0) {
      const freed = await this.#remove(inside, place.id, [...gone]);
      place.events -= gone.size;
      writing.bytes -= freed.bytes;
      for (const [owner, bytes] of freed.shares) addTo(writing.shares, owner, -bytes);
    }
    const there = known.filter(({ seq }) => !gone.has(seq));
    const ids = new Map<string, PutOutcome>();
    for (const one of there) if (one.why === 'id') ids.set(one.id, one as PutOutcome);
    const prints = Map.groupBy(there, ({ print }) => print);
    const added: StoredEvent[] = [];
    const outcomes = group.events.map((event): PutOutcome => {
      // The same write again, after an answer that was lost, or an import of what is there.
      const same = ids.get(event.id);
      if (same !== undefined) return same;
      if (kind === 'change' && gone.size === 0) return 'absent';
      const alike = prints.get(event.print) ?? [];
      const isNear = ({ time }: { time: number }) => Math.abs(time - event.time) <= dedupeMs;
      if (kind === 'capture' && alike.some(isNear)) return 'duplicate';
      const why = this.#noRoom(writing, place, event, group.owner);
      if (why !== undefined) {
        if (kind === 'capture') return 'full';
        throw why(limits);
      }
      place.events++;
      writing.bytes += event.bytes;
      if (group.owner !== undefined) addTo(writing.shares, group.owner, event.bytes);
      added.push(event);
      ids.set(event.id, event);
      prints.set(event.print, [...alike, { ...event, why: 'print', seq: 0 }]);
      return 'stored';
    });
    if (added.length > 0) await this.#insert(inside, place, added, group);
    return outcomes;
  }

  /** What says which limit leaves no room for the event. */
  #noRoom(
    { bytes, shares }: Writing,
    place: Place,
    event: StoredEvent,
    owner: string | undefined,
  ): ((limits: MemoryLimits) => GatewayError) | undefined {
    const { limits } = this.#options;
    if (place.events >= limits.events) return spaceIsFull;
    if (bytes + event.bytes > limits.bytes) return memoryIsFull;
    if (owner === undefined || limits.keyBytes === 0) return undefined;
    return (shares.get(owner) ?? 0) + event.bytes > limits.keyBytes ? shareIsFull : undefined;
  }

  async #place({ kind, inside, places }: Writing, name: string): Promise<Place | undefined> {
    const known = places.get(name);
    if (known !== undefined) return known;
    const find = 'SELECT id, events FROM hopgate.memory_spaces WHERE name = $1';
    let [place] = await inside.query<Place>(find, [name]);
    if (place === undefined && kind !== 'change') {
      [place] = await inside.query<Place>(
        'INSERT INTO hopgate.memory_spaces (name) VALUES ($1) RETURNING id, events',
        [name],
      );
    }
    if (place !== undefined) places.set(name, place);
    return place;
  }

  async #known(
    inside: SqlStatements,
    place: Place,
    kind: WriteKind,
    { space, turn, events }: Group,
  ): Promise<readonly KnownRow[]> {
    const { isOneOf } = this.forms;
    const { dedupeMs } = this.#options;
    const times = events.map(({ time }) => time);
    const [first, last] = [Math.min(...times) - dedupeMs, Math.max(...times) + dedupeMs];
    const columns = (why: KnownRow['why'], body: string) =>
      `SELECT '${why}' AS why, e.seq, e.id, e.time, e.importance, e.print, ${body} AS body
         FROM hopgate.memory_events e WHERE e.space = $1`;
    const parts = [`${columns('id', 'e.body')} AND ${isOneOf('e.id', '$2', 'text')}`];
    const values: SqlValue[] = [place.id, JSON.stringify(events.map(({ id }) => id))];
    if (kind === 'capture') {
      parts.push(
        `${columns('print', 'NULL')} AND ${isOneOf('e.print', '$3', 'text')} AND e.time BETWEEN $4 AND $5`,
      );
      values.push(JSON.stringify(events.map(({ print }) => print)), first, last);
    }
    if (turn !== undefined) {
      parts.push(`${columns('turn', 'NULL')} AND e.turn = $6 AND e.time >= $7`);
      values.push(this.sealed.turn(space, turn.name), turn.isGiven ? 0 : first);
    }
    return inside.query<KnownRow>(parts.join(' UNION ALL '), values);
  }

  async #insert(
    inside: SqlStatements,
    place: Place,
    events: readonly StoredEvent[],
    { space, turn, owner }: Group,
  ): Promise<void> {
    const { terms } = this;
    const columns = terms.column === undefined ? COLUMNS : `${COLUMNS}, ${terms.column}`;
    const width = columns.split(', ').length;
    const named = turn === undefined ? null : this.sealed.turn(space, turn.name);
    const tuple = (_: unknown, i: number) => {
      const first = i * width + 1;
      const lists = Array.from({ length: width - 11 }, (_, at) =>
        this.forms.list(`$${first + 11 + at}`),
      );
      return `(${placeholders(11, first)}, ${lists.join(', ')})`;
    };
    for (let from = 0; from < events.length; from += terms.together) {
      const chunk = events.slice(from, from + terms.together);
      const stored = new Map(
        chunk.map(({ id, terms: all }) => [id, all.map((term) => terms.stored(place.id, term))]),
      );
      const rows = await inside.query<{ seq: number; id: string }>(
        `INSERT INTO hopgate.memory_events (${columns}) VALUES ${chunk.map(tuple).join(', ')} RETURNING seq, id`,
        chunk.flatMap((event): SqlValue[] => [
          ...[place.id, event.id, event.time, event.body, event.importance, event.print],
          ...[event.bytes, event.length, event.digest, named, owner ?? null],
          JSON.stringify(event.tags),
          ...(width > 12 ? [JSON.stringify(stored.get(event.id))] : []),
        ]),
      );
      await terms.add(inside, new Map(rows.map(({ seq, id }) => [seq, stored.get(id)!])));
    }
    const sum = (of: 'bytes' | 'length') => events.reduce((all, one) => all + one[of], 0);
    await inside.query(
      `UPDATE hopgate.memory_spaces SET events = events + $2, bytes = bytes + $3, length = length + $4 WHERE id = $1`,
      [place.id, events.length, sum('bytes'), sum('length')],
    );
    if (owner === undefined) return;
    await inside.query(
      `INSERT INTO hopgate.memory_shares AS h (owner, space, bytes) VALUES ($1, $2, $3)
         ON CONFLICT (owner, space) DO UPDATE SET bytes = h.bytes + excluded.bytes`,
      [owner, place.id, sum('bytes')],
    );
  }

  /** @returns the bytes of their texts, and by owner */
  async #remove(inside: SqlStatements, space: number, rows: readonly number[]): Promise<Freed> {
    await this.terms.remove(inside, rows);
    return this.#drop(inside, space, rows);
  }

  /** The rows without their terms. */
  async #drop(inside: SqlStatements, space: number, rows: readonly number[]): Promise<Freed> {
    const gone = await inside.query<{ bytes: number; length: number; owner: string | null }>(
      `DELETE FROM hopgate.memory_events WHERE ${this.forms.isOneOf('seq', '$1', 'bigint')} RETURNING bytes, length, owner`,
      [JSON.stringify(rows)],
    );
    const sum = (of: 'bytes' | 'length') => gone.reduce((all, one) => all + one[of], 0);
    await inside.query(
      `UPDATE hopgate.memory_spaces SET events = events - $2, bytes = bytes - $3, length = length - $4 WHERE id = $1`,
      [space, gone.length, sum('bytes'), sum('length')],
    );
    const shares = new Map<string, number>();
    for (const { owner, bytes } of gone) if (owner !== null) addTo(shares, owner, bytes);
    for (const [owner, bytes] of shares) {
      await inside.query(
        'UPDATE hopgate.memory_shares SET bytes = bytes - $3 WHERE owner = $1 AND space = $2',
        [owner, space, bytes],
      );
      await inside.query(
        'DELETE FROM hopgate.memory_shares WHERE owner = $1 AND space = $2 AND bytes <= 0',
        [owner, space],
      );
    }
    return { bytes: sum('bytes'), shares };
  }

  /** Last in each transaction: all of them change this row. */
  async #addBytes(inside: SqlStatements, bytes: number): Promise<void> {
    if (bytes === 0) return;
    await inside.query('UPDATE hopgate.memory_total SET bytes = bytes + $1', [bytes]);
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
   * One page of a space's events; empty where there is no space. Leaves out what was sealed with a secret that is not
   * configured any more. @throws GatewayError for a cursor that no page gave
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

  /** Events by their rows; rows of other spaces are left out, and what cannot be read. */
  async events(space: string, rows: readonly number[]): Promise<ReadonlyMap<number, MemoryEvent>> {
    if (rows.length === 0) return new Map();
    const found = await this.db.query<ReadEvent & { seq: number }>(
      `SELECT e.seq, ${HEAD} FROM hopgate.memory_spaces s JOIN hopgate.memory_events e ON +e.space = s.id
         WHERE s.name = $1 AND ${this.forms.isOneOf('e.seq', '$2', 'bigint')}`,
      [space, JSON.stringify(rows)],
      READ_MS,
    );
    const opened = found.flatMap((one) => {
      const event = this.sealed.opened(space, one);
      return event === undefined ? [] : [[one.seq, event] as const];
    });
    return new Map(opened);
  }

  /** Digests of events that were written before there were any. What is not written is made again. */
  async saveDigests(
    digests: readonly (readonly [row: number, digest: Uint8Array])[],
  ): Promise<void> {
    for (let from = 0; from < digests.length; from += DIGESTS) {
      await othersTurn();
      await this.db.transaction((inside) =>
        Promise.all(
          digests
            .slice(from, from + DIGESTS)
            .map(([row, digest]) =>
              inside.query(
                'UPDATE hopgate.memory_events SET digest = $2 WHERE seq = $1 AND digest IS NULL',
                [row, digest],
              ),
            ),
        ),
      );
    }
  }

  async remove(space: string, id: string): Promise<boolean> {
    if (!isEventId(id)) return false;
    return this.writing([space], async (inside) => {
      const [found] = await inside.query<{ seq: number; place: number }>(
        `SELECT e.seq, e.space AS place FROM hopgate.memory_spaces s JOIN hopgate.memory_events e ON e.space = s.id
           WHERE s.name = $1 AND e.id = $2`,
        [space, id],
      );
      if (found === undefined) return false;
      const { bytes } = await this.#remove(inside, found.place, [found.seq]);
      await this.#addBytes(inside, -bytes);
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
    return this.writing([space], async (inside) => {
      const now = await this.#now(inside);
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

  /** Removes some of an erased space. False: nothing is left, the index is to be tidied, or others have it. */
  async sweep(): Promise<boolean> {
    return this.db.transaction(
      async (inside) => {
        const [gone] = await inside.query<ErasedSpace>(
          `SELECT id, events FROM hopgate.memory_spaces s WHERE name IS NULL ORDER BY id LIMIT 1${this.forms.taking('s')}`,
        );
        if (gone === undefined) return false;
        let freed = 0;
        const more = await this.terms.sweep(inside, gone, async (rows) => {
          freed += (await this.#drop(inside, gone.id, rows)).bytes;
        });
        await inside.query('DELETE FROM hopgate.memory_shares WHERE bytes <= 0 AND space = $1', [
          gone.id,
        ]);
        await this.#addBytes(inside, -freed);
        return more;
      },
      { deadlineMs: WRITE_MS },
    );
  }

  /** Whether nothing erased is left. */
  async isSwept(): Promise<boolean> {
    const found = await this.db.query(
      'SELECT 1 FROM hopgate.memory_spaces WHERE name IS NULL LIMIT 1',
    );
    return found.length === 0;
  }

  /** A write waits for another process from here on: the last one of this process cannot be tried again. */
  async waitForLastWrite(): Promise<void> {
    if (this.isFile) await this.db.query('PRAGMA busy_timeout = 5000');
  }

  async #now(inside: Pick<SqlStatements, 'query'>): Promise<number> {
    if (this.isFile) return preciseNow();
    const [row] = await inside.query<{ now: number }>(`SELECT ${DATABASE_NOW} AS now`);
    this.#clock.measured(row!.now);
    return row!.now;
  }

  #ahead(began: number): number {
    return this.isFile ? 0 : this.#clock.aheadAt(began);
  }
}

/** One transaction that writes events or removes them: duplicates, limits, the index of terms, and the counts of all of it. */

import type { GatewayError } from '../../../conversation/errors.ts';
import { preciseNow } from '../../../lib/loop/precise-time.ts';
import { nameHash } from '../../../state/erasures.ts';
import { placeholders, type SqlStatements, type SqlValue } from '../../../state/sql/sql.ts';
import {
  type EventTurn,
  type MemoryLimits,
  memoryIsFull,
  shareIsFull,
  spaceIsFull,
} from '../event.ts';
import { CLOCK_NOW, type DatabaseClock } from './database-clock.ts';
import type { SqlForms } from './schema.ts';
import type { ReadEvent, SealedEvents, StoredEvent } from './sealed-events.ts';
import type { TermsIndex } from './terms-index.ts';

export type WriteKind = 'capture' | 'add' | 'change';
export type WriteOutcome = 'stored' | 'duplicate' | 'full' | 'erased';
/** A known id gives the event that has it. */
export type PutOutcome = WriteOutcome | 'absent' | ReadEvent;

/** Events of one space, one turn and one owner, which follow each other. */
export interface Group {
  readonly space: string;
  readonly owner: string | undefined;
  readonly turn: EventTurn | undefined;
  readonly events: readonly StoredEvent[];
}

interface WrittenTables {
  readonly forms: SqlForms;
  readonly sealed: SealedEvents;
  readonly terms: TermsIndex;
  /** Undefined: a file, whose clock is that of this process. */
  readonly clock: DatabaseClock | undefined;
  readonly limits: MemoryLimits;
  readonly dedupeMs: number;
}

interface SpaceRow {
  readonly id: number;
  events: number;
}

/** An event that new ones meet: it has the same id, the same words, or is of the same turn. */
interface KnownRow extends Omit<ReadEvent, 'body'> {
  readonly why: 'id' | 'print' | 'turn';
  readonly seq: number;
  readonly print: string;
  readonly body: Uint8Array | null;
}

/** Erasures are known for this long. A captured event that waited longer is dropped, since its space may be erased. */
export const ERASURES_MS = 7 * 86_400_000;

const COLUMNS =
  'space, id, time, body, importance, print, bytes, length, digest, turn, owner, tags';

const addTo = (sums: Map<string, number>, name: string, amount: number) =>
  void sums.set(name, (sums.get(name) ?? 0) + amount);

/** The transaction has the locks of all spaces that it writes. */
export class MemoryWrite {
  readonly #spaces = new Map<string, SpaceRow>();
  /** Bytes of all texts of all spaces without what this transaction changed, and what it changed. */
  #total = 0;
  #added = 0;
  /** Bytes of texts by owner. */
  #shares = new Map<string, number>();

  constructor(
    /** For further statements of the same transaction. */
    readonly inside: SqlStatements,
    private readonly tables: WrittenTables,
  ) {}

  /**
   * `capture` leaves out what cannot be stored, and the outcome says why. `add` writes all or none, but no known id.
   * `change` replaces what is there.
   * @param began when the turns of captured events began, by their ids
   * @throws GatewayError that names the limit, but not for `capture`
   */
  async put(
    kind: WriteKind,
    groups: readonly Group[],
    began: ReadonlyMap<string, number> = new Map(),
  ): Promise<readonly PutOutcome[]> {
    const { clock } = this.tables;
    const { erased, oldest } = await this.#readState(kind, groups);
    const outcomes: PutOutcome[] = [];
    for (const { events, ...group } of groups) {
      const at = erased.get(nameHash(group.space)) ?? 0;
      // Events from before an erasure are dropped too: a running turn must not bring its space back.
      const kept = events.filter(({ id, time }) => {
        const from = began.get(id);
        if (from === undefined) return true;
        const ahead = clock?.aheadAt(from) ?? 0;
        return from + ahead > Math.max(oldest, at) && time + ahead + 1 > at;
      });
      const put = kept.length === 0 ? [] : await this.#putGroup(kind, { ...group, events: kept });
      const byEvent = new Map(kept.map((event, i) => [event, put[i]!]));
      outcomes.push(...events.map((event) => byEvent.get(event) ?? 'erased'));
    }
    return outcomes;
  }

  /** Reads all bytes and those of the owners; the answer has erasures of spaces by their hashes. */
  async #readState(kind: WriteKind, groups: readonly Group[]) {
    const { forms, clock } = this.tables;
    const { isOneOf } = forms;
    const spaces = kind === 'capture' ? groups.map(({ space }) => nameHash(space)) : [];
    const owners = groups.flatMap(({ owner }) => owner ?? []);
    const rows = await this.inside.query<{ what: string; name: string; value: number }>(
      `SELECT 'bytes' AS what, '' AS name, bytes AS value FROM hopgate.memory_total
       UNION ALL SELECT 'now', '', ${clock === undefined ? '0' : CLOCK_NOW}
       UNION ALL SELECT 'erased', space, at FROM hopgate.memory_erasures WHERE ${isOneOf('space', '$1', 'text')}
       UNION ALL SELECT 'share', h.owner, sum(CASE WHEN h.bytes < s.bytes THEN h.bytes ELSE s.bytes END)
         FROM hopgate.memory_shares h JOIN hopgate.memory_spaces s ON s.id = h.space AND s.name IS NOT NULL
         WHERE ${isOneOf('h.owner', '$2', 'text')} GROUP BY h.owner`,
      [JSON.stringify([...new Set(spaces)]), JSON.stringify([...new Set(owners)])],
    );
    const of = (what: string) =>
      new Map(rows.flatMap((row) => (row.what === what ? [[row.name, row.value] as const] : [])));
    const now = clock === undefined ? preciseNow() : of('now').get('')!;
    clock?.measured(now);
    this.#total = of('bytes').get('')!;
    this.#shares = of('share');
    return { erased: of('erased'), oldest: now - ERASURES_MS };
  }

  async #putGroup(kind: WriteKind, group: Group): Promise<readonly PutOutcome[]> {
    const { sealed, limits, dedupeMs } = this.tables;
    const space = await this.#space(kind, group.space);
    if (space === undefined) return group.events.map(() => 'absent');
    const known = await this.#known(kind, space, group);
    const keep = new Set(group.turn?.prints.map((one) => sealed.print(group.space, one)));
    const isReplaced = ({ why, print }: KnownRow) =>
      why === 'turn' ? !keep.has(print) : why === 'id' && kind === 'change';
    const gone = new Set(known.filter(isReplaced).map(({ seq }) => seq));
    if (gone.size > 0) {
      await this.remove(space.id, [...gone]);
      space.events -= gone.size;
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
      const why = this.#noRoom(space, event, group.owner);
      if (why !== undefined) {
        if (kind === 'capture') return 'full';
        throw why(limits);
      }
      space.events++;
      this.#added += event.bytes;
      if (group.owner !== undefined) addTo(this.#shares, group.owner, event.bytes);
      added.push(event);
      ids.set(event.id, event);
      prints.set(event.print, [...alike, { ...event, why: 'print', seq: 0 }]);
      return 'stored';
    });
    if (added.length > 0) await this.#insert(space, { ...group, events: added });
    return outcomes;
  }

  /** The error of the limit that leaves no room for the event. */
  #noRoom(
    { events }: SpaceRow,
    { bytes }: StoredEvent,
    owner: string | undefined,
  ): ((limits: MemoryLimits) => GatewayError) | undefined {
    const { limits } = this.tables;
    if (events >= limits.events) return spaceIsFull;
    if (this.#total + this.#added + bytes > limits.bytes) return memoryIsFull;
    if (owner === undefined || limits.keyBytes === 0) return undefined;
    return (this.#shares.get(owner) ?? 0) + bytes > limits.keyBytes ? shareIsFull : undefined;
  }

  async #space(kind: WriteKind, name: string): Promise<SpaceRow | undefined> {
    const known = this.#spaces.get(name);
    if (known !== undefined) return known;
    let [space] = await this.inside.query<SpaceRow>(
      'SELECT id, events FROM hopgate.memory_spaces WHERE name = $1',
      [name],
    );
    if (space === undefined && kind !== 'change') {
      [space] = await this.inside.query<SpaceRow>(
        'INSERT INTO hopgate.memory_spaces (name) VALUES ($1) RETURNING id, events',
        [name],
      );
    }
    if (space !== undefined) this.#spaces.set(name, space);
    return space;
  }

  #known(
    kind: WriteKind,
    { id }: SpaceRow,
    { space, turn, events }: Group,
  ): Promise<readonly KnownRow[]> {
    const { forms, sealed, dedupeMs } = this.tables;
    const { isOneOf } = forms;
    const times = events.map(({ time }) => time);
    const [first, last] = [Math.min(...times) - dedupeMs, Math.max(...times) + dedupeMs];
    const columns = (why: KnownRow['why'], body: string) =>
      `SELECT '${why}' AS why, e.seq, e.id, e.time, e.importance, e.print, ${body} AS body
         FROM hopgate.memory_events e WHERE e.space = $1`;
    const parts = [`${columns('id', 'e.body')} AND ${isOneOf('e.id', '$2', 'text')}`];
    const values: SqlValue[] = [id, JSON.stringify(events.map((event) => event.id))];
    if (kind === 'capture') {
      parts.push(
        `${columns('print', 'NULL')} AND ${isOneOf('e.print', '$3', 'text')} AND e.time BETWEEN $4 AND $5`,
      );
      values.push(JSON.stringify(events.map(({ print }) => print)), first, last);
    }
    if (turn !== undefined) {
      parts.push(`${columns('turn', 'NULL')} AND e.turn = $6 AND e.time >= $7`);
      values.push(sealed.turn(space, turn.name), turn.isGiven ? 0 : first);
    }
    return this.inside.query<KnownRow>(parts.join(' UNION ALL '), values);
  }

  async #insert({ id: place }: SpaceRow, { space, turn, owner, events }: Group): Promise<void> {
    const { forms, sealed, terms } = this.tables;
    const columns = terms.column === undefined ? COLUMNS : `${COLUMNS}, ${terms.column}`;
    const width = columns.split(', ').length;
    const named = turn === undefined ? null : sealed.turn(space, turn.name);
    const tuple = (_: unknown, i: number) => {
      const first = i * width + 1;
      const lists = Array.from({ length: width - 11 }, (_, at) =>
        forms.list(`$${first + 11 + at}`),
      );
      return `(${placeholders(11, first)}, ${lists.join(', ')})`;
    };
    for (let from = 0; from < events.length; from += terms.together) {
      const chunk = events.slice(from, from + terms.together);
      const stored = new Map(
        chunk.map(({ id, terms: all }) => [id, all.map((term) => terms.stored(place, term))]),
      );
      const rows = await this.inside.query<{ seq: number; id: string }>(
        `INSERT INTO hopgate.memory_events (${columns}) VALUES ${chunk.map(tuple).join(', ')} RETURNING seq, id`,
        chunk.flatMap((event): SqlValue[] => [
          ...[place, event.id, event.time, event.body, event.importance, event.print],
          ...[event.bytes, event.length, event.digest, named, owner ?? null],
          JSON.stringify(event.tags),
          ...(width > 12 ? [JSON.stringify(stored.get(event.id))] : []),
        ]),
      );
      await terms.add(this.inside, new Map(rows.map(({ seq, id }) => [seq, stored.get(id)!])));
    }
    const bytes = await this.#count(place, '+', events);
    if (owner === undefined) return;
    await this.inside.query(
      `INSERT INTO hopgate.memory_shares AS h (owner, space, bytes) VALUES ($1, $2, $3)
         ON CONFLICT (owner, space) DO UPDATE SET bytes = h.bytes + excluded.bytes`,
      [owner, place, bytes],
    );
  }

  /** Counts events that a space gets (+) or loses (-). @returns the bytes of their texts */
  async #count(
    space: number,
    sign: '+' | '-',
    events: readonly Pick<StoredEvent, 'bytes' | 'length'>[],
  ): Promise<number> {
    const sum = (of: 'bytes' | 'length') => events.reduce((all, one) => all + one[of], 0);
    const counts = ['events', 'bytes', 'length'].map(
      (name, i) => `${name} = ${name} ${sign} $${i + 2}`,
    );
    await this.inside.query(`UPDATE hopgate.memory_spaces SET ${counts.join(', ')} WHERE id = $1`, [
      space,
      events.length,
      sum('bytes'),
      sum('length'),
    ]);
    return sum('bytes');
  }

  async remove(space: number, rows: readonly number[]): Promise<void> {
    await this.tables.terms.remove(this.inside, rows);
    await this.removeRows(space, rows);
  }

  /** Removes events whose terms are gone already, or go with those of the whole space. */
  async removeRows(space: number, rows: readonly number[]): Promise<void> {
    const { isOneOf } = this.tables.forms;
    const gone = await this.inside.query<{ bytes: number; length: number; owner: string | null }>(
      `DELETE FROM hopgate.memory_events WHERE ${isOneOf('seq', '$1', 'bigint')} RETURNING bytes, length, owner`,
      [JSON.stringify(rows)],
    );
    this.#added -= await this.#count(space, '-', gone);
    const shares = new Map<string, number>();
    for (const { owner, bytes } of gone) if (owner !== null) addTo(shares, owner, bytes);
    for (const [owner, bytes] of shares) {
      addTo(this.#shares, owner, -bytes);
      await this.inside.query(
        'UPDATE hopgate.memory_shares SET bytes = bytes - $3 WHERE owner = $1 AND space = $2',
        [owner, space, bytes],
      );
      await this.inside.query(
        'DELETE FROM hopgate.memory_shares WHERE owner = $1 AND space = $2 AND bytes <= 0',
        [owner, space],
      );
    }
  }

  /** Writes the bytes of all spaces. Last in the transaction, since all transactions change this row. */
  async finish(): Promise<void> {
    if (this.#added === 0) return;
    await this.inside.query('UPDATE hopgate.memory_total SET bytes = bytes + $1', [this.#added]);
  }
}

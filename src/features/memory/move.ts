/** Moves the memory between the file of a machine and the database of all replicas. */

import type { MemoryEvent } from '../../conversation/memory.ts';
import { printableLine } from '../../lib/text/printable-text.ts';
import { ERASURES_LOCK, nameHash } from '../../state/erasures.ts';
import type { StateMove, TargetState } from '../../state/move/paged-move.ts';
import { pagesOf, type Side, WRITE_MS } from '../../state/move/sides.ts';
import {
  erasuresOf,
  keyOf,
  type NotedSide,
  note,
  notedMove,
  notesOf,
  type RowKey,
  type TableMoveOptions,
} from '../../state/move/table-move.ts';
import type { SqlStatements } from '../../state/sql/sql.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import type { MemoryLimits } from './event.ts';
import { MemoryStore } from './store/memory-store.ts';
import type { MemoryWrite, WriteKind } from './store/memory-write.ts';
import { MEMORY_SCHEMA } from './store/schema.ts';
import { type ReadEvent, UNSEALED } from './store/sealed-events.ts';
import { putVectors, type StoredVector } from './store/vectors.ts';

export interface MemoryMoveOptions extends TableMoveOptions {
  readonly limits: MemoryLimits;
}

/** An event of the source. */
interface MovedEvent {
  readonly seq: number;
  readonly space: string;
  readonly event: MemoryEvent;
  /** UTF-8 bytes of its text. */
  readonly bytes: number;
  readonly owner: string | null;
}

/** Written events after which the statistics of the planner are renewed; then each time their number has doubled. */
const ANALYZE_FIRST = 1000;
/** Spaces that a message names. */
const MAX_NAMES = 5;

export const memoryMove = ({ limits, ...options }: MemoryMoveOptions): StateMove =>
  notedMove<MovedEvent, MemorySide>(
    {
      name: 'memory',
      item: 'memory event',
      schema: MEMORY_SCHEMA,
      file: { shrinks: true },
      // Few events and bytes, since all of them are indexed.
      batch: { items: 100, bytes: 64_000 },
      space: 'space',
      toldLeft,
      side: (side, seal, { least }) =>
        new MemorySide(side, side.db.form === 'file' ? UNSEALED : seal, limits, least),
    },
    options,
  );

/** @param left the names of the spaces of these events */
function toldLeft(left: ReadonlyMap<string, string>): string {
  const names = [...new Set(left.values())].map((name) => printableLine(name, 100));
  const told = names.slice(0, MAX_NAMES).join(', ') + (names.length > MAX_NAMES ? ' and more' : '');
  return `${left.size} that were on both sides were removed on this machine, and are still there, in ${told}: delete there what must not stay.`;
}

interface TargetRow extends ReadEvent {
  readonly seq: number;
  readonly space: number;
}

class MemorySide implements NotedSide<MovedEvent> {
  readonly unusable = 0;
  unreadable = 0;
  readonly #store: MemoryStore;
  #written = 0;
  #analyzeAt = ANALYZE_FIRST;
  /** Spaces by the hashes of their names. */
  #spaces: Promise<ReadonlyMap<string, { readonly id: number; readonly name: string }>> | undefined;
  #prepared: Promise<void> | undefined;

  constructor(
    readonly tables: Side,
    private readonly seal: TextSeal,
    limits: MemoryLimits,
    /** Milliseconds that its clock is ahead of this machine's, at the least. */
    private readonly ahead: number,
  ) {
    this.#store = new MemoryStore({ db: tables.db, seal, limits, dedupeMs: 0 });
  }

  #has(table: string): boolean {
    return this.tables.has.has(table);
  }

  async count(): Promise<number> {
    if (!this.#has('memory_events')) return 0;
    const [row] = await this.tables.reader.query<{ n: number }>(
      'SELECT CAST(coalesce(sum(events), 0) AS bigint) AS n FROM hopgate.memory_spaces WHERE name IS NOT NULL',
    );
    return row!.n;
  }

  async *pages(): AsyncGenerator<readonly MovedEvent[]> {
    this.unreadable = 0;
    if (!this.#has('memory_events')) return;
    type Row = TargetRow & Pick<MovedEvent, 'bytes' | 'owner'> & { readonly name: string | null };
    const owner = this.#has('memory_shares') ? 'e.owner' : 'NULL AS owner';
    const sql = `SELECT e.seq, e.space, e.bytes, ${owner}, e.id, e.time, e.body, e.importance,
        (SELECT name FROM hopgate.memory_spaces WHERE id = e.space) AS name
      FROM hopgate.memory_events e WHERE true`;
    for await (const rows of pagesOf<Row>(this.tables, sql, ['seq'])) {
      const page = rows.flatMap(({ name: space, space: _, bytes, owner, ...row }) => {
        if (space === null) return [];
        const event = this.#store.sealed.opened(space, row);
        if (event === undefined) this.unreadable++;
        return event === undefined ? [] : [{ seq: row.seq, space, event, bytes, owner }];
      });
      if (page.length > 0) yield page;
    }
  }

  /** Vectors of events, by the rows that these have here. */
  async #vectors(events: readonly MovedEvent[]): Promise<ReadonlyMap<number, StoredVector>> {
    const { sealed, forms } = this.#store;
    const rows = await this.tables.reader.query<StoredVector & { seq: number; space: number }>(
      `SELECT seq, space, model, signs, vector FROM hopgate.memory_vectors WHERE ${forms.isOneOf('seq', '$1', 'bigint')}`,
      [JSON.stringify(events.map(({ seq }) => seq))],
    );
    const opened = rows.map(({ seq, space, model, signs, vector }) => {
      const part = (name: string, bytes: Uint8Array) => sealed.openedPart(name, space, seq, bytes);
      return [seq, { model, signs: part('signs', signs), vector: part('vector', vector) }] as const;
    });
    return new Map(opened);
  }

  async states(
    page: readonly MovedEvent[],
    reader: SqlStatements = this.tables.reader,
  ): Promise<readonly TargetState[]> {
    const rows = await this.#rows(reader, page);
    const hashed = page.map(({ space, event }) => ({ owner: nameHash(space), id: event.id }));
    const spaces = hashed.map(({ owner }) => owner);
    const erased = await erasuresOf(this.tables, reader, 'memory_erasures', spaces);
    const moved = await notesOf(this.tables, reader, 'memory', hashed);
    return page.map(({ space, event }) => {
      const row = rows.get(keyOf({ owner: space, id: event.id }));
      const form = moved.get(keyOf({ owner: nameHash(space), id: event.id }));
      const source = this.#form(space, event);
      if (row === undefined) {
        if (form !== undefined) return 'removed';
        return (erased.get(nameHash(space)) ?? 0) >= event.time + this.ahead ? 'erased' : 'missing';
      }
      // An event that cannot be opened is never taken for older.
      const opened = this.#store.sealed.opened(space, row);
      const target = opened && this.#form(space, opened);
      // The other side is newer where one side is as it was moved.
      if (target === source || form === source) return 'there';
      return form !== undefined && form === target ? 'missing' : 'differs';
    });
  }

  /** Equal for events that say the same; the database does not learn what that is. */
  #form(space: string, { id, time, text, source = '', tags, importance }: MemoryEvent): string {
    const form = nameHash(JSON.stringify([id, time, text, source, tags, importance]));
    return this.seal.blind(form, `${space}\nmoved`);
  }

  async #rows(
    reader: SqlStatements,
    page: readonly Pick<MovedEvent, 'space' | 'event'>[],
  ): Promise<ReadonlyMap<string, TargetRow>> {
    const { forms } = this.#store;
    if (!this.#has('memory_events')) return new Map();
    const spaces = await reader.query<{ id: number; name: string }>(
      `SELECT id, name FROM hopgate.memory_spaces WHERE ${forms.isOneOf('name', '$1', 'text')}`,
      [JSON.stringify([...new Set(page.map(({ space }) => space))])],
    );
    const ids = new Map(spaces.map(({ id, name }) => [name, id]));
    const names = new Map(spaces.map(({ id, name }) => [id, name]));
    const keys = page.flatMap(({ space, event }) => {
      const found = ids.get(space);
      return found === undefined ? [] : [{ space: found, id: event.id }];
    });
    const columns = 'seq, space, id, time, body, importance';
    const rows = await this.#byKeys<TargetRow>(reader, columns, keys);
    return new Map(rows.map((row) => [keyOf({ owner: names.get(row.space)!, id: row.id }), row]));
  }

  async #byKeys<Row>(
    reader: SqlStatements,
    columns: string,
    keys: readonly { readonly space: number; readonly id: string }[],
  ): Promise<readonly Row[]> {
    if (keys.length === 0) return [];
    const pairs = keys.map(({ space }, at) => `(${space}, $${at + 1})`);
    return reader.query<Row>(
      `SELECT ${columns} FROM hopgate.memory_events WHERE (space, id) IN (VALUES ${pairs.join(', ')})`,
      keys.map(({ id }) => id),
    );
  }

  /** @throws EngineAway, or a GatewayError that names the limit */
  async take(given: readonly MovedEvent[], from: this, origin: string): Promise<number> {
    this.#prepared ??= this.#store.terms.prepare?.();
    await this.#prepared;
    const vectors = await from.#vectors(given);
    const spaces = given.map(({ space }) => space);
    const count = await this.#store.writing(
      spaces,
      async (write) => {
        const { inside } = write;
        const states = await this.states(given, inside);
        const missing = given.filter((_, at) => states[at] === 'missing');
        if (missing.length === 0) return 0;
        const there = await this.#rows(inside, missing);
        const isThere = ({ space, event }: MovedEvent) =>
          there.has(keyOf({ owner: space, id: event.id }));
        await this.#put(
          write,
          'add',
          missing.filter((one) => !isThere(one)),
        );
        await this.#put(write, 'change', missing.filter(isThere));
        const rows = await this.#rows(inside, missing);
        const withVectors = missing.flatMap(({ seq, space, event }) => {
          const vector = vectors.get(seq);
          const row = rows.get(keyOf({ owner: space, id: event.id }));
          return vector === undefined || row === undefined ? [] : [[row.seq, vector] as const];
        });
        if (withVectors.length > 0) await putVectors(this.#store, inside, new Map(withVectors));
        const notes = missing.map(({ space, event }) => {
          return { owner: nameHash(space), id: event.id, form: this.#form(space, event) };
        });
        await note(inside, 'memory', origin, notes);
        return missing.length;
      },
      // An erasure has it, too: it comes before what is read here, or after what is written.
      { deadlineMs: WRITE_MS, sharedLocks: [ERASURES_LOCK] },
    );
    await this.#analyze(count);
    return count;
  }

  async #put(write: MemoryWrite, kind: WriteKind, events: readonly MovedEvent[]): Promise<void> {
    const alike = Map.groupBy(events, ({ space, owner }) => `${space}\n${owner ?? ''}`);
    const groups = [...alike.values()].map((some) => ({
      ...{ space: some[0]!.space, owner: some[0]!.owner ?? undefined, turn: undefined },
      events: some.map(({ space, event }) =>
        this.#store.sealed.sealed(space, { ...event, source: event.source ?? '' }),
      ),
    }));
    if (groups.length > 0) await write.put(kind, groups);
  }

  /** Without statistics the database reads all of a table that was just filled. */
  async #analyze(count: number): Promise<void> {
    this.#written += count;
    if (this.#store.isFile || this.#written < this.#analyzeAt) return;
    this.#analyzeAt *= 2;
    await this.tables.db.query(
      'ANALYZE hopgate.memory_events, hopgate.memory_terms, hopgate.moved_items',
      [],
      WRITE_MS,
    );
  }

  /** The names of the spaces of the events that are there, by owner and id. */
  async have(items: readonly RowKey[]): Promise<ReadonlyMap<string, string>> {
    if (!this.#has('memory_events')) return new Map();
    this.#spaces ??= this.tables.reader
      .query<{ id: number; name: string }>(
        'SELECT id, name FROM hopgate.memory_spaces WHERE name IS NOT NULL',
      )
      .then((all) => new Map(all.map((one) => [nameHash(one.name), one])));
    const spaces = await this.#spaces;
    const names = new Map([...spaces].map(([owner, { id, name }]) => [id, { owner, name }]));
    const keys = items.flatMap(({ owner, id }) => {
      const space = spaces.get(owner);
      return space === undefined ? [] : [{ space: space.id, id }];
    });
    const rows = await this.#byKeys<{ space: number; id: string }>(
      this.tables.reader,
      'space, id',
      keys,
    );
    return new Map(
      rows.map(({ space, id }) => {
        const { owner, name } = names.get(space)!;
        return [keyOf({ owner, id }), name];
      }),
    );
  }
}

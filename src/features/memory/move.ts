/** Moves the memory between the file of a machine and the database of all replicas. */

import type { MemoryEvent } from '../../conversation/memory.ts';
import { printableLine } from '../../lib/text/printable-text.ts';
import type { Sql } from '../../state/engines/engine.ts';
import { ERASURES_LOCK, erasureTables, nameHash } from '../../state/erasures.ts';
import {
  batchesOf,
  clockAhead,
  movedItems,
  originOf,
  tablesThere,
} from '../../state/move/moved-items.ts';
import {
  erasedHere,
  erasedThere,
  type MovePass,
  outdatedFile,
  pagedMove,
  removedHere,
  removedThere,
  type Standing,
  sealedElsewhere,
} from '../../state/move/paged-move.ts';
import type { MoveDirection, StateMove } from '../../state/move/state-move.ts';
import { prepared } from '../../state/sql/migrations.ts';
import { openPostgres } from '../../state/sql/postgres.ts';
import { rowPlaceholders, type SqlDatabase, type SqlStatements } from '../../state/sql/sql.ts';
import { openSqlite, openSqliteToRead } from '../../state/sql/sqlite.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import type { MemoryLimits } from './event.ts';
import { MemoryStore } from './store/memory-store.ts';
import type { MemoryWrite, WriteKind } from './store/memory-write.ts';
import { MEMORY_SCHEMA } from './store/schema.ts';
import { AS_IT_IS, type ReadEvent } from './store/sealed-events.ts';
import { putVectors, type StoredVector } from './store/vectors.ts';

export interface MemoryMoveOptions {
  readonly database: Sql;
  readonly seal: TextSeal;
  readonly limits: MemoryLimits;
  /** The file of this machine. */
  readonly path: string;
  readonly to: MoveDirection;
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

/** An event by the hash of its space. */
interface EventName {
  readonly owner: string;
  readonly id: string;
}

// Of one transaction: all of it is indexed.
const BATCH = 100;
const BATCH_BYTES = 64_000;
const PAGE = 200;
const NAMES_PAGE = 1000;
const READ_MS = 10_000;
const WRITE_MS = 20_000;
/** Milliseconds to wait for a gateway that writes. */
const BUSY_MS = 5000;
/** After so many written events the statistics of the planner are renewed, and then each time their number has doubled. */
const ANALYZE_FIRST = 1000;
/** A message names at most so many spaces. */
const MAX_NAMES = 5;

export function memoryMove(options: MemoryMoveOptions): StateMove {
  return pagedMove<MovedEvent>({
    name: 'memory',
    item: 'memory event',
    engine: 'database',
    open: (writes) => passOver(options, writes),
  });
}

async function passOver(
  options: MemoryMoveOptions,
  writes: boolean,
): Promise<MovePass<MovedEvent>> {
  const { path, to } = options;
  const toEngines = to === 'engines';
  const file = await fileSide(options, writes && !toEngines);
  const engines = await engineSide(options, writes && toEngines && file !== undefined);
  const [source, target] = toEngines ? [file, engines] : [engines, file];
  return {
    count: () => source?.count() ?? 0,
    pages: () => source?.pages() ?? [],
    standings: async (page) => (await target?.standings(page)) ?? page.map(() => 'missing'),
    async write(missing) {
      let written = 0;
      for (const batch of batchesOf(missing, BATCH, BATCH_BYTES)) {
        written += await target!.write(batch, await source!.vectors(batch), originOf(path));
      }
      return written;
    },
    finish() {
      if (source !== undefined && source.unreadable > 0) {
        throw new Error(sealedElsewhere(source.unreadable));
      }
    },
    async notes(tally) {
      if (toEngines) {
        const left = file === undefined ? [] : await leftThere(file, engines, originOf(path));
        return [...removedThere(tally), ...erasedThere(tally, 'space'), ...left];
      }
      const there = await passOver({ ...options, to: 'engines' }, false);
      return [
        ...removedHere(tally),
        ...erasedHere(tally, 'space'),
        ...(engines.unreadable > 0 ? [sealedElsewhere(engines.unreadable)] : []),
        ...(await outdatedFile(path, there)),
      ];
    },
    close: () => file?.close(),
  };
}

async function fileSide(
  { path, limits }: MemoryMoveOptions,
  writes: boolean,
): Promise<MemorySide | undefined> {
  const db = writes
    ? openSqlite(MEMORY_SCHEMA, { path, busyMs: BUSY_MS, shrinks: true })
    : openSqliteToRead(MEMORY_SCHEMA, path);
  if (db === undefined) return undefined;
  const side = new MemorySide({
    ...{ db, seal: AS_IT_IS, limits, ahead: 0 },
    has: new Set(['memory_events', 'memory_shares', 'moved_items']),
  });
  if (writes) await side.prepare();
  return side;
}

async function engineSide(
  { database, seal, limits }: MemoryMoveOptions,
  writes: boolean,
): Promise<MemorySide> {
  if (writes) {
    await erasureTables(database)();
    await prepared(database, MEMORY_SCHEMA.room, MEMORY_SCHEMA.postgres)();
    await movedItems(database)();
  }
  const has = await tablesThere(database, NAMES);
  const { least: ahead } = await clockAhead(database);
  const db = openPostgres(database, MEMORY_SCHEMA, async () => {});
  return new MemorySide({ db, seal, limits, ahead, has });
}

/** What is still in the engines of what was copied one way or the other, and removed from the file. */
async function leftThere(
  file: MemorySide,
  engines: MemorySide,
  origin: string,
): Promise<readonly string[]> {
  const left = new Set<string>();
  const names = new Set<string>();
  for (const moved of [engines.moved(origin), file.moved('')]) {
    for await (const page of moved) {
      const [here, away] = [await file.have(page), await engines.have(page)];
      for (const [key, space] of away) {
        if (here.has(key)) continue;
        left.add(key);
        if (names.size <= MAX_NAMES) names.add(printableLine(space, 100));
      }
    }
  }
  if (left.size === 0) return [];
  const told = [...names].slice(0, MAX_NAMES).join(', ');
  const more = names.size > MAX_NAMES ? ' and more' : '';
  return [
    `${left.size} that were on both sides were removed on this machine, and are still there, in ${told}${more}: delete there what must not stay.`,
  ];
}

interface MemorySideOptions {
  readonly db: SqlDatabase;
  readonly seal: TextSeal;
  readonly limits: MemoryLimits;
  /** Milliseconds that its clock is ahead of this machine's, at the least. */
  readonly ahead: number;
  /** Names of tables that are there. */
  readonly has: ReadonlySet<string>;
}

/** An event as the target has it. */
interface TargetRow extends ReadEvent {
  readonly seq: number;
  readonly space: number;
}

class MemorySide {
  readonly #options: MemorySideOptions;
  readonly #store: MemoryStore;
  #written = 0;
  #analyzeAt = ANALYZE_FIRST;
  /** Events that were sealed with a secret that is not known here. */
  unreadable = 0;
  /** Spaces by the hashes of their names. */
  #spaces: Promise<ReadonlyMap<string, { readonly id: number; readonly name: string }>> | undefined;

  constructor(options: MemorySideOptions) {
    this.#options = options;
    this.#store = new MemoryStore({ ...options, dedupeMs: 0 });
  }

  prepare(): Promise<void> {
    return this.#store.terms.prepare();
  }

  close(): void {
    this.#options.db.close();
  }

  async count(): Promise<number> {
    const { db, has } = this.#options;
    if (!has.has('memory_events')) return 0;
    const [row] = await db.query<{ n: number }>(
      'SELECT CAST(coalesce(sum(events), 0) AS bigint) AS n FROM hopgate.memory_spaces WHERE name IS NOT NULL',
      [],
      READ_MS,
    );
    return row!.n;
  }

  async *pages(): AsyncGenerator<readonly MovedEvent[]> {
    const { db, has } = this.#options;
    this.unreadable = 0;
    if (!has.has('memory_events')) return;
    type Row = TargetRow & Pick<MovedEvent, 'bytes' | 'owner'> & { readonly name: string | null };
    for (let last = 0; ; ) {
      const rows = await db.query<Row>(
        `SELECT e.seq, e.space, e.bytes, ${has.has('memory_shares') ? 'e.owner' : 'NULL AS owner'}, e.id, e.time, e.body, e.importance,
           (SELECT name FROM hopgate.memory_spaces WHERE id = e.space) AS name
         FROM hopgate.memory_events e WHERE e.seq > $1 ORDER BY e.seq LIMIT ${PAGE}`,
        [last],
        READ_MS,
      );
      const page = rows.flatMap(({ name: space, space: _, bytes, owner, ...row }) => {
        if (space === null) return [];
        const event = this.#store.sealed.opened(space, row);
        if (event === undefined) this.unreadable++;
        return event === undefined ? [] : [{ seq: row.seq, space, event, bytes, owner }];
      });
      if (page.length > 0) yield page;
      if (rows.length < PAGE) return;
      last = rows.at(-1)!.seq;
    }
  }

  /** By their rows here. */
  async vectors(events: readonly MovedEvent[]): Promise<ReadonlyMap<number, StoredVector>> {
    const { sealed, forms } = this.#store;
    const rows = await this.#options.db.query<StoredVector & { seq: number; space: number }>(
      `SELECT seq, space, model, signs, vector FROM hopgate.memory_vectors WHERE ${forms.isOneOf('seq', '$1', 'bigint')}`,
      [JSON.stringify(events.map(({ seq }) => seq))],
      READ_MS,
    );
    const opened = rows.map(({ seq, space, model, signs, vector }) => {
      const part = (name: string, bytes: Uint8Array) => sealed.openedPart(name, space, seq, bytes);
      return [seq, { model, signs: part('signs', signs), vector: part('vector', vector) }] as const;
    });
    return new Map(opened);
  }

  standings(page: readonly MovedEvent[]): Promise<readonly Standing[]> {
    const { db } = this.#options;
    const query: SqlStatements['query'] = (sql, values) => db.query(sql, values, READ_MS);
    return this.#standings({ query }, page);
  }

  async #standings(
    reader: SqlStatements,
    page: readonly MovedEvent[],
  ): Promise<readonly Standing[]> {
    const { ahead } = this.#options;
    const rows = await this.#rows(reader, page);
    const erased = await this.#erasures(reader, page);
    const moved = await this.#forms(reader, page);
    return page.map(({ space, event }) => {
      const row = rows.get(keyOf(space, event.id));
      const note = moved.get(keyOf(nameHash(space), event.id));
      const source = this.#form(space, event);
      if (row === undefined) {
        if (note !== undefined) return 'removed';
        return (erased.get(nameHash(space)) ?? 0) >= event.time + ahead ? 'erased' : 'missing';
      }
      // What cannot be opened is never taken for older.
      const opened = this.#store.sealed.opened(space, row);
      const target = opened && this.#form(space, opened);
      // Where one side is as it was moved, the other one is newer.
      if (target === source || note === source) return 'there';
      return note !== undefined && note === target ? 'missing' : 'differs';
    });
  }

  /** Equal for events that say the same; the database does not learn what that is. */
  #form(space: string, { id, time, text, source = '', tags, importance }: MemoryEvent): string {
    const form = nameHash(JSON.stringify([id, time, text, source, tags, importance]));
    return this.#options.seal.blind(form, `${space}\nmoved`);
  }

  async #rows(
    reader: SqlStatements,
    page: readonly Pick<MovedEvent, 'space' | 'event'>[],
  ): Promise<ReadonlyMap<string, TargetRow>> {
    const { forms } = this.#store;
    if (!this.#options.has.has('memory_events')) return new Map();
    const spaces = await reader.query<{ id: number; name: string }>(
      `SELECT id, name FROM hopgate.memory_spaces WHERE ${forms.isOneOf('name', '$1', 'text')}`,
      [JSON.stringify([...new Set(page.map(({ space }) => space))])],
    );
    const ids = new Map(spaces.map(({ id, name }) => [name, id]));
    const names = new Map(spaces.map(({ id, name }) => [id, name]));
    const keys = page.flatMap(({ space, event }) => {
      const place = ids.get(space);
      return place === undefined ? [] : [{ place, id: event.id }];
    });
    const rows = await this.#byKeys<TargetRow>(
      reader,
      'seq, space, id, time, body, importance',
      keys,
    );
    return new Map(rows.map((row) => [keyOf(names.get(row.space)!, row.id), row]));
  }

  async #byKeys<Row>(
    reader: SqlStatements,
    columns: string,
    keys: readonly { readonly place: number; readonly id: string }[],
  ): Promise<readonly Row[]> {
    if (keys.length === 0) return [];
    const pairs = keys.map(({ place }, at) => `(${place}, $${at + 1})`);
    return reader.query<Row>(
      `SELECT ${columns} FROM hopgate.memory_events WHERE (space, id) IN (VALUES ${pairs.join(', ')})`,
      keys.map(({ id }) => id),
    );
  }

  /** When spaces were erased, by the hashes of their names. */
  async #erasures(
    reader: SqlStatements,
    page: readonly MovedEvent[],
  ): Promise<ReadonlyMap<string, number>> {
    const { forms } = this.#store;
    const { has } = this.#options;
    const is = (column: string) => forms.isOneOf(column, '$1', 'text');
    const parts = [
      ...(has.has('memory_events')
        ? [`SELECT space, at FROM hopgate.memory_erasures WHERE ${is('space')}`]
        : []),
      ...(has.has('erasures')
        ? [`SELECT name AS space, at FROM hopgate.erasures WHERE ${is('name')}`]
        : []),
    ];
    const last = new Map<string, number>();
    if (parts.length === 0) return last;
    const hashes = [...new Set(page.map(({ space }) => space))].map(nameHash);
    const rows = await reader.query<{ space: string; at: number }>(parts.join(' UNION ALL '), [
      JSON.stringify(hashes),
    ]);
    for (const { space, at } of rows) last.set(space, Math.max(at, last.get(space) ?? 0));
    return last;
  }

  /** The forms in which a move wrote events last. */
  async #forms(
    reader: SqlStatements,
    page: readonly MovedEvent[],
  ): Promise<ReadonlyMap<string, string>> {
    if (!this.#options.has.has('moved_items')) return new Map();
    const rows = await reader.query<EventName & { form: string }>(
      `SELECT owner, id, form FROM hopgate.moved_items
         WHERE kind = 'memory' AND (owner, id) IN (VALUES ${rowPlaceholders(page.length, 2)})`,
      page.flatMap(({ space, event }) => [nameHash(space), event.id]),
    );
    return new Map(rows.map(({ owner, id, form }) => [keyOf(owner, id), form]));
  }

  /**
   * Writes events, all or none, but not what was erased or removed meanwhile.
   * @param vectors by the rows of the source
   * @returns how many were written
   * @throws EngineAway, or a GatewayError that names the limit
   */
  async write(
    given: readonly MovedEvent[],
    vectors: ReadonlyMap<number, StoredVector>,
    origin: string,
  ): Promise<number> {
    const spaces = given.map(({ space }) => space);
    const count = await this.#store.writing(
      spaces,
      async (write) => {
        const { inside } = write;
        const standings = await this.#standings(inside, given);
        const missing = given.filter((_, at) => standings[at] === 'missing');
        if (missing.length === 0) return 0;
        const there = await this.#rows(inside, missing);
        const isThere = ({ space, event }: MovedEvent) => there.has(keyOf(space, event.id));
        await this.#put(
          write,
          'add',
          missing.filter((one) => !isThere(one)),
        );
        await this.#put(write, 'change', missing.filter(isThere));
        const rows = await this.#rows(inside, missing);
        const withVectors = missing.flatMap(({ seq, space, event }) => {
          const vector = vectors.get(seq);
          const row = rows.get(keyOf(space, event.id));
          return vector === undefined || row === undefined ? [] : [[row.seq, vector] as const];
        });
        if (withVectors.length > 0) await putVectors(this.#store, inside, new Map(withVectors));
        await inside.query(
          `INSERT INTO hopgate.moved_items (kind, owner, id, form, origin) VALUES ${rowPlaceholders(missing.length, 5)}
             ON CONFLICT (kind, owner, id) DO UPDATE SET form = excluded.form`,
          missing.flatMap(({ space, event }) => [
            ...['memory', nameHash(space), event.id, this.#form(space, event), origin],
          ]),
        );
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
    await this.#options.db.query(
      'ANALYZE hopgate.memory_events, hopgate.memory_terms, hopgate.moved_items',
      [],
      WRITE_MS,
    );
  }

  /** What was moved, from a file to the database or into this file, some at a time. */
  async *moved(origin: string): AsyncGenerator<readonly EventName[]> {
    const { db, has } = this.#options;
    if (!has.has('moved_items')) return;
    const from = this.#store.isFile ? '' : 'AND origin = $3';
    for (let last: EventName = { owner: '', id: '' }; ; ) {
      const page = await db.query<EventName>(
        `SELECT owner, id FROM hopgate.moved_items
           WHERE kind = 'memory' AND (owner, id) > ($1, $2) ${from} ORDER BY owner, id LIMIT ${NAMES_PAGE}`,
        [last.owner, last.id, ...(this.#store.isFile ? [] : [origin])],
        READ_MS,
      );
      if (page.length > 0) yield page;
      if (page.length < NAMES_PAGE) return;
      last = page.at(-1)!;
    }
  }

  /** Those of these that are there, by owner and id, with the names of their spaces. */
  async have(items: readonly EventName[]): Promise<ReadonlyMap<string, string>> {
    const { db, has } = this.#options;
    if (!has.has('memory_events')) return new Map();
    this.#spaces ??= db
      .query<{ id: number; name: string }>(
        'SELECT id, name FROM hopgate.memory_spaces WHERE name IS NOT NULL',
        [],
        READ_MS,
      )
      .then((all) => new Map(all.map((one) => [nameHash(one.name), one])));
    const spaces = await this.#spaces;
    const names = new Map([...spaces].map(([owner, { id, name }]) => [id, { owner, name }]));
    const keys = items.flatMap(({ owner, id }) => {
      const space = spaces.get(owner);
      return space === undefined ? [] : [{ place: space.id, id }];
    });
    const query: SqlStatements['query'] = (sql, values) => db.query(sql, values, READ_MS);
    const rows = await this.#byKeys<{ space: number; id: string }>({ query }, 'space, id', keys);
    return new Map(
      rows.map(({ space, id }) => {
        const { owner, name } = names.get(space)!;
        return [keyOf(owner, id), name];
      }),
    );
  }
}

const NAMES = ['memory_events', 'memory_shares', 'moved_items', 'erasures'];

const keyOf = (space: string, id: string): string => `${space}\n${id}`;

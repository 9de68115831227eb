/** Moves the memory between the file of a machine and the database of all replicas. */

import type { MemoryEvent } from '../../conversation/memory.ts';
import { printableLine } from '../../lib/text/printable-text.ts';
import { ERASURES_LOCK, nameHash } from '../../state/erasures.ts';
import {
  batchesOf,
  clockAhead,
  leftOut,
  type MovePass,
  originOf,
  outdatedFile,
  pagedMove,
  type StateMove,
  sealedElsewhere,
  type TargetState,
} from '../../state/move/paged-move.ts';
import {
  erasuresOf,
  keyOf,
  leftThere,
  notesOf,
  openMoved,
  pagesOf,
  type RowKey,
  type Side,
  type TableMoveOptions,
} from '../../state/move/table-move.ts';
import { rowPlaceholders, type SqlStatements } from '../../state/sql/sql.ts';
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

// One transaction has few events and bytes, since all of them are indexed.
const BATCH = 100;
const BATCH_BYTES = 64_000;
const READ_MS = 10_000;
const WRITE_MS = 20_000;
/** Written events after which the statistics of the planner are renewed; then each time their number has doubled. */
const ANALYZE_FIRST = 1000;
/** Spaces that a message names. */
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
  const { path, to, limits } = options;
  const toEngines = to === 'engines';
  const { least } = await clockAhead(options.database);
  const sides = await openMoved(MEMORY_SCHEMA, options, writes, { shrinks: true });
  const file = sides.file && new MemorySide({ side: sides.file, seal: UNSEALED, limits, ahead: 0 });
  const { seal } = options;
  const engines = new MemorySide({ side: sides.database, seal, limits, ahead: least });
  const [source, target] = toEngines ? [file, engines] : [engines, file];
  if (writes) await target?.prepare();
  return {
    count: () => source?.count() ?? 0,
    pages: () => source?.pages() ?? [],
    states: async (page) => (await target?.states(page)) ?? page.map(() => 'missing'),
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
        const left = file && (await leftThere(file, engines, originOf(path)));
        return [...leftOut(tally, 'there', 'space'), ...(left === undefined ? [] : toldLeft(left))];
      }
      const there = await passOver({ ...options, to: 'engines' }, false);
      return [
        ...leftOut(tally, 'on this machine', 'space'),
        ...(engines.unreadable > 0 ? [sealedElsewhere(engines.unreadable)] : []),
        ...(await outdatedFile(path, there)),
      ];
    },
    close: () => sides.close(),
  };
}

/** @param left the names of the spaces of these events */
function toldLeft(left: ReadonlyMap<string, string>): readonly string[] {
  if (left.size === 0) return [];
  const names = [...new Set(left.values())].map((name) => printableLine(name, 100));
  const told = names.slice(0, MAX_NAMES).join(', ') + (names.length > MAX_NAMES ? ' and more' : '');
  return [
    `${left.size} that were on both sides were removed on this machine, and are still there, in ${told}: delete there what must not stay.`,
  ];
}

interface MemorySideOptions {
  readonly side: Side;
  readonly seal: TextSeal;
  readonly limits: MemoryLimits;
  /** Milliseconds that its clock is ahead of this machine's, at the least. */
  readonly ahead: number;
}

interface TargetRow extends ReadEvent {
  readonly seq: number;
  readonly space: number;
}

class MemorySide {
  readonly #store: MemoryStore;
  readonly #reader: SqlStatements;
  #written = 0;
  #analyzeAt = ANALYZE_FIRST;
  /** Events that were sealed with a secret that is not known here. */
  unreadable = 0;
  /** Spaces by the hashes of their names. */
  #spaces: Promise<ReadonlyMap<string, { readonly id: number; readonly name: string }>> | undefined;

  constructor(private readonly options: MemorySideOptions) {
    const { side, seal, limits } = options;
    this.#store = new MemoryStore({ db: side.db, seal, limits, dedupeMs: 0 });
    this.#reader = { query: (sql, values) => side.db.query(sql, values, READ_MS) };
  }

  #has(table: string): boolean {
    return this.options.side.has.has(table);
  }

  prepare(): Promise<void> | undefined {
    return this.#store.terms.prepare?.();
  }

  async count(): Promise<number> {
    if (!this.#has('memory_events')) return 0;
    const [row] = await this.#reader.query<{ n: number }>(
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
    for await (const rows of pagesOf<Row>(this.options.side, sql, ['seq'])) {
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
  async vectors(events: readonly MovedEvent[]): Promise<ReadonlyMap<number, StoredVector>> {
    const { sealed, forms } = this.#store;
    const rows = await this.#reader.query<StoredVector & { seq: number; space: number }>(
      `SELECT seq, space, model, signs, vector FROM hopgate.memory_vectors WHERE ${forms.isOneOf('seq', '$1', 'bigint')}`,
      [JSON.stringify(events.map(({ seq }) => seq))],
    );
    const opened = rows.map(({ seq, space, model, signs, vector }) => {
      const part = (name: string, bytes: Uint8Array) => sealed.openedPart(name, space, seq, bytes);
      return [seq, { model, signs: part('signs', signs), vector: part('vector', vector) }] as const;
    });
    return new Map(opened);
  }

  states(page: readonly MovedEvent[]): Promise<readonly TargetState[]> {
    return this.#states(this.#reader, page);
  }

  async #states(
    reader: SqlStatements,
    page: readonly MovedEvent[],
  ): Promise<readonly TargetState[]> {
    const { ahead } = this.options;
    const rows = await this.#rows(reader, page);
    const hashed = page.map(({ space, event }) => ({ owner: nameHash(space), id: event.id }));
    const spaces = hashed.map(({ owner }) => owner);
    const erased = await erasuresOf(this.options.side, reader, 'memory_erasures', spaces);
    const moved = await notesOf(this.options.side, reader, 'memory', hashed);
    return page.map(({ space, event }) => {
      const row = rows.get(keyOf({ owner: space, id: event.id }));
      const note = moved.get(keyOf({ owner: nameHash(space), id: event.id }))?.form;
      const source = this.#form(space, event);
      if (row === undefined) {
        if (note !== undefined) return 'removed';
        return (erased.get(nameHash(space)) ?? 0) >= event.time + ahead ? 'erased' : 'missing';
      }
      // An event that cannot be opened is never taken for older.
      const opened = this.#store.sealed.opened(space, row);
      const target = opened && this.#form(space, opened);
      // The other side is newer where one side is as it was moved.
      if (target === source || note === source) return 'there';
      return note !== undefined && note === target ? 'missing' : 'differs';
    });
  }

  /** Equal for events that say the same; the database does not learn what that is. */
  #form(space: string, { id, time, text, source = '', tags, importance }: MemoryEvent): string {
    const form = nameHash(JSON.stringify([id, time, text, source, tags, importance]));
    return this.options.seal.blind(form, `${space}\nmoved`);
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
        const states = await this.#states(inside, given);
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
    await this.options.side.db.query(
      'ANALYZE hopgate.memory_events, hopgate.memory_terms, hopgate.moved_items',
      [],
      WRITE_MS,
    );
  }

  /** In a file: all that were moved. */
  async *moved(origin: string): AsyncGenerator<readonly RowKey[]> {
    if (!this.#has('moved_items')) return;
    const sql = "SELECT owner, id FROM hopgate.moved_items WHERE kind = 'memory'";
    const [ofOrigin, values] = this.#store.isFile ? ['', []] : [' AND origin = $1', [origin]];
    yield* pagesOf<RowKey>(this.options.side, sql + ofOrigin, ['owner', 'id'], values);
  }

  /** The names of the spaces of the events that are there, by owner and id. */
  async have(items: readonly RowKey[]): Promise<ReadonlyMap<string, string>> {
    if (!this.#has('memory_events')) return new Map();
    this.#spaces ??= this.#reader
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
    const rows = await this.#byKeys<{ space: number; id: string }>(this.#reader, 'space, id', keys);
    return new Map(
      rows.map(({ space, id }) => {
        const { owner, name } = names.get(space)!;
        return [keyOf({ owner, id }), name];
      }),
    );
  }
}

/** The memory that hopgate keeps itself: in a file of this machine, or in the Postgres of all replicas. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { MemoryEvent, RecalledEvent, RecallQuery } from '../../../conversation/memory.ts';
import { within } from '../../../lib/loop/abort.ts';
import { batchesOf } from '../../../lib/loop/batches.ts';
import { preciseNow } from '../../../lib/loop/precise-time.ts';
import { othersTurn } from '../../../lib/loop/steps.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { EngineAway, type Sql } from '../../../state/engines/engine.ts';
import { nameHash } from '../../../state/erasures.ts';
import { prepared } from '../../../state/sql/migrations.ts';
import { openPostgres } from '../../../state/sql/postgres.ts';
import type { SqlDatabase } from '../../../state/sql/sql.ts';
import { openSqlite } from '../../../state/sql/sqlite.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import { fileAt, isDamage, setAside } from '../../../state/versioned-store.ts';
import type { EventStore, MemoryBackend, MemoryObserver, RecallKind } from '../backend.ts';
import { CaptureQueue } from '../capture-queue.ts';
import {
  type CheckedEvent,
  checkEvent,
  checkSpace,
  clampedEvents,
  DEFAULT_RECALL,
  eventTurn,
  indexedText,
  type MemoryLimits,
  shortened,
} from '../event.ts';
import { type BackFill, backFill } from './back-fill.ts';
import type { Embedder } from './embedder.ts';
import { type CapturedEvent, MemoryStore } from './memory-store.ts';
import { recallFrom } from './recall.ts';
import { MEMORY_SCHEMA } from './schema.ts';
import { UNSEALED, withId } from './sealed-events.ts';
import { Vectors } from './vectors.ts';

export interface OwnMemoryOptions {
  readonly limits: MemoryLimits;
  readonly dedupeMs: number;
  readonly embedder?: Embedder | undefined;
  readonly observer: MemoryObserver;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Milliseconds between a removal and the rewriting of the index without it. */
const TIDY_AFTER = 2000;
/** Milliseconds between the first use and the look for erasures that another process left unfinished. */
const SWEEP_AFTER = 1000;
/** Milliseconds that a reader waits for what its own replica has captured and not written. */
const FLUSH_MS = 500;
/** Milliseconds between the steps of an erasure, also while another replica takes them. */
const SWEEP_PAUSE = 5;

type Timer = ReturnType<typeof setTimeout>;

/** A key as tables name it; undefined where there are no keys. */
const ownerOf = (key: string | undefined): string | undefined =>
  key === undefined || key === '' ? undefined : nameHash(key);

/** The tables of a memory in use. */
interface Opened {
  readonly store: MemoryStore;
  readonly vectors: Vectors;
  readonly backFiller: BackFill | undefined;
}

/** @param path made 0600, its directory 0700; opened when it is first needed */
export const embeddedMemory = ({
  path,
  ...options
}: OwnMemoryOptions & { readonly path: string }): MemoryBackend => ownMemory(inFile(path), options);

export const databaseMemory = ({
  database,
  seal,
  ...options
}: OwnMemoryOptions & { readonly database: Sql; readonly seal: TextSeal }): MemoryBackend =>
  ownMemory(inDatabase(database, seal), options);

/** The tables of this process: opened by the first use, and again after damage. */
class TablesInUse {
  isClosed = false;
  /** The one of the tables that were opened last. */
  backFill: BackFill | undefined;
  #opening: Promise<Opened> | undefined;
  #upkeep: { readonly work: () => Promise<void>; readonly timer: Timer } | undefined;

  constructor(
    private readonly tables: MemoryTables,
    private readonly options: OwnMemoryOptions,
  ) {}

  /** Uses the tables. Their errors become errors for the client without internal details. */
  async using<T>(use: (opened: Opened) => Promise<T>): Promise<T> {
    let inUse: Opened | undefined;
    try {
      inUse = await this.#opened();
      return await use(inUse);
    } catch (thrown) {
      if (thrown instanceof GatewayError) throw thrown;
      if (this.isClosed) throw overloaded('The memory is closing.', thrown);
      // The engine itself reports, once, that it is away.
      if (thrown instanceof EngineAway) {
        throw overloaded('The memory cannot be reached; try again.', thrown);
      }
      this.options.observer.problem(messageOf(thrown));
      if (inUse !== undefined && isDamage(thrown)) await this.#closeDamaged(inUse, thrown);
      throw BUSY.test(String((thrown as { code?: unknown }).code))
        ? overloaded('The memory is busy; try again.', thrown)
        : new GatewayError('internal', 'The memory cannot be used.', { cause: thrown });
    }
  }

  /** Rewrites a file without removed data a moment later, for many removals at once. */
  tidySoon({ isFile }: MemoryStore): void {
    if (isFile) this.#later(TIDY_AFTER, () => this.using(({ store }) => sweepUp(store)));
  }

  async lastWrite(): Promise<void> {
    const inUse = await this.#opening?.catch(() => undefined);
    await inUse?.store.waitForLastWrite();
  }

  async close(): Promise<void> {
    clearTimeout(this.#upkeep?.timer);
    // A database is cleaned up by other replicas.
    if (this.tables.isFile) await this.#upkeep?.work().catch(() => {});
    this.isClosed = true;
    const last = await this.#opening?.catch(() => undefined);
    await last?.backFiller?.close();
    last?.store.db.close();
  }

  #opened(): Promise<Opened> {
    if (this.isClosed) throw overloaded('The memory is closing.');
    this.#opening ??= this.#open().catch((thrown: unknown) => {
      this.#opening = undefined;
      throw thrown;
    });
    return this.#opening;
  }

  async #open(): Promise<Opened> {
    const { limits, dedupeMs, embedder, observer } = this.options;
    const store = new MemoryStore({ ...this.tables.open(), limits, dedupeMs });
    try {
      await store.terms.prepare?.();
    } catch (thrown) {
      store.db.close();
      throw thrown;
    }
    // A process that ended while it erased a space, or made vectors, left the rest to others.
    this.#later(SWEEP_AFTER, async () => {
      if (!(await store.isSwept())) await sweepUp(store);
    });
    const vectors = new Vectors(store);
    const backFiller =
      embedder &&
      backFill({
        work: vectors,
        embedder,
        onFailure: (thrown) => {
          if (!(thrown instanceof EngineAway)) observer.embeddingsFailed(messageOf(thrown));
        },
      });
    backFiller?.wake();
    this.backFill = backFiller;
    return { store, vectors, backFiller };
  }

  /** Does the work later, in place of other work that waits. */
  #later(ms: number, work: () => Promise<void>): void {
    clearTimeout(this.#upkeep?.timer);
    const timer = setTimeout(() => {
      this.#upkeep = undefined;
      void work().catch(() => {});
    }, ms).unref();
    this.#upkeep = { work, timer };
  }

  /** Moves a damaged file away without deleting it; the next use creates a new one. */
  async #closeDamaged({ store, backFiller }: Opened, cause: unknown): Promise<void> {
    if ((await this.#opening)?.store !== store) return;
    this.#opening = undefined;
    void backFiller?.close();
    store.db.close();
    this.tables.setAside(cause);
  }
}

function ownMemory(tables: MemoryTables, options: OwnMemoryOptions): MemoryBackend {
  const { limits, embedder, observer, now = Date.now } = options;
  const inUse = new TablesInUse(tables, options);
  const using: TablesInUse['using'] = (use) => inUse.using(use);

  const queue = new CaptureQueue<CapturedEvent>({
    sizeOf: ({ event }) => 200 + event.text.length * 2,
    onDropped: (count) => observer.captured('dropped', count),
    // `using` has reported it.
    onTrouble: () => {},
    async write(items) {
      const outcomes = await using(async ({ store, backFiller }) => {
        const all = await store.capture(items);
        if (all.includes('stored')) backFiller?.wake();
        return all;
      });
      for (const outcome of ['stored', 'duplicate', 'full', 'erased'] as const) {
        observer.captured(outcome, outcomes.filter((one) => one === outcome).length);
      }
    },
  });
  /** Writes the events that this process captured, so that they are found; a late write to another machine is not awaited. */
  async function ownWrites(): Promise<void> {
    if (queue.waiting === 0) return;
    await Promise.race([queue.flush(), ...(tables.isFile ? [] : [Bun.sleep(FLUSH_MS)])]);
  }
  /** Reads, after the events that this process captured are written. */
  async function read<T>(use: (store: MemoryStore) => Promise<T>): Promise<T> {
    await ownWrites();
    return using(({ store }) => use(store));
  }

  const add = (space: string, events: readonly CheckedEvent[], key: string | undefined) =>
    using(async ({ store, backFiller }) => {
      const added = await store.add(space, events, ownerOf(key));
      backFiller?.wake();
      return added;
    });
  const checkedEvents = (...[space, events, paramOf]: Parameters<EventStore['add']>) => {
    checkSpace(space);
    const time = now();
    return events.map((event, at) => checkEvent(event, limits, time, paramOf(at)));
  };
  const eventStore: EventStore = {
    add: async (space, events, paramOf, key) =>
      add(space, checkedEvents(space, events, paramOf), key),
    addInSteps: async (space, events, paramOf, key) =>
      inSteps(
        checkedEvents(space, events, paramOf),
        (step) => add(space, step, key),
        (id) => using(({ store }) => store.remove(space, id)),
      ),
    async change(space, id, fields, key) {
      checkSpace(space);
      await ownWrites();
      return using(async ({ store, backFiller }) => {
        const old = await store.get(space, id);
        if (old === undefined) return undefined;
        const event = checkEvent({ ...old, ...fields }, limits, now());
        const changed = await store.change(space, { ...event, id }, ownerOf(key));
        inUse.tidySoon(store);
        backFiller?.wake();
        return changed;
      });
    },
    settled: () => queue.flush(),
    spaces: (after, limit) => read((store) => store.spaces(after, limit, embedder?.name)),
    get: (space, id) => read((store) => store.get(checkSpace(space), id)),
    list: (space, query) => read((store) => store.list(checkSpace(space), query)),
    remove: (space, id) =>
      read(async (store) => {
        const removed = await store.remove(checkSpace(space), id);
        if (removed) inUse.tidySoon(store);
        return removed;
      }),
  };

  async function recall(name: string, query: RecallQuery): Promise<readonly RecalledEvent[]> {
    const { speaker } = query;
    const began = performance.now();
    let kind: RecallKind = 'failed';
    try {
      checkSpace(name);
      await ownWrites();
      const limit = query.limit ?? DEFAULT_RECALL;
      if (limit <= 0 || (await using(({ store }) => store.lacks(name)))) {
        kind = 'text';
        return [];
      }
      const text = shortened(query.query);
      const vector = await embedder?.embedQuery(text, query.signal, query.payer);
      const given = { space: name, query: { ...query, query: text }, speaker, limit, now: now() };
      const found = await using(({ store, vectors }) =>
        recallFrom(store, vectors, { ...given, vector: vector && [vector, embedder!.name] }),
      );
      kind = vector !== undefined ? 'hybrid' : embedder === undefined ? 'text' : 'fallback';
      return found;
    } finally {
      observer.recalled(kind, performance.now() - began);
    }
  }

  return {
    eventStore,
    recall,
    vectors: () => embedder && (inUse.backFill?.status() ?? { refused: 0, failure: null }),
    async capture(space, events, began = preciseNow(), turn, key) {
      checkSpace(space);
      if (inUse.isClosed) throw overloaded('The memory is closing.');
      const clamped = events.flatMap((event) => clampedEvents(event, limits, now()));
      const own = turn && eventTurn(turn, clamped);
      const rest = { space, began, ...(own && { turn: own }), owner: ownerOf(key) };
      queue.add(clamped.map((event) => ({ event: withId(event), ...rest })));
    },
    async erase(space) {
      checkSpace(space);
      const waiting = await queue.remove((one) => one.space === space);
      return using(async ({ store, vectors }) => {
        const gone = await store.erase(space);
        vectors.drop(space);
        await sweepUp(store);
        return (gone?.events ?? 0) + waiting;
      });
    },
    async close() {
      if (inUse.isClosed) return;
      await inUse.lastWrite();
      await queue.close();
      await inUse.close();
    },
  };
}

/** Codes of SQLite and Postgres for a lock that another process has. */
const BUSY = /BUSY|LOCKED|55P03/;
const overloaded = (message: string, cause?: unknown) =>
  new GatewayError('overloaded', message, { cause });

/** Removes erased spaces in short steps, then every trace of removed data in a file. */
async function sweepUp(store: MemoryStore): Promise<void> {
  const { terms, isFile } = store;
  const pause = () => (isFile ? othersTurn() : Bun.sleep(SWEEP_PAUSE));
  for (let isSwept = false; !isSwept; isSwept = await store.isSwept()) {
    while (await store.sweep()) await pause();
    for (let first = true; await terms.tidy?.(first); first = false) await pause();
    await pause();
  }
  while (await terms.vacuum?.()) await pause();
  for (let tries = 0; tries < 20; tries++) {
    if (!(await terms.flush?.())) return;
    await Bun.sleep(50);
  }
}

export interface MemoryTables {
  readonly isFile: boolean;
  /** @throws SQLiteError, or an Error where a newer version made the file */
  open(): { readonly db: SqlDatabase; readonly seal: TextSeal };
  /** A damaged file, which is closed, is moved away. */
  setAside(cause: unknown): void;
}

/** Milliseconds in which the tables of a database must be ready. */
const PREPARE_MS = 2000;

/** @param path made 0600, its directory 0700 */
export function inFile(path: string): MemoryTables {
  let file = 0;
  return {
    isFile: true,
    open() {
      const db = openSqlite(MEMORY_SCHEMA, { path, shrinks: true });
      file = fileAt(path);
      return { db, seal: UNSEALED };
    },
    setAside: (cause) => setAside(path, file, cause),
  };
}

export function inDatabase(database: Sql, seal: TextSeal): MemoryTables {
  const { room, postgres } = MEMORY_SCHEMA;
  const prepare = prepared(database, room, postgres);
  const late = () => {
    throw new EngineAway('database', `no tables within ${PREPARE_MS} ms`);
  };
  // Work that takes longer serves the next call.
  const db = openPostgres(database, MEMORY_SCHEMA, () => within(PREPARE_MS, prepare(), late));
  return { isFile: false, open: () => ({ db, seal }), setAside() {} };
}

type Added = readonly (readonly [MemoryEvent, boolean])[];

/** Characters that are added in one step: all of them are indexed. */
const STEP_CHARACTERS = 4000;
/** Characters that an event counts as beside its own: each takes time. */
const EVENT_CHARACTERS = 100;

/** Adds the events; where a step fails, the events of the steps before it are removed. */
export async function inSteps(
  events: readonly CheckedEvent[],
  add: (step: readonly CheckedEvent[]) => Promise<Added>,
  remove: (id: string) => Promise<unknown>,
): Promise<Added> {
  const added: (readonly [MemoryEvent, boolean])[] = [];
  try {
    const sizeOf = (one: CheckedEvent) => EVENT_CHARACTERS + indexedText(one).length;
    for (const step of batchesOf(events, events.length, STEP_CHARACTERS, sizeOf)) {
      if (added.length > 0) await othersTurn();
      added.push(...(await add(step)));
    }
  } catch (thrown) {
    for (const [{ id }, isNew] of added) if (isNew) await remove(id);
    throw thrown;
  }
  return added;
}

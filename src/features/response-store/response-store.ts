/**
 * The store of responses. A request fetches all that it names ahead, in one trip to the cache and one to the database.
 * Responses are written after their requests, and wait in a file while the database is away.
 */

import { within } from '../../lib/loop/abort.ts';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import { othersTurn } from '../../lib/loop/steps.ts';
import { EngineAway, type KeyValue } from '../../state/engines/engine.ts';
import { nameHash, RecentErasures } from '../../state/erasures.ts';
import type { SqlDatabase } from '../../state/sql/sql.ts';
import { AS_IT_IS, type TextSeal } from '../../state/text-seal.ts';
import { fileAt, isPassing, REMOVED } from '../../state/versioned-store.ts';
import { type CachedRows, ResponseCache } from './response-cache.ts';
import { ResponseQueue, WaitingResponses } from './response-queue.ts';
import { FoundResponses, ResponseReads, responsesAway } from './response-reads.ts';
import { type Named, ResponseTables } from './response-tables.ts';
import {
  DEFAULT_LIMITS,
  type FoundResponse,
  isUsable,
  openRow,
  QueuedResponse,
  type ResponseLimits,
  type ResponseRow,
  ResponseThreads,
  type RowKey,
  type StoredResponse,
} from './stored-response.ts';

export interface ResponseStoreOptions {
  /** Left out: in memory alone. May throw where a file cannot be used: then responses are in memory, too. */
  readonly database?: () => SqlDatabase;
  /** For messages. */
  readonly name?: string;
  /** The file of the database; left out: it is elsewhere. */
  readonly path?: string;
  /** Others read and write the same database, and find at once what an answer has ended with. */
  readonly others?: boolean;
  readonly cache?: KeyValue | undefined;
  /** Milliseconds since the database came back; left out, or undefined: it has never been away, or is. */
  readonly backMs?: () => number | undefined;
  /** Seals texts that leave this machine. */
  readonly seal?: TextSeal;
  /** The file for rows that wait while the database is away; by default they wait in memory. */
  readonly waitingPath?: string;
  /** The file of an older version, which is taken over. */
  readonly oldSpoolPath?: string;
  readonly limits?: Partial<ResponseLimits>;
  /** Milliseconds between a change and its write. */
  readonly flushMs?: number;
  /** An answer went out before the others can find its response. */
  readonly onLate?: () => void;
  /** Responses were lost: they could be stored nowhere. */
  readonly onDropped?: (count: number) => void;
  /** Called once for each kind of problem. */
  readonly warn?: (message: string, cause?: unknown) => void;
}

/** Milliseconds that an answer waits at most for others to find its response. */
const SENT_MS = 50;
const FLUSH_MS = 100;
const RETRY_MS = 1000;
/** Rows of one write. */
const MANY = 64;
/**
 * Another process may be about to write what it has made, on a busy machine late: of this machine, too, since the
 * one before goes on beside its successor.
 */
const LOOK_AGAIN_MS = [30, 100, 300];
/** A server that restarts, or hands over to another one, is often back within a second. */
const LOOK_WHEN_AWAY_MS = [100, 300, 600];
/** In which others write what they held while the database was away. */
const LATE_WRITES_MS = 10_000;
const PRUNE_MS = 60_000;
/** After more writes than this, rows beyond the limits are removed at once. */
const MAX_UNPRUNED = { rows: 1000, bytes: 50 * 2 ** 20 };
const CLOSE_MS = 3000;
/** The last write to a file waits so long for another process that writes. */
const LAST_MS = 5000;
/** Tries of an operation that must succeed, where other processes block the database. */
const MAX_TRIES = 10;
const AGAIN_MS = 100;
/** Times that a response is looked for which the cache has, and the database has not yet. */
const CHANGE_LOOKS = 5;
const MAX_OWED = 10_000;

const NOTHING_CACHED: CachedRows = { rows: new Map(), isGone: () => false };

export class ResponseStore {
  readonly #limits: ResponseLimits;
  readonly #seal: TextSeal;
  readonly #cache: ResponseCache | undefined;
  readonly #queue: ResponseQueue;
  #openDatabase: (() => SqlDatabase) | undefined;
  #openAt = 0;
  #opened: ResponseTables | undefined;
  /** As of {@link fileAt}. */
  #file = 0;
  readonly #waiting: WaitingResponses;
  readonly #threads = new ResponseThreads();
  /** Conversations that were continued and not written since. */
  readonly #touched = new Set<string>();
  /** By the hashes of the spaces. */
  readonly #erasures = new RecentErasures();
  /** Messages that the cache did not take. */
  readonly #owed: ((cache: ResponseCache) => Promise<void>)[] = [];
  readonly #told = new Set<string>();
  readonly #unpruned = { rows: 0, bytes: 0 };
  /** A write is under way, or has failed. */
  #isBehind = false;
  #flushing: Promise<void> = Promise.resolve();
  #waitingFlush: Promise<void> | undefined;
  #sent: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #flushAt = Number.POSITIVE_INFINITY;
  #upkeep: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(private readonly options: ResponseStoreOptions) {
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#seal = options.seal ?? AS_IT_IS;
    this.#cache = options.cache && new ResponseCache(options.cache);
    this.#queue = new ResponseQueue(this.#limits);
    this.#openDatabase = options.database;
    this.#waiting = new WaitingResponses({
      path: options.waitingPath,
      oldPath: options.oldSpoolPath,
      onProblem: (what, cause) => this.#problem(what, cause),
    });
  }

  /** Opens the database, and takes over the rows that an earlier process could not write. Never throws. */
  open(): void {
    if (this.#upkeep !== undefined || this.#closed) return;
    this.#upkeep = setInterval(() => void this.prune(PRUNE_MS), PRUNE_MS).unref();
    this.#tables();
    if (this.#waiting.isThere && this.#waiting.open()) this.#schedule(0);
  }

  /** False: in memory only. */
  get persistent(): boolean {
    return this.#tables() !== undefined;
  }

  /** Queues the row, which replaces the owner's row of the same id. It can be fetched at once. */
  put(stored: StoredResponse): void {
    this.open();
    const { owner, id, previous, space = '' } = stored;
    const began = stored.began ?? preciseNow();
    if (this.#closed || this.#erasures.hasSince(space, began)) return;
    const isForeign = !isUsable(id) || (previous !== undefined && !isUsable(previous));
    if (isForeign && this.#tables()?.form === 'database') {
      this.#dropped(1);
      return;
    }
    const thread = this.#threads.of({ owner, id, previous });
    const queued = new QueuedResponse({ ...stored, began }, thread, this.#seal);
    this.#threads.learn(queued);
    this.#queue.add(queued);
    // Sizes are summed up now and then only.
    const looks = this.#queue.isFull || this.#queue.size % MANY === 0;
    if (this.#isBehind && looks) this.#trim();
    this.#schedule(this.#queue.size >= MANY ? 0 : (this.options.flushMs ?? FLUSH_MS));
    if (this.options.others) this.#sent = this.#send(queued);
  }

  /** Resolves when other processes can find the last response, or after 50 ms. Undefined: there are no others. */
  sent(): Promise<void> | undefined {
    const sending = this.#sent;
    this.#sent = undefined;
    return sending && within(SENT_MS, sending, () => this.options.onLate?.());
  }

  /**
   * Fetches the responses and items that a request names.
   * @param owner as of `ownerOf`; another owner's responses do not exist
   * @param lenient a response that cannot be looked up now counts as unknown
   */
  async fetch(
    { responses = [], chains = false, items = [] }: Partial<Named>,
    owner: string,
    lenient = false,
  ): Promise<ResponseReads> {
    const named: Named = { responses, chains, items };
    let found: FoundResponses | undefined;
    if (responses.length > 0 || items.length > 0) {
      found = await this.#look(named, owner);
      for (const wait of lenient ? [] : LOOK_WHEN_AWAY_MS) {
        if (this.#tables() === undefined || !found.isAway || !found.isIncomplete) break;
        await Bun.sleep(wait);
        found = await this.#look(named, owner);
      }
      for (const wait of LOOK_AGAIN_MS) {
        if (this.#tables() === undefined || found.isCut || !found.mayCome) break;
        await Bun.sleep(wait);
        found = await this.#look(named, owner);
      }
      found.isAway ||= found.mayCome && this.#lateWrites;
    }
    for (const row of found?.rows.values() ?? []) this.#threads.learn(row);
    return new ResponseReads({
      owner,
      rows: found?.rows ?? new Map(),
      items: found?.items ?? new Map(),
      seal: this.#seal,
      isAway: found?.isAway === true && !lenient,
      isCut: found?.isCut === true,
      onContinued: ({ thread }) => {
        this.#touched.add(thread);
        this.#schedule(this.options.flushMs ?? FLUSH_MS);
      },
      onUnreadable: () =>
        this.#problem('a stored response cannot be read: damaged, or sealed with another secret'),
    });
  }

  /**
   * Changes one response as all processes and replicas see it: of two changes, the second sees what the first has made.
   * False: there is none, or nothing to change.
   * @param make gives the row that takes its place, or undefined; may be called more than once
   * @throws GatewayError 503 where the database is away
   */
  async change(
    id: string,
    owner: string,
    make: (row: StoredResponse) => StoredResponse | undefined,
  ): Promise<boolean> {
    const changed = (row: FoundResponse): QueuedResponse | undefined => {
      const opened = openRow(row, this.#seal);
      const next = opened && make(opened);
      return next && new QueuedResponse({ ...next, began: row.began }, row.thread, this.#seal);
    };
    await this.#flushNow();
    for (let looks = CHANGE_LOOKS; looks > 0; looks--) {
      const tables = this.#tables();
      if (tables === undefined) return this.#changeHere({ owner, id }, changed);
      const next = await this.#certainly(() =>
        tables.change({ owner, id }, (row) => changed(row)?.row),
      );
      if (next === 'same') return false;
      if (next !== undefined) {
        const row = this.#here(next);
        this.#threads.learn(row);
        // Of two changes, the cache may hear of the second one first.
        await this.#tell((cache) => cache.forget([row]));
        return true;
      }
      if (!this.options.others) return false;
      // The process that made it is about to write it.
      await Bun.sleep(FLUSH_MS);
    }
    throw responsesAway();
  }

  #changeHere(key: RowKey, make: (row: FoundResponse) => QueuedResponse | undefined): boolean {
    const row = this.#queue.get(key);
    const next = row && make(row);
    if (next !== undefined) this.#queue.add(next);
    return next !== undefined;
  }

  /** Everywhere. False: there is none. @throws GatewayError 503: it is not certain that it is deleted */
  async delete(id: string, owner: string): Promise<boolean> {
    const reads = await this.fetch({ responses: [id] }, owner);
    if (reads.known(id, owner) === undefined) return false;
    const key = { owner, id };
    await this.#certainly(async () => this.#tables()?.remove(key));
    this.#queue.remove(key);
    await this.#waiting.use((file) => file.forget([key]));
    await this.#tell((cache) => cache.remove([key]));
    return true;
  }

  /** Deletes every response made with this memory space. @throws as {@link forgetSpace} */
  eraseSpace(space: string): Promise<void> {
    return this.forgetSpace(nameHash(space));
  }

  /**
   * Deletes them by the hash of its name, everywhere: other processes do not write those that they still hold.
   * @param at as of `instant`: responses begun later stay; by default now
   * @throws GatewayError 503: the database did not take it; the cache and this process did
   */
  async forgetSpace(hash: string, at?: number): Promise<void> {
    const local = at ?? preciseNow();
    this.#erasures.add(hash, local);
    this.#queue.erase(hash, local);
    const tables = this.#tables();
    if (tables === undefined) return;
    await this.#tell((cache) => cache.erase(hash, tables.timeOf(local)));
    await this.#waiting.use((file) => file.erase(hash, local));
    const { at: until, rows } = await this.#certainly(() => tables.erase(hash, at));
    // It may have come meanwhile.
    this.#queue.erase(hash, local);
    await this.#waiting.use((file) => file.erase(hash, local));
    await this.#tell(async (cache) => {
      await cache.erase(hash, until);
      await cache.remove(rows);
    });
  }

  /** Resolves when the rows that are queued now are written, or cannot be written now. */
  flush(): Promise<void> {
    return this.#flushNow();
  }

  /** Resolves when all rows are written, to the database or to the file of waiting ones. */
  async close(): Promise<void> {
    if (this.#closed) return;
    clearInterval(this.#upkeep);
    clearTimeout(this.#timer);
    if (this.#opened === undefined && this.#queue.size === 0) {
      this.#closed = true;
      return;
    }
    const end = performance.now() + LAST_MS;
    await Promise.race([this.#flushNow(), Bun.sleep(CLOSE_MS)]);
    // Another process writes: that ends.
    while (this.#queue.size > 0 && this.#tables()?.form === 'file' && performance.now() < end) {
      await Bun.sleep(AGAIN_MS);
      await this.#flushNow();
    }
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#spill();
    this.#waiting.close();
    this.#opened?.close();
  }

  /** Removes rows beyond the limits, unless another process did so within this time. */
  async prune(everyMs: number): Promise<void> {
    this.#unpruned.rows = 0;
    this.#unpruned.bytes = 0;
    try {
      const rows = await this.#tables()?.prune(this.#limits, everyMs);
      if (rows !== undefined && rows.length > 0) await this.#tell((cache) => cache.remove(rows));
    } catch (thrown) {
      this.#failed('cannot remove old responses', thrown);
    }
  }

  /** SQLite goes on in a removed file, which is lost with the process. */
  #leaveRemoved(): void {
    const { path } = this.options;
    if (path === undefined || this.#opened === undefined || fileAt(path) === this.#file) return;
    this.#opened.close();
    this.#opened = undefined;
    this.options.warn?.(`response store: ${path}: ${REMOVED}`);
  }

  /** The database; undefined: responses are in memory. */
  #tables(): ResponseTables | undefined {
    const isDue = this.#openDatabase !== undefined && performance.now() >= this.#openAt;
    if (this.#opened !== undefined || !isDue || this.#closed) return this.#opened;
    try {
      this.#opened = new ResponseTables(this.#openDatabase!());
      this.#file = fileAt(this.options.path ?? '');
    } catch (thrown) {
      this.#failed(`cannot open ${this.options.name ?? 'the database'}`, thrown);
      // Another process holds it: that ends.
      this.#openAt = performance.now() + RETRY_MS;
      if (mayPass(thrown)) this.#schedule(RETRY_MS);
    }
    return this.#opened;
  }

  async #send(row: QueuedResponse): Promise<void> {
    try {
      const tables = this.#tables();
      if (this.#cache !== undefined && tables !== undefined) {
        const began = tables.timeOf(row.began);
        if (await this.#cache.write({ ...row.row, began })) return;
      }
    } catch (thrown) {
      this.#failed('the cache does not take a response', thrown);
    }
    await this.#flushNow();
  }

  async #look(named: Named, owner: string): Promise<FoundResponses> {
    const found = new FoundResponses({
      named,
      owner,
      cached: await this.#readCache(named, owner),
      queue: this.#queue,
      isErased: (row) => this.#isErased(row),
    });
    found.isAway = this.#tables() === undefined && this.#openDatabase !== undefined;
    const asItIs = (row: ResponseRow) => row;
    await this.#waiting.use((file) => found.readFrom(file, asItIs));
    try {
      const tables = this.#tables();
      if (tables !== undefined) await found.readFrom(tables, (row) => this.#here(row));
    } catch (thrown) {
      this.#failed('cannot read stored responses', thrown);
      found.isAway = this.#openDatabase !== undefined;
    }
    // The file may continue a response that another replica has written since.
    await this.#waiting.use((file) => found.readFrom(file, asItIs));
    return found;
  }

  /** Others may still hold what they could not write. */
  get #lateWrites(): boolean {
    return (this.options.backMs?.() ?? LATE_WRITES_MS) < LATE_WRITES_MS;
  }

  /** A row of the database or the cache, its time by the clock of this process. */
  #here(row: ResponseRow): ResponseRow {
    return { ...row, began: this.#tables()?.localTimeOf(row.began) ?? row.began };
  }

  #isErased({ space, began }: FoundResponse): boolean {
    return space !== null && this.#erasures.hasSince(space, began);
  }

  async #readCache(named: Named, owner: string): Promise<CachedRows> {
    if (this.#cache === undefined) return NOTHING_CACHED;
    try {
      const { rows, isGone } = await this.#cache.read(named, owner);
      return { rows: new Map([...rows].map(([id, row]) => [id, this.#here(row)])), isGone };
    } catch (thrown) {
      this.#failed('cannot read stored responses from the cache', thrown);
      return NOTHING_CACHED;
    }
  }

  /** Tells the cache now, or when it is back. */
  async #tell(message: (cache: ResponseCache) => Promise<void>): Promise<void> {
    if (this.#cache === undefined) return;
    try {
      await message(this.#cache);
    } catch (thrown) {
      this.#failed('the cache does not take a deletion', thrown);
      if (this.#owed.length < MAX_OWED) this.#owed.push(message);
      this.#schedule(RETRY_MS);
    }
  }

  #schedule(ms: number): void {
    const at = performance.now() + ms;
    if (this.#closed || at >= this.#flushAt) return;
    this.#flushAt = at;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#flushNow(), ms).unref();
  }

  #flushNow(): Promise<void> {
    // A flush that has not begun yet takes everything.
    this.#waitingFlush ??= this.#flushing.then(() => {
      this.#waitingFlush = undefined;
      return this.#flush();
    });
    this.#flushing = this.#waitingFlush;
    return this.#waitingFlush;
  }

  async #flush(): Promise<void> {
    if (this.#closed) return;
    this.#flushAt = Number.POSITIVE_INFINITY;
    this.#isBehind = true;
    this.#leaveRemoved();
    const tables = this.#tables();
    if (tables === undefined) {
      this.#queue.pack();
      this.#touched.clear();
      this.#trim();
      return;
    }
    try {
      for (const message of this.#owed.splice(0)) await this.#tell(message);
      await this.#writeWaiting(tables);
      for (;;) {
        const batch = this.#queue.batch();
        if (batch.length === 0 && this.#touched.size === 0) break;
        const threads = [...this.#touched];
        this.#touched.clear();
        await this.#write(
          tables,
          batch.map(({ row }) => row),
          threads,
        );
        this.#queue.done(batch);
        if (this.#queue.size > 0) await othersTurn();
      }
      this.#isBehind = false;
      const { rows, bytes } = this.#unpruned;
      if (rows > MAX_UNPRUNED.rows || bytes > MAX_UNPRUNED.bytes) await this.prune(0);
    } catch (thrown) {
      this.#failed('cannot write stored responses', thrown);
      await this.#spill();
      this.#schedule(RETRY_MS);
    }
  }

  /** A row that the database refuses must not keep the others back. @throws EngineAway */
  async #write(
    tables: ResponseTables,
    rows: readonly ResponseRow[],
    threads: readonly string[],
  ): Promise<void> {
    try {
      const lacking = await tables.write(rows, threads);
      this.#unpruned.rows += rows.length;
      for (const { bytes } of rows) this.#unpruned.bytes += bytes;
      for (const key of lacking) await this.#rescue(key);
    } catch (thrown) {
      const isUnusable = tables.form === 'file' || thrown instanceof EngineAway;
      if (isUnusable || mayPass(thrown)) throw thrown;
      this.#failed('the database refuses a response', thrown);
      if (rows.length === 1) this.#dropped(1);
      if (rows.length > 1) for (const row of rows) await this.#write(tables, [row], []);
    }
  }

  /** Writes a row for the replica that made it and may be gone, if the cache still has it. */
  async #rescue({ owner, id }: RowKey): Promise<void> {
    const named: Named = { responses: [id], chains: false, items: [] };
    const row = (await this.#readCache(named, owner)).rows.get(id);
    const opened = row && !this.#isErased(row) ? openRow(row, this.#seal) : undefined;
    if (opened) this.#queue.add(new QueuedResponse(opened, row!.thread, this.#seal));
  }

  /** Puts everything into the file: the database is away. Without a usable file it stays in memory. */
  async #spill(): Promise<void> {
    const isLost = this.#tables()?.form !== 'database';
    if (!isLost && this.#queue.size > 0) this.#waiting.open();
    await this.#waiting.use(async (file) => {
      for (let batch = this.#queue.batch(); batch.length > 0; batch = this.#queue.batch()) {
        await file.write(
          batch.map(({ row }) => row),
          [],
        );
        this.#queue.done(batch);
      }
      const dropped = await file.prune(this.#limits, 0);
      if (dropped !== undefined && dropped.length > 0) this.#dropped(dropped.length);
    });
    this.#trim();
  }

  /** Writes the rows of the file, the oldest first. @throws EngineAway, or the database's error */
  async #writeWaiting(tables: ResponseTables): Promise<void> {
    for (;;) {
      const rows = await this.#waiting.next();
      if (rows.length === 0) return;
      await this.#write(tables, rows, []);
      if (!(await this.#waiting.done(rows))) return;
    }
  }

  #trim(): void {
    const dropped = this.#queue.trim();
    if (dropped > 0 && this.options.database !== undefined) this.#dropped(dropped);
  }

  /** @throws GatewayError 503: it is not certain that it is done */
  async #certainly<T>(work: () => Promise<T>): Promise<T> {
    for (let left = MAX_TRIES; ; left--) {
      try {
        return await work();
      } catch (thrown) {
        if (thrown instanceof EngineAway || left === 1) throw responsesAway(thrown);
        if (!mayPass(thrown)) throw thrown;
        await Bun.sleep(AGAIN_MS);
      }
    }
  }

  #dropped(count: number): void {
    this.options.onDropped?.(count);
    this.#problem('responses that could not be stored were dropped');
  }

  /** The engine itself logs that it is away. An unusable file is not tried again. */
  #failed(what: string, thrown: unknown): void {
    if (thrown instanceof EngineAway) return;
    if (this.#opened?.form === 'database' || mayPass(thrown)) {
      this.#problem(what, thrown);
      return;
    }
    this.#openDatabase = undefined;
    try {
      this.#opened?.close();
    } catch {
      // It is no longer used.
    }
    this.#opened = undefined;
    this.#problem(what, thrown, '; keeping responses in memory only');
  }

  #problem(what: string, cause?: unknown, then = ''): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    const why = cause instanceof Error ? ` (${cause.message})` : '';
    this.options.warn?.(`response store: ${what}${why}${then}`, cause);
  }
}

/** Deadlocks and the like: a second try may succeed. A role may get a missing permission. */
function mayPass(thrown: unknown): boolean {
  const { code } = (thrown ?? {}) as { code?: unknown };
  return isPassing(thrown) || (typeof code === 'string' && /^(40|55|42|3F|0A|25)/.test(code));
}

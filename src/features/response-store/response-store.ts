/**
 * The store of responses: what a request names is fetched ahead, from the cache, from what waits here, and from the
 * database in one trip; what was put is written behind the request, and waits in a file where the database is away.
 */

import { preciseNow } from '../../lib/loop/precise-time.ts';
import { othersTurn } from '../../lib/loop/steps.ts';
import { secretBase36 } from '../../lib/text/ids.ts';
import { EngineAway, type KeyValue } from '../../state/engines/engine.ts';
import { nameHash, RecentErasures } from '../../state/erasures.ts';
import type { SqlDatabase } from '../../state/sql/sql.ts';
import { AS_IT_IS, type TextSeal } from '../../state/text-seal.ts';
import { type CachedRows, ResponseCache } from './response-cache.ts';
import { ResponseQueue } from './response-queue.ts';
import { ResponseReads, responsesAway } from './response-reads.ts';
import { type Named, ResponseTables } from './response-tables.ts';
import {
  DEFAULT_LIMITS,
  type FoundResponse,
  isUsable,
  keyOf,
  openRow,
  QueuedResponse,
  type ResponseLimits,
  type ResponseRow,
  type RowKey,
  type StoredResponse,
} from './stored-response.ts';
import { WaitingResponses } from './waiting-responses.ts';

/** What a request names. */
export interface NamedResponses {
  readonly responses?: readonly string[];
  /** What the responses continue is wanted, too. */
  readonly chains?: boolean;
  /** Output items. */
  readonly items?: readonly string[];
}

export interface ResponseStoreOptions {
  /** Left out: in memory alone. May throw where a file cannot be used: then responses are in memory, too. */
  readonly database?: () => SqlDatabase;
  /** For messages. */
  readonly name?: string;
  /** Others read and write the same database, and find at once what an answer has ended with. */
  readonly others?: boolean;
  readonly cache?: KeyValue | undefined;
  /** Of texts that leave this machine. */
  readonly seal?: TextSeal;
  /** The file for what waits while the database is away; left out: memory only. */
  readonly waitingPath?: string;
  /** Of an older version, which is taken over. */
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

/** Milliseconds that an answer waits at most until others can find its response. */
const SENT_MS = 50;
const FLUSH_MS = 100;
const RETRY_MS = 1000;
/** So many are written at once. */
const MANY = 64;
/** Another process may be about to write what it has made. */
const LOOK_AGAIN_MS = 30;
const PRUNE_MS = 60_000;
/** When more was written meanwhile, what is beyond the limits is removed at once. */
const MAX_UNPRUNED = { rows: 1000, bytes: 50 * 2 ** 20 };
const CLOSE_MS = 3000;
/** The last write to a file waits so long for another process that writes. */
const LAST_MS = 5000;
/** What must be certain is tried again so often where others hold the database up. */
const TIMES = 10;
const AGAIN_MS = 100;
/** Times that a response is looked for which the cache has, and the database has not yet. */
const CHANGE_LOOKS = 5;
const MAX_THREADS = 10_000;
const MAX_OWED = 10_000;

/** Did a gateway make this id: of the time and a random part? A vendor's has another form. */
export const isOwnId = (id: string): boolean => /^resp_\d{13}_[0-9a-z]{6}$/.test(id);

/** Responses by their ids, and by the ids of the items that they contain. */
class Found {
  readonly rows = new Map<string, FoundResponse>();
  readonly items = new Map<string, FoundResponse>();

  /** What was found first is the newest. */
  add(row: FoundResponse): void {
    const known = this.rows.get(row.id);
    if (known !== undefined && isWhole(known)) return;
    this.rows.set(row.id, row);
    if (isWhole(row)) for (const item of row.itemIds) this.items.set(item, row);
  }
}

/** Of a mere link of a chain the response object is not read. */
const isWhole = (row: FoundResponse): boolean =>
  row instanceof QueuedResponse || row.response.length > 0;

interface Looked {
  readonly found: Found;
  /** Something is not there, and another process may be about to write it. */
  readonly mayCome: boolean;
  readonly isAway: boolean;
  readonly isCut: boolean;
}

const NOTHING_CACHED: CachedRows = { rows: new Map(), isGone: () => false };

export class ResponseStore {
  readonly #options: ResponseStoreOptions;
  readonly #limits: ResponseLimits;
  readonly #seal: TextSeal;
  readonly #cache: ResponseCache | undefined;
  readonly #queue: ResponseQueue;
  #openDatabase: (() => SqlDatabase) | undefined;
  #openAt = 0;
  #opened: ResponseTables | undefined;
  readonly #waiting: WaitingResponses;
  /** The conversations of responses that were read or written here, by their keys. */
  readonly #threads = new Map<string, string>();
  readonly #touched = new Set<string>();
  /** By the hashes of the spaces. */
  readonly #erasures = new RecentErasures();
  /** What the cache must still be told. */
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

  constructor(options: ResponseStoreOptions) {
    this.#options = options;
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

  /** Opens the database now, and takes over what an earlier process could not write. Never throws. */
  open(): void {
    if (this.#upkeep !== undefined || this.#closed) return;
    this.#upkeep = setInterval(() => void this.prune(PRUNE_MS), PRUNE_MS);
    this.#upkeep.unref();
    this.#tables();
    if (this.#waiting.isThere && this.#waiting.open()) this.#schedule(0);
  }

  /** False: in memory only. */
  get persistent(): boolean {
    return this.#tables() !== undefined;
  }

  /** Queues the row; what is fetched from now on has it. It replaces the owner's row of the same id. */
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
    const thread =
      this.#threadOf(owner, id) ??
      (previous === undefined ? undefined : this.#threadOf(owner, previous));
    const queued = new QueuedResponse({ ...stored, began }, thread ?? secretBase36(20), this.#seal);
    this.#learn(queued);
    this.#queue.add(queued);
    // Sizes are summed up now and then only.
    const looks = this.#queue.isFull || this.#queue.size % MANY === 0;
    if (this.#isBehind && looks) this.#trim();
    this.#schedule(this.#queue.size >= MANY ? 0 : (this.#options.flushMs ?? FLUSH_MS));
    if (this.#options.others) this.#sent = this.#send(queued);
  }

  /** Resolves when other processes can find the last response, or after 50 ms. Undefined: there are no others. */
  sent(): Promise<void> | undefined {
    const sending = this.#sent;
    this.#sent = undefined;
    return sending && this.#inTime(sending);
  }

  async #inTime(sending: Promise<void>): Promise<void> {
    let late: ReturnType<typeof setTimeout> | undefined;
    const patience = new Promise<void>((resolve) => {
      late = setTimeout(() => {
        this.#options.onLate?.();
        resolve();
      }, SENT_MS);
    });
    await Promise.race([sending, patience]);
    clearTimeout(late);
  }

  /**
   * What the request names, ready to be read.
   * @param owner as of `ownerOf`; another owner's responses do not exist
   * @param lenient what cannot be looked up now counts as unknown
   */
  async fetch(
    { responses = [], chains = false, items = [] }: NamedResponses,
    owner: string,
    lenient = false,
  ): Promise<ResponseReads> {
    const named: Named = { responses, chains, items };
    let looked: Looked = { found: new Found(), mayCome: false, isAway: false, isCut: false };
    if (responses.length > 0 || items.length > 0) {
      looked = await this.#look(named, owner);
      if (looked.mayCome && !looked.isCut) {
        await Bun.sleep(LOOK_AGAIN_MS);
        looked = await this.#look(named, owner);
      }
    }
    const { found, isAway, isCut } = looked;
    for (const row of found.rows.values()) this.#learn(row);
    return new ResponseReads({
      owner,
      rows: found.rows,
      items: found.items,
      seal: this.#seal,
      isAway: isAway && !lenient,
      isCut,
      onContinued: ({ thread }) => {
        this.#touched.add(thread);
        this.#schedule(this.#options.flushMs ?? FLUSH_MS);
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
        this.#learn(row);
        await this.#send(row);
        return true;
      }
      if (!this.#options.others) return false;
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
   * The same for the hash of its name, everywhere: what others have still to write is not written any more.
   * @param at as of `instant`: what was begun later stays; left out: now
   * @throws GatewayError 503: the database could not be told; what is here and in the cache is gone
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

  /** Resolves when what is queued now is written, or cannot be written now. */
  flush(): Promise<void> {
    return this.#flushNow();
  }

  /** Resolves when nothing is left to write, or it is in the file of what waits. */
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

  /** Removes what is beyond the limits, unless another process did so within this time. */
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

  /** The database; undefined: responses are in memory. */
  #tables(): ResponseTables | undefined {
    const isDue = this.#openDatabase !== undefined && performance.now() >= this.#openAt;
    if (this.#opened !== undefined || !isDue || this.#closed) return this.#opened;
    try {
      this.#opened = new ResponseTables(this.#openDatabase!());
    } catch (thrown) {
      this.#failed(`cannot open ${this.#options.name ?? 'the database'}`, thrown);
      // Another process holds it: that ends.
      this.#openAt = performance.now() + RETRY_MS;
      if (isPassing(thrown)) this.#schedule(RETRY_MS);
    }
    return this.#opened;
  }

  async #send(row: QueuedResponse | ResponseRow): Promise<void> {
    try {
      const tables = this.#tables();
      if (this.#cache !== undefined && tables !== undefined) {
        const began = tables.timeOf(row.began);
        const packed = row instanceof QueuedResponse ? row.row : row;
        if (await this.#cache.write({ ...packed, began })) return;
      }
    } catch (thrown) {
      this.#failed('the cache does not take a response', thrown);
    }
    await this.#flushNow();
  }

  async #look(named: Named, owner: string): Promise<Looked> {
    const cached = await this.#readCache(named, owner);
    const found = new Found();
    const take = (id: string): FoundResponse | 'gone' | undefined => {
      if (cached.isGone(id)) return 'gone';
      const row = found.rows.get(id) ?? cached.rows.get(id) ?? this.#queue.get({ owner, id });
      if (row === undefined) return undefined;
      if (this.#isErased(row)) return 'gone';
      found.add(row);
      return row;
    };
    /** What is named, or continued by what was found, and not found itself. */
    const lacking = (): Named => {
      const missing = new Set<string>();
      for (const id of named.responses) {
        const seen = new Set<string>();
        for (let at: string | null = id; at !== null && !seen.has(at); ) {
          seen.add(at);
          const row = take(at);
          if (row === undefined) missing.add(at);
          at = named.chains && row !== undefined && row !== 'gone' ? row.previous : null;
        }
      }
      const items = named.items.filter((item) => !found.items.has(item));
      return { responses: [...missing], chains: named.chains, items };
    };
    for (const id of cached.rows.keys()) take(id);
    for (const item of named.items) {
      const row = found.items.has(item) ? undefined : this.#queue.withItem(owner, item);
      if (row !== undefined) take(row.id);
    }
    let isAway = this.#tables() === undefined && this.#openDatabase !== undefined;
    let isCut = false;
    const read = async (
      tables: ResponseTables | undefined,
      here: (row: ResponseRow) => ResponseRow,
    ) => {
      const left = lacking();
      if (tables === undefined || (left.responses.length === 0 && left.items.length === 0)) return;
      const known = await tables.read(left, owner);
      isCut ||= known.isCut;
      for (const row of known.rows.map(here)) {
        if (!cached.isGone(row.id) && !this.#isErased(row)) found.add(row);
      }
    };
    await this.#waiting.use((file) => read(file, (row) => row));
    try {
      await read(this.#tables(), (row) => this.#here(row));
    } catch (thrown) {
      this.#failed('cannot read stored responses', thrown);
      isAway = this.#openDatabase !== undefined;
    }
    // What waits may be continued by what another replica has written since.
    await this.#waiting.use((file) => read(file, (row) => row));
    const left = lacking();
    // What only gateways know, what one of them named, and what a known response continues.
    const mayCome =
      this.#options.others === true &&
      !isAway &&
      ((owner !== '' && left.items.length > 0) ||
        left.responses.some((id) => owner !== '' || isOwnId(id) || !named.responses.includes(id)));
    return { found, mayCome, isAway, isCut };
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
    this.#timer = setTimeout(() => void this.#flushNow(), ms);
    this.#timer.unref();
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
      if (isUnusable || isPassing(thrown)) throw thrown;
      this.#failed('the database refuses a response', thrown);
      if (rows.length === 1) this.#dropped(1);
      if (rows.length > 1) for (const row of rows) await this.#write(tables, [row], []);
    }
  }

  /** The replica that made it may be gone: what the cache still has is written for it. */
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

  /** Writes what waits in the file, the oldest first. @throws EngineAway, or the database's error */
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
    if (dropped > 0 && this.#options.database !== undefined) this.#dropped(dropped);
  }

  /** @throws GatewayError 503: it is not certain that it is done */
  async #certainly<T>(work: () => Promise<T>): Promise<T> {
    for (let left = TIMES; ; left--) {
      try {
        return await work();
      } catch (thrown) {
        if (thrown instanceof EngineAway || left === 1) throw responsesAway(thrown);
        if (!isPassing(thrown)) throw thrown;
        await Bun.sleep(AGAIN_MS);
      }
    }
  }

  #learn({ owner, id, thread }: FoundResponse): void {
    const key = keyOf({ owner, id });
    this.#threads.delete(key);
    this.#threads.set(key, thread);
    if (this.#threads.size > MAX_THREADS) {
      this.#threads.delete(this.#threads.keys().next().value!);
    }
  }

  #threadOf(owner: string, id: string): string | undefined {
    return this.#threads.get(keyOf({ owner, id }));
  }

  #dropped(count: number): void {
    this.#options.onDropped?.(count);
    this.#problem('responses that could not be stored were dropped');
  }

  /** The engine itself logs that it is away. An unusable file is not tried again. */
  #failed(what: string, thrown: unknown): void {
    if (thrown instanceof EngineAway) return;
    if (this.#opened?.form === 'database' || isPassing(thrown)) {
      this.#problem(what, thrown);
      return;
    }
    this.#openDatabase = undefined;
    try {
      this.#opened?.close();
    } catch {
      // It is not used any more.
    }
    this.#opened = undefined;
    this.#problem(what, thrown, '; keeping responses in memory only');
  }

  #problem(what: string, cause?: unknown, then = ''): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    const why = cause instanceof Error ? ` (${cause.message})` : '';
    this.#options.warn?.(`response store: ${what}${why}${then}`, cause);
  }
}

/** Deadlocks, a file that another process holds, and the like: the same again may succeed. What a role may not do can be allowed. */
function isPassing(thrown: unknown): boolean {
  const { code } = (thrown ?? {}) as { code?: unknown };
  return typeof code === 'string' && /^(40|55|42|3F|0A|25)|BUSY|LOCKED|FULL|IOERR|NOMEM/.test(code);
}

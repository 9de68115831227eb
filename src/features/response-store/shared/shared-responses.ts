/** The response store of many replicas: the cache first, then Postgres; each request's ids in one trip. */

import { preciseNow } from '../../../lib/loop/precise-time.ts';
import { secretBase36 } from '../../../lib/text/ids.ts';
import { EngineAway, type KeyValue, type Sql } from '../../../state/engines/engine.ts';
import { nameHash, RecentErasures } from '../../../state/erasures.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import type { NamedResponses, ResponseReads, ResponseStore } from '../response-store.ts';
import { DEFAULT_LIMITS, type ResponseLimits, type StoredResponse } from '../stored-response.ts';
import { FetchedResponses, responsesAway } from './fetched-responses.ts';
import { type CachedRows, type Named, ResponseCache } from './response-cache.ts';
import { MAX_BYTES, MAX_LINKS, ResponseTables } from './response-tables.ts';
import { RowQueue } from './row-queue.ts';
import { openRow, type SharedRow, sharedRow } from './shared-row.ts';

export interface SharedResponsesOptions {
  readonly database: Sql;
  readonly cache: KeyValue | undefined;
  readonly seal: TextSeal;
  /** The file for what waits while the database is away; left out: memory only. */
  readonly path?: string;
  readonly limits?: Partial<ResponseLimits>;
  /** An answer went out before the engines had its response. */
  readonly onLate?: () => void;
  /** Responses that no replica will know. */
  readonly onDropped?: (count: number) => void;
  /** Called once for each kind of problem. */
  readonly warn?: (message: string, cause?: unknown) => void;
}

/** Milliseconds that an answer waits at most until its response is with the engines. */
const SENT_MS = 50;
const FLUSH_MS = 100;
const RETRY_MS = 1000;
/** Another replica may be about to write what it has made. */
const LOOK_AGAIN_MS = 30;
const PRUNE_MS = 60_000;
const CLOSE_MS = 3000;
/** Times that a response is looked for which the cache has, and the database has not yet. */
const CHANGE_LOOKS = 5;
const MAX_THREADS = 10_000;
const MAX_OWED = 10_000;

/** Did a gateway make this id: of the time and a random part? A vendor's has another form. */
export const isOwnId = (id: string): boolean => /^resp_\d{13}_[0-9a-z]{6}$/.test(id);

/** Rows by their ids, and by the ids of the items that can be had of them. */
class FoundRows {
  readonly rows = new Map<string, SharedRow>();
  readonly items = new Map<string, SharedRow>();

  add(row: SharedRow): void {
    this.rows.set(row.id, row);
    // Of a mere link of a chain the response object was not read.
    if (row.response.length > 0) for (const item of row.itemIds) this.items.set(item, row);
  }
}

interface Looked {
  readonly found: FoundRows;
  /** Something is not there, and another replica may be about to write it. */
  readonly mayCome: boolean;
  readonly isAway: boolean;
  readonly isCut: boolean;
}

const NONE = { mayCome: false, isAway: false, isCut: false };

export class SharedResponses implements ResponseStore {
  readonly persistent = true;
  readonly #options: SharedResponsesOptions;
  readonly #limits: ResponseLimits;
  readonly #tables: ResponseTables;
  readonly #cache: ResponseCache | undefined;
  readonly #queue: RowQueue;
  /** The conversations of responses that were read or written here, by their keys. */
  readonly #threads = new Map<string, string>();
  readonly #touched = new Set<string>();
  /** By the hashes of the spaces. */
  readonly #erasures = new RecentErasures();
  /** What the cache must still be told. */
  readonly #owed: ((cache: ResponseCache) => Promise<void>)[] = [];
  readonly #told = new Set<string>();
  #flushing: Promise<void> = Promise.resolve();
  #waitingFlush: Promise<void> | undefined;
  #sent: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #flushAt = Number.POSITIVE_INFINITY;
  readonly #upkeep: ReturnType<typeof setInterval>;
  #closed = false;

  constructor(options: SharedResponsesOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#tables = new ResponseTables(options.database);
    this.#cache = options.cache && new ResponseCache(options.cache);
    this.#queue = new RowQueue({
      path: options.path,
      limits: this.#limits,
      onDropped: (count) => this.#dropped(count),
      onProblem: (what, cause) => this.#problem(what, cause),
    });
    this.#queue.open();
    if (this.#queue.size > 0) this.#schedule(0);
    this.#upkeep = setInterval(() => void this.prune(PRUNE_MS), PRUNE_MS);
    this.#upkeep.unref();
  }

  put(stored: StoredResponse): void {
    const { owner, id, previous, space = '' } = stored;
    const began = stored.began ?? preciseNow();
    if (this.#closed || this.#erasures.hasSince(space, began)) return;
    const thread =
      this.#threadOf(owner, id) ??
      (previous === undefined ? undefined : this.#threadOf(owner, previous)) ??
      secretBase36(20);
    const row = sharedRow({ ...stored, began }, thread, this.#options.seal);
    if (row === undefined) {
      this.#dropped(1);
      return;
    }
    this.#learn(row);
    this.#queue.add(row);
    this.#schedule(FLUSH_MS);
    this.#sent = this.#send(row);
  }

  /** When what was put last is where every replica finds it; at the latest after 50 ms. */
  async sent(): Promise<void> {
    const sending = this.#sent;
    if (sending === undefined) return;
    this.#sent = undefined;
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

  async fetch(
    { responses = [], chains = false, items = [] }: NamedResponses,
    owner: string,
    lenient = false,
  ): Promise<ResponseReads> {
    const named: Named = { responses, chains, items };
    let looked: Looked = { ...NONE, found: new FoundRows() };
    if (responses.length > 0 || items.length > 0) {
      looked = await this.#look(named, owner);
      if (looked.mayCome && !looked.isCut) {
        await Bun.sleep(LOOK_AGAIN_MS);
        looked = await this.#look(named, owner);
      }
    }
    const { found, isAway, isCut } = looked;
    for (const row of found.rows.values()) this.#learn(row);
    return new FetchedResponses({
      owner,
      ...found,
      seal: this.#options.seal,
      isAway: isAway && !lenient,
      isCut,
      onContinued: ({ thread }) => {
        this.#touched.add(thread);
        this.#schedule(FLUSH_MS);
      },
      onUnreadable: () =>
        this.#problem('a stored response cannot be read: damaged, or sealed with another secret'),
    });
  }

  async change(
    id: string,
    owner: string,
    make: (row: StoredResponse) => StoredResponse | undefined,
  ): Promise<boolean> {
    const { seal } = this.#options;
    const changed = (row: SharedRow): SharedRow | undefined => {
      const opened = openRow(row, seal);
      const next = opened && make(opened);
      return next && sharedRow({ ...next, began: row.began }, row.thread, seal);
    };
    await this.#flushNow();
    for (let looks = CHANGE_LOOKS; looks > 0; looks--) {
      const next = await this.#tables.change({ owner, id }, changed).catch(refused);
      if (next === 'same') return false;
      if (next !== undefined) {
        const row = this.#here(next);
        this.#learn(row);
        await this.#send(row);
        return true;
      }
      // The replica that made it is about to write it.
      await Bun.sleep(FLUSH_MS);
    }
    throw responsesAway();
  }

  /** On all replicas. @throws GatewayError 503: it is not certain that it is deleted */
  async delete(id: string, owner: string): Promise<boolean> {
    const reads = await this.fetch({ responses: [id] }, owner);
    if (reads.known(id, owner) === undefined) return false;
    await this.#tables.remove({ owner, id }).catch(refused);
    this.#queue.remove(owner, id);
    await this.#tell((cache) => cache.remove([{ owner, id }]));
    return true;
  }

  eraseSpace(space: string): Promise<void> {
    return this.forgetSpace(nameHash(space));
  }

  /**
   * On all replicas: what they have still to write is not written any more.
   * @throws GatewayError 503: the database could not be told; what is here and in the cache is gone
   */
  async forgetSpace(hash: string, at?: number): Promise<void> {
    const local = at ?? preciseNow();
    this.#erasures.add(hash, local);
    this.#queue.erase(hash, local);
    await this.#tell((cache) => cache.erase(hash, this.#tables.timeOf(local)));
    const { at: until, rows } = await this.#tables.erase(hash, at).catch(refused);
    // It may have come meanwhile.
    this.#queue.erase(hash, local);
    await this.#tell(async (cache) => {
      await cache.erase(hash, until);
      await cache.remove(rows);
    });
  }

  flush(): void {
    void this.#flushNow();
  }

  /** Resolves when nothing is left to write, or it is in the file. */
  async close(): Promise<void> {
    if (this.#closed) return;
    clearInterval(this.#upkeep);
    clearTimeout(this.#timer);
    await Promise.race([this.#flushNow(), Bun.sleep(CLOSE_MS)]);
    this.#closed = true;
    this.#queue.close();
  }

  /** Removes what is beyond the limits, unless a replica did so within this time. */
  async prune(everyMs: number): Promise<void> {
    try {
      const rows = await this.#tables.prune(this.#limits, everyMs);
      if (rows !== undefined && rows.length > 0) await this.#tell((cache) => cache.remove(rows));
    } catch (thrown) {
      this.#trouble('cannot remove old responses', thrown);
    }
  }

  async #send(row: SharedRow): Promise<void> {
    try {
      const shared = { ...row, began: this.#tables.timeOf(row.began) };
      if (this.#cache !== undefined && (await this.#cache.write(shared))) return;
    } catch (thrown) {
      this.#trouble('the cache does not take a response', thrown);
    }
    await this.#flushNow();
  }

  async #look(named: Named, owner: string): Promise<Looked> {
    const cached = await this.#readCache(named, owner);
    const found = new FoundRows();
    const take = (id: string): SharedRow | 'gone' | undefined => {
      if (cached.isGone(id)) return 'gone';
      const row = cached.rows.get(id) ?? this.#queue.get(owner, id);
      if (row === undefined) return undefined;
      if (this.#isErased(row)) return 'gone';
      found.add(row);
      return row;
    };
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
    for (const id of cached.rows.keys()) take(id);
    for (const item of named.items) {
      const row = found.items.has(item) ? undefined : this.#queue.withItem(owner, item);
      if (row !== undefined) take(row.id);
    }
    const items = named.items.filter((item) => !found.items.has(item));
    if (missing.size === 0 && items.length === 0) return { ...NONE, found };
    const left: Named = { responses: [...missing], chains: named.chains, items };
    let read: readonly SharedRow[];
    try {
      read = (await this.#tables.read(left, owner)).map((row) => this.#here(row));
    } catch (thrown) {
      this.#trouble('cannot read stored responses', thrown);
      return { ...NONE, found, isAway: true };
    }
    let bytes = 0;
    for (const row of read) {
      bytes += row.bytes;
      if (!cached.isGone(row.id) && !this.#isErased(row)) found.add(row);
    }
    const links = named.chains ? read.flatMap(({ previous }) => previous ?? []) : [];
    const lacking = [...left.responses, ...links].filter(
      (id) => !found.rows.has(id) && !cached.isGone(id),
    );
    // What only gateways know, what one of them named, and what a known response continues.
    const mayCome =
      (owner !== '' && items.some((item) => !found.items.has(item))) ||
      lacking.some((id) => owner !== '' || isOwnId(id) || !named.responses.includes(id));
    const isCut = named.chains && (bytes >= MAX_BYTES || read.length >= MAX_LINKS);
    return { ...NONE, found, mayCome, isCut };
  }

  /** A row of the engines, its time by the clock of this process. */
  #here(row: SharedRow): SharedRow {
    return { ...row, began: this.#tables.localTimeOf(row.began) };
  }

  #isErased({ space, began }: SharedRow): boolean {
    return space !== null && this.#erasures.hasSince(space, began);
  }

  async #readCache(named: Named, owner: string): Promise<CachedRows> {
    const nothing: CachedRows = { rows: new Map(), isGone: () => false };
    if (this.#cache === undefined) return nothing;
    try {
      const { rows, isGone } = await this.#cache.read(named, owner);
      return { rows: new Map([...rows].map(([id, row]) => [id, this.#here(row)])), isGone };
    } catch (thrown) {
      this.#trouble('cannot read stored responses from the cache', thrown);
      return nothing;
    }
  }

  /** Tells the cache now, or when it is back. */
  async #tell(message: (cache: ResponseCache) => Promise<void>): Promise<void> {
    if (this.#cache === undefined) return;
    try {
      await message(this.#cache);
    } catch (thrown) {
      this.#trouble('the cache does not take a deletion', thrown);
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

  /** Resolves when what is queued now is written, or cannot be written now. */
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
    try {
      if (this.#cache !== undefined) {
        for (const message of this.#owed.splice(0)) await this.#tell(message);
      }
      for (;;) {
        const batch = this.#queue.batch();
        if (batch === undefined && this.#touched.size === 0) return;
        const threads = [...this.#touched];
        this.#touched.clear();
        const lacking = await this.#write(batch?.rows ?? [], threads);
        batch?.done();
        for (const { owner, id } of lacking) await this.#rescue(owner, id);
      }
    } catch (thrown) {
      this.#trouble('cannot write stored responses', thrown);
      this.#queue.spill();
      this.#schedule(RETRY_MS);
    }
  }

  /** The replica that made it may be gone: what the cache still has is written for it. */
  async #rescue(owner: string, id: string): Promise<void> {
    const named: Named = { responses: [id], chains: false, items: [] };
    const row = (await this.#readCache(named, owner)).rows.get(id);
    if (row !== undefined && !this.#isErased(row)) this.#queue.add(row);
  }

  /** A row that the database refuses must not keep the others back. @throws EngineAway */
  async #write(
    rows: readonly SharedRow[],
    threads: readonly string[],
  ): Promise<readonly Pick<SharedRow, 'owner' | 'id'>[]> {
    try {
      return await this.#tables.write(rows, threads);
    } catch (thrown) {
      if (thrown instanceof EngineAway || isPassing(thrown)) throw thrown;
      this.#trouble('the database refuses a response', thrown);
      if (rows.length === 1) this.#dropped(1);
      const lacking: Pick<SharedRow, 'owner' | 'id'>[] = [];
      if (rows.length > 1) for (const row of rows) lacking.push(...(await this.#write([row], [])));
      return lacking;
    }
  }

  #learn({ owner, id, thread }: SharedRow): void {
    const key = `${owner}\n${id}`;
    this.#threads.delete(key);
    this.#threads.set(key, thread);
    if (this.#threads.size > MAX_THREADS) {
      this.#threads.delete(this.#threads.keys().next().value!);
    }
  }

  #threadOf(owner: string, id: string): string | undefined {
    return this.#threads.get(`${owner}\n${id}`);
  }

  #dropped(count: number): void {
    this.#options.onDropped?.(count);
    this.#problem('responses that could not be stored were dropped');
  }

  /** That an engine is away is told once, by the engine itself. */
  #trouble(what: string, thrown: unknown): void {
    if (!(thrown instanceof EngineAway)) this.#problem(what, thrown);
  }

  #problem(what: string, cause?: unknown): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    const why = cause instanceof Error ? ` (${cause.message})` : '';
    this.#options.warn?.(`response store: ${what}${why}`, cause);
  }
}

function refused(thrown: unknown): never {
  throw thrown instanceof EngineAway ? responsesAway(thrown) : thrown;
}

/** Deadlocks and the like: the same again may succeed. What the role may not do can be allowed. */
function isPassing(thrown: unknown): boolean {
  const { code } = (thrown ?? {}) as { code?: unknown };
  return typeof code === 'string' && /^(40|55|42|3F|0A|25)/.test(code);
}

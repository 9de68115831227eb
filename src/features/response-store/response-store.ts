/** The bounded, persistent store of responses: writes wait in memory and go to the file in batches. */

import type { JsonObject } from '../../lib/json/json.ts';
import { instant } from '../../lib/loop/instant.ts';
import { type Chain, chainSteps, walkChain } from './chain.ts';
import {
  ERASURES_KEPT,
  type KnownResponse,
  openResponseFile,
  type QueuedChange,
  type ResponseFile,
} from './sqlite-store.ts';
import {
  type ChainLink,
  DEFAULT_LIMITS,
  itemIdsOf,
  itemsById,
  type PackedRow,
  pack,
  type ResponseLimits,
  type StoredResponse,
  spaceMark,
  unpack,
} from './stored-response.ts';

export interface ResponseStore {
  /** Queues the row; reads see it at once. The same owner's row of the same id is replaced. */
  put(row: StoredResponse): void;
  /** Undefined where it is unknown, deleted, or another owner's. */
  get(id: string, owner: string): StoredResponse | undefined;
  /** Deletes one link; false where `get` would have found nothing. */
  delete(id: string, owner: string): boolean;
  /** That the response is there, without reading it; undefined where `get` would find nothing. */
  known(id: string, owner: string): KnownResponse | undefined;
  /** Everything said up to and with `id`, oldest first, or the id of the link that is missing. */
  chain(id: string, owner: string): Chain;
  /** The same in steps, between which others have their turn. */
  chainInSteps(id: string, owner: string): Promise<Chain>;
  /** The output items of any responses of this owner that have these ids; those not known are left out. */
  items(ids: Iterable<string>, owner: string): ReadonlyMap<string, KnownItem>;
  /** Forgets every response that was made with this memory space, now and once what other processes hold is written. */
  eraseSpace(space: string): void;
  /** Writes all that waits; what cannot be written stays queued. Never throws. */
  flush(): void;
  /** Flushes and lets go of the file. */
  close(): void;
  /** Whether a file stands behind it (false: memory only). */
  readonly persistent: boolean;
}

/** An output item as a later request may refer to it, and the provider that knows it by its id. */
export interface KnownItem extends KnownResponse {
  readonly item: JsonObject;
}

export interface StoreOptions {
  /** The database file; left out: memory only. */
  readonly path?: string;
  readonly limits?: Partial<ResponseLimits>;
  /** Milliseconds between a write and its way to the file. */
  readonly flushAfter?: number;
  /** Other processes use the file at the same time: what is kept goes there at once. */
  readonly shared?: boolean;
  /** Told once per trouble: the file is unusable, busy for long, or rows had to go. */
  readonly warn?: (message: string, cause?: unknown) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

// A full batch goes out without waiting; a batch is one transaction, some milliseconds long.
const BATCH = 64;
const BATCH_BYTES = 2_000_000;
const PRUNE_STEP = 200;
const RETRY_AFTER = 2_000;
// By then another process has written what it had when the space was erased.
const ERASE_AGAIN = 2_000;
// A long chain lets others have their turn this often, in milliseconds.
const STEP_MS = 5;

/** A change that waits. `row` turns into `packed` when its turn comes, off the request's path. */
interface PendingChange {
  readonly owner: string;
  readonly id: string;
  row?: StoredResponse;
  packed?: PackedRow;
  readonly itemIds: readonly string[];
}

const keyOf = (owner: string, id: string) => `${owner}\n${id}`;
const codeOf = (error: unknown) => String((error as { code?: unknown } | null)?.code ?? '');
const isPassing = (error: unknown) => /BUSY|LOCKED|FULL|IOERR|NOMEM/.test(codeOf(error));

/** Opens the store. Never throws: with an unusable file it keeps (fewer) responses in memory. */
export function openResponseStore(options: StoreOptions = {}): ResponseStore {
  const limits: ResponseLimits = { ...DEFAULT_LIMITS, ...options.limits };
  const now = options.now ?? Date.now;
  const warn = options.warn ?? (() => {});
  const waiting = new Map<string, PendingChange>();
  /** Which of them has an item: the key of the row by that of the item. */
  const waitingItems = new Map<string, string>();
  const flushAfter = options.shared === true ? 0 : (options.flushAfter ?? 200);
  const touched = new Map<string, { owner: string; id: string }>();
  /** When spaces were erased, by their marks. */
  const erased = new Map<string, number>();
  let memoryBytes = 0;
  let file: ResponseFile | undefined;
  let path = options.path;
  let retryAt = 0;
  let troubled = '';
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;

  const trouble = (what: string, error: unknown) => {
    if (!isPassing(error)) {
      path = undefined;
      try {
        file?.close();
      } catch {
        // It is given up anyway.
      }
      file = undefined;
    }
    retryAt = now() + RETRY_AFTER;
    if (troubled === what) return;
    troubled = what;
    const message = error instanceof Error ? error.message : String(error);
    const plan = path === undefined ? 'keeping responses in memory only' : 'trying again later';
    warn(`response store: ${what} (${message}); ${plan}`, error);
  };

  const open = () => {
    if (file || path === undefined || closed || now() < retryAt) return;
    try {
      file = openResponseFile(path);
    } catch (error) {
      trouble(`cannot open ${path}`, error);
    }
  };

  /** Asks the file; a failing file answers like one that does not know. */
  const withFile = <T>(question: (file: ResponseFile) => T): T | undefined => {
    if (!file) return undefined;
    try {
      return question(file);
    } catch (error) {
      trouble('cannot read the file', error);
      return undefined;
    }
  };

  const schedule = (after: number) => {
    if (closed) return;
    if (timer !== undefined) {
      if (after > 0) return;
      clearTimeout(timer);
    }
    timer = setTimeout(() => {
      timer = undefined;
      // One batch a turn of the event loop, the rest in the next one.
      if (writeBatch()) schedule(0);
    }, after);
    timer.unref();
  };

  const forget = (key: string, entry: PendingChange) => {
    if (waiting.get(key) !== entry) return;
    waiting.delete(key);
    memoryBytes -= entry.packed?.bytes ?? 0;
    for (const item of entry.itemIds) {
      const at = keyOf(entry.owner, item);
      if (waitingItems.get(at) === entry.id) waitingItems.delete(at);
    }
  };

  /** Memory has bounds of its own: oldest first. */
  const trim = () => {
    let dropped = 0;
    for (const [key, entry] of waiting) {
      if (waiting.size <= limits.memoryRows && memoryBytes <= limits.memoryBytes) break;
      forget(key, entry);
      dropped++;
    }
    if (dropped > 0 && path !== undefined && troubled !== 'dropped') {
      troubled = 'dropped';
      warn(`response store: ${dropped} responses that could not be written were dropped`);
    }
  };

  const packUp = (entry: PendingChange) => {
    if (!entry.row) return;
    entry.packed = pack(entry.row);
    entry.row = undefined;
    memoryBytes += entry.packed.bytes;
  };

  /** Writes one batch; true when there is more to do right away. */
  const writeBatch = (): boolean => {
    open();
    const batch: [string, PendingChange][] = [];
    let bytes = 0;
    for (const pair of waiting) {
      if (file && (batch.length === BATCH || bytes >= BATCH_BYTES)) break;
      packUp(pair[1]);
      bytes += pair[1].packed?.bytes ?? 0;
      batch.push(pair);
    }
    if (!file) {
      trim();
      if (path !== undefined && waiting.size > 0) schedule(RETRY_AFTER);
      return false;
    }
    const changes: QueuedChange[] = [...touched.values()].map((touch) => ({
      kind: 'touch',
      ...touch,
    }));
    for (const [, { owner, id, packed }] of batch) {
      changes.push(packed ? { kind: 'put', row: packed } : { kind: 'delete', owner, id });
    }
    try {
      if (changes.length > 0) file.apply(changes, now());
      for (const [key, entry] of batch) forget(key, entry);
      touched.clear();
      const pruned = file.prune(limits, now(), PRUNE_STEP);
      troubled = '';
      return waiting.size > 0 || pruned >= PRUNE_STEP;
    } catch (error) {
      trouble('cannot write', error);
      trim();
      if (path !== undefined) schedule(RETRY_AFTER);
      return false;
    }
  };

  const linkOf = (owner: string, id: string): ChainLink | undefined => {
    const entry = waiting.get(keyOf(owner, id));
    if (!entry) return withFile((f) => f.link(owner, id));
    return entry.row ?? (entry.packed ? unpack(entry.packed) : undefined);
  };

  const enqueue = (owner: string, id: string, row?: StoredResponse) => {
    const key = keyOf(owner, id);
    const old = waiting.get(key);
    if (old) forget(key, old);
    const itemIds = row === undefined ? [] : itemIdsOf(row);
    waiting.set(key, { owner, id, row, itemIds });
    for (const item of itemIds) waitingItems.set(keyOf(owner, item), id);
    schedule(waiting.size >= BATCH ? 0 : flushAfter);
  };

  const knownOf = (owner: string, id: string): KnownResponse | undefined => {
    const entry = waiting.get(keyOf(owner, id));
    if (!entry) return withFile((f) => f.known(owner, id));
    const row = entry.row ?? entry.packed;
    return row && { keeper: row.keeper ?? undefined };
  };

  const get = (owner: string, id: string): StoredResponse | undefined => {
    const entry = waiting.get(keyOf(owner, id));
    if (!entry) return withFile((f) => f.read(owner, id));
    return entry.row ?? (entry.packed ? unpack(entry.packed) : undefined);
  };

  /** The conversation goes on from here: it is the last that may be pruned. */
  const continued = (chain: Chain, id: string, owner: string): Chain => {
    if ('missing' in chain || !file) return chain;
    touched.set(keyOf(owner, id), { owner, id });
    schedule(options.flushAfter ?? 200);
    return chain;
  };

  open();

  return {
    put(row) {
      const { space = '', began = Number.POSITIVE_INFINITY } = row;
      if (!closed && (erased.get(space) ?? 0) < began) enqueue(row.owner, row.id, row);
    },
    get: (id, owner) => get(owner, id),
    known: (id, owner) => knownOf(owner, id),
    delete(id, owner) {
      const key = keyOf(owner, id);
      const entry = waiting.get(key);
      if (knownOf(owner, id) === undefined) return false;
      // Without a file there is nothing that could bring it back.
      if (path === undefined && entry) forget(key, entry);
      else enqueue(owner, id);
      return true;
    },
    chain(id, owner) {
      return continued(
        walkChain(id, (at) => linkOf(owner, at)),
        id,
        owner,
      );
    },
    async chainInSteps(id, owner) {
      const steps = chainSteps(id, (at) => linkOf(owner, at));
      let began = performance.now();
      for (;;) {
        const step = steps.next();
        if (step.done === true) return continued(step.value, id, owner);
        if (performance.now() - began < STEP_MS) continue;
        await new Promise((resolve) => setImmediate(resolve));
        began = performance.now();
      }
    },
    items(ids, owner) {
      const wanted = new Map<string, string[]>();
      for (const id of ids) {
        const response =
          waitingItems.get(keyOf(owner, id)) ?? withFile((f) => f.responseOf(owner, id));
        if (response === undefined) continue;
        const list = wanted.get(response);
        if (list) list.push(id);
        else wanted.set(response, [id]);
      }
      const found = new Map<string, KnownItem>();
      for (const [response, list] of wanted) {
        const row = get(owner, response);
        if (row === undefined) continue;
        const known = itemsById(row);
        for (const id of list) {
          const item = known.get(id);
          if (item !== undefined) found.set(id, { item, keeper: row.keeper });
        }
      }
      return found;
    },
    eraseSpace(space) {
      const mark = spaceMark(space);
      const at = instant();
      for (const [one, before] of erased) if (before < at - ERASURES_KEPT) erased.delete(one);
      erased.set(mark, at);
      const erase = () => {
        for (const [key, entry] of waiting) {
          if ((entry.row ?? entry.packed)?.space === mark) forget(key, entry);
        }
        withFile((f) => f.eraseSpace(mark, at));
      };
      erase();
      const again = setTimeout(() => {
        if (!closed) erase();
      }, ERASE_AGAIN);
      again.unref();
    },
    flush() {
      while (writeBatch());
    },
    close() {
      if (closed) return;
      while (writeBatch());
      closed = true;
      clearTimeout(timer);
      try {
        file?.close();
      } catch {
        // What was committed is safe; a handle that cannot be closed goes with the process.
      }
      file = undefined;
    },
    get persistent() {
      return file !== undefined;
    },
  };
}

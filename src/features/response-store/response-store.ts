/** The bounded, persistent store of responses: writes wait in memory and go to the file in batches. */

import type { JsonObject } from '../../lib/json.ts';
import { type Chain, walkChain } from './chain.ts';
import {
  DEFAULT_LIMITS,
  type Limits,
  type Link,
  type PackedRow,
  pack,
  type StoredResponse,
  spaceMark,
  unpack,
} from './row.ts';
import { type Change, openResponseFile, type ResponseFile } from './sqlite-store.ts';

export interface ResponseStore {
  /** Queues the row; reads see it at once. The same owner's row of the same id is replaced. */
  put(row: StoredResponse): void;
  /** Undefined where it is unknown, deleted, or another owner's. */
  get(id: string, owner: string): StoredResponse | undefined;
  /** Deletes one link; false where `get` would have found nothing. */
  delete(id: string, owner: string): boolean;
  /** Everything said up to and with `id`, oldest first, or the id of the link that is missing. */
  chain(id: string, owner: string): Chain;
  /** An output item of any response of this owner, as a later request may refer to it. */
  item(id: string, owner: string): JsonObject | undefined;
  /** Forgets every response that was made with this memory space, now and once what other processes hold is written. */
  eraseSpace(space: string): void;
  /** Writes all that waits; what cannot be written stays queued. Never throws. */
  flush(): void;
  /** Flushes and lets go of the file. */
  close(): void;
  /** Whether a file stands behind it (false: memory only). */
  readonly persistent: boolean;
}

export interface StoreOptions {
  /** The database file; left out: memory only. */
  readonly path?: string;
  readonly limits?: Partial<Limits>;
  /** Milliseconds between a write and its way to the file. */
  readonly flushAfter?: number;
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

/** A change that waits. `row` turns into `packed` when its turn comes, off the request's path. */
interface Waiting {
  readonly owner: string;
  readonly id: string;
  row?: StoredResponse;
  packed?: PackedRow;
}

const keyOf = (owner: string, id: string) => `${owner}\n${id}`;
const codeOf = (error: unknown) => String((error as { code?: unknown } | null)?.code ?? '');
const isPassing = (error: unknown) => /BUSY|LOCKED|FULL|IOERR|NOMEM/.test(codeOf(error));

/** Opens the store. Never throws: with an unusable file it keeps (fewer) responses in memory. */
export function openResponseStore(options: StoreOptions = {}): ResponseStore {
  const limits: Limits = { ...DEFAULT_LIMITS, ...options.limits };
  const now = options.now ?? Date.now;
  const warn = options.warn ?? (() => {});
  const waiting = new Map<string, Waiting>();
  const touched = new Map<string, { owner: string; id: string }>();
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
  const ask = <T>(question: (file: ResponseFile) => T): T | undefined => {
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

  const forget = (key: string, entry: Waiting) => {
    if (waiting.get(key) !== entry) return;
    waiting.delete(key);
    memoryBytes -= entry.packed?.bytes ?? 0;
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

  const packUp = (entry: Waiting) => {
    if (!entry.row) return;
    entry.packed = pack(entry.row);
    entry.row = undefined;
    memoryBytes += entry.packed.bytes;
  };

  /** Writes one batch; true when there is more to do right away. */
  const writeBatch = (): boolean => {
    open();
    const batch: [string, Waiting][] = [];
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
    const changes: Change[] = [...touched.values()].map((touch) => ({ kind: 'touch', ...touch }));
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

  const linkOf = (owner: string, id: string): Link | undefined => {
    const entry = waiting.get(keyOf(owner, id));
    if (!entry) return ask((f) => f.link(owner, id));
    return entry.row ?? (entry.packed ? unpack(entry.packed) : undefined);
  };

  const enqueue = (owner: string, id: string, row?: StoredResponse) => {
    const key = keyOf(owner, id);
    const old = waiting.get(key);
    if (old) forget(key, old);
    waiting.set(key, { owner, id, row });
    schedule(waiting.size >= BATCH ? 0 : (options.flushAfter ?? 200));
  };

  open();

  return {
    put(row) {
      if (!closed) enqueue(row.owner, row.id, row);
    },
    get(id, owner) {
      const entry = waiting.get(keyOf(owner, id));
      if (!entry) return ask((f) => f.read(owner, id));
      return entry.row ?? (entry.packed ? unpack(entry.packed) : undefined);
    },
    delete(id, owner) {
      const key = keyOf(owner, id);
      const entry = waiting.get(key);
      const known = entry
        ? entry.row !== undefined || entry.packed !== undefined
        : ask((f) => f.has(owner, id)) === true;
      if (!known) return false;
      // Without a file there is nothing that could bring it back.
      if (path === undefined && entry) forget(key, entry);
      else enqueue(owner, id);
      return true;
    },
    chain(id, owner) {
      const chain = walkChain(id, (at) => linkOf(owner, at));
      if (!('missing' in chain) && file) {
        touched.set(keyOf(owner, id), { owner, id });
        schedule(options.flushAfter ?? 200);
      }
      return chain;
    },
    item(id, owner) {
      const within = (link: Link | undefined) => link?.output.find((item) => item.id === id);
      const quoted = JSON.stringify(id);
      for (const entry of waiting.values()) {
        // The text is searched first: most rows need no parse.
        if (entry.owner !== owner || entry.packed?.output.includes(quoted) === false) continue;
        const found = within(linkOf(owner, entry.id));
        if (found) return found;
      }
      const response = ask((f) => f.responseOf(owner, id));
      return response === undefined ? undefined : within(linkOf(owner, response));
    },
    eraseSpace(space) {
      const mark = spaceMark(space);
      const erase = () => {
        for (const [key, entry] of waiting) {
          if ((entry.row ?? entry.packed)?.space === mark) forget(key, entry);
        }
        ask((f) => f.eraseSpace(mark));
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

/** The bounded store of responses: queues changes in memory and writes them to its file in batches. */

import type { JsonObject } from '../../lib/json/json.ts';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import { nameHash, RecentErasures } from '../../state/erasures.ts';
import { type Chain, chainSteps, walkChain } from './chain.ts';
import { keyOf, type PendingWrite, PendingWrites } from './pending-writes.ts';
import {
  type KnownResponse,
  openResponseFile,
  type QueuedChange,
  type ResponseFile,
} from './sqlite-store.ts';
import {
  type ChainLink,
  DEFAULT_LIMITS,
  itemsById,
  type ResponseLimits,
  type StoredResponse,
  unpack,
} from './stored-response.ts';

/** What a request names. */
export interface NamedResponses {
  readonly responses?: readonly string[];
  /** What the responses continue is wanted, too. */
  readonly chains?: boolean;
  /** Output items. */
  readonly items?: readonly string[];
}

/** Answers at once. @throws GatewayError overloaded (503) where shared engines that would know are away */
export interface ResponseReads {
  /** Undefined where the response is unknown, deleted, or another owner's. */
  get(id: string, owner: string): StoredResponse | undefined;
  /** The keeper of the response, without reading it; undefined where `get` would find nothing. */
  known(id: string, owner: string): KnownResponse | undefined;
  /** The items up to and including `id`, oldest first, or the id of the missing link. */
  chain(id: string, owner: string): Chain;
  /** The same in steps that let other work run. */
  chainInSteps(id: string, owner: string): Promise<Chain>;
  /** The owner's output items with these ids; unknown ones are left out. */
  items(ids: Iterable<string>, owner: string): ReadonlyMap<string, KnownItem>;
}

/** Responses of this machine, or of all replicas. */
export interface ResponseStore {
  /** Queues the row; what is fetched from now on has it. It replaces the owner's row of the same id. */
  put(row: StoredResponse): void;
  /**
   * When what was put last can be read on every replica, or is late. Left out: it can be read at once where it is
   * to be read.
   */
  sent?(): Promise<void>;
  /**
   * What the request names, ready to be read.
   * @param lenient what cannot be looked up now counts as unknown
   */
  fetch(
    named: NamedResponses,
    owner: string,
    lenient?: boolean,
  ): ResponseReads | Promise<ResponseReads>;
  /**
   * Changes one response as all processes and replicas see it: of two changes, the second sees what the first has made.
   * False: there is none, or nothing to change.
   * @param make gives the row that takes its place, or undefined; may be called more than once
   * @throws GatewayError 503 where the shared engines are away
   */
  change(
    id: string,
    owner: string,
    make: (row: StoredResponse) => StoredResponse | undefined,
  ): boolean | Promise<boolean>;
  /** Deletes one response; false where there is none. @throws GatewayError */
  delete(id: string, owner: string): boolean | Promise<boolean>;
  /** Deletes every response made with this memory space. @throws GatewayError */
  eraseSpace(space: string): void | Promise<void>;
  /**
   * The same for the hash of its name.
   * @param at as of `instant`: what was begun later stays; left out: now
   */
  forgetSpace(hash: string, at?: number): void | Promise<void>;
  /** Writes everything queued; what cannot be written stays queued. Never throws. */
  flush(): void;
  /** Flushes and closes the file. */
  close(): void | Promise<void>;
  /** True with a file, false in memory only. */
  readonly persistent: boolean;
}

/** Responses of this machine, which can be read without being fetched. */
export interface LocalResponses extends ResponseStore, ResponseReads {
  change(
    id: string,
    owner: string,
    make: (row: StoredResponse) => StoredResponse | undefined,
  ): boolean;
  delete(id: string, owner: string): boolean;
  /** Now, and again after other processes have written theirs. */
  eraseSpace(space: string): void;
  forgetSpace(hash: string, at?: number): void;
  close(): void;
}

/** An output item that a later request may refer to, and the provider that knows it by its id. */
export interface KnownItem extends KnownResponse {
  readonly item: JsonObject;
}

export interface StoreOptions {
  /** The database file; left out: memory only. */
  readonly path?: string;
  readonly limits?: Partial<ResponseLimits>;
  /** Milliseconds between a change and its write to the file. */
  readonly flushAfter?: number;
  /** Other processes use the file at the same time, so changes are written at once. */
  readonly shared?: boolean;
  /** Called once per problem: the file is unusable or busy for long, or rows were dropped. */
  readonly warn?: (message: string, cause?: unknown) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

// A full batch is written at once. A batch is one transaction of some milliseconds.
const BATCH = 64;
const BATCH_BYTES = 2_000_000;
const PRUNE_STEP = 200;
const RETRY_AFTER = 2_000;
// Milliseconds after which other processes have written what they had queued at an erasure.
const ERASE_AGAIN = 2_000;
// Milliseconds of work on a long chain before other work gets its turn.
const STEP_MS = 5;

const codeOf = (error: unknown) => String((error as { code?: unknown } | null)?.code ?? '');
const isPassing = (error: unknown) => /BUSY|LOCKED|FULL|IOERR|NOMEM/.test(codeOf(error));

/** Opens the store. Never throws: without a usable file it keeps fewer responses, in memory. */
export function openResponseStore(options: StoreOptions = {}): LocalResponses {
  const limits: ResponseLimits = { ...DEFAULT_LIMITS, ...options.limits };
  const now = options.now ?? Date.now;
  const warn = options.warn ?? (() => {});
  const pending = new PendingWrites(limits);
  const flushAfter = options.shared === true ? 0 : (options.flushAfter ?? 200);
  const touched = new Map<string, { owner: string; id: string }>();
  /** By the hashes of the spaces. */
  const erasures = new RecentErasures();
  let file: ResponseFile | undefined;
  let path = options.path;
  let retryAt = 0;
  let lastProblem = '';
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;

  const fail = (what: string, error: unknown) => {
    if (!isPassing(error)) {
      path = undefined;
      try {
        file?.close();
      } catch {
        // The file is not used any more.
      }
      file = undefined;
    }
    retryAt = now() + RETRY_AFTER;
    if (lastProblem === what) return;
    lastProblem = what;
    const message = error instanceof Error ? error.message : String(error);
    const plan = path === undefined ? 'keeping responses in memory only' : 'trying again later';
    warn(`response store: ${what} (${message}); ${plan}`, error);
  };

  const open = () => {
    if (file || path === undefined || closed || now() < retryAt) return;
    try {
      file = openResponseFile(path);
    } catch (error) {
      fail(`cannot open ${path}`, error);
    }
  };

  /** Reads from the file; undefined without one or where it fails. */
  const withFile = <T>(question: (file: ResponseFile) => T): T | undefined => {
    if (!file) return undefined;
    try {
      return question(file);
    } catch (error) {
      fail('cannot read the file', error);
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
      // One batch per turn of the event loop.
      if (writeBatch()) schedule(0);
    }, after);
    timer.unref();
  };

  /** Drops what memory has no room for. */
  const trim = () => {
    const dropped = pending.trim();
    if (dropped > 0 && path !== undefined && lastProblem !== 'dropped') {
      lastProblem = 'dropped';
      warn(`response store: ${dropped} responses that could not be written were dropped`);
    }
  };

  /** Writes one batch; true when there is more to do at once. */
  const writeBatch = (): boolean => {
    open();
    const batch: PendingWrite[] = [];
    let bytes = 0;
    for (const write of pending.values()) {
      if (file && (batch.length === BATCH || bytes >= BATCH_BYTES)) break;
      pending.pack(write);
      bytes += write.packed?.bytes ?? 0;
      batch.push(write);
    }
    if (!file) {
      trim();
      if (path !== undefined && pending.size > 0) schedule(RETRY_AFTER);
      return false;
    }
    const changes: QueuedChange[] = [...touched.values()].map((touch) => ({
      kind: 'touch',
      ...touch,
    }));
    for (const { owner, id, packed } of batch) {
      changes.push(packed ? { kind: 'put', row: packed } : { kind: 'delete', owner, id });
    }
    try {
      if (changes.length > 0) file.apply(changes, now());
      for (const write of batch) pending.remove(write);
      touched.clear();
      const pruned = file.prune(limits, now(), PRUNE_STEP);
      lastProblem = '';
      return pending.size > 0 || pruned >= PRUNE_STEP;
    } catch (error) {
      fail('cannot write', error);
      trim();
      if (path !== undefined) schedule(RETRY_AFTER);
      return false;
    }
  };

  const linkOf = (owner: string, id: string): ChainLink | undefined => {
    const write = pending.get(owner, id);
    if (!write) return withFile((f) => f.link(owner, id));
    return write.row ?? (write.packed ? unpack(write.packed) : undefined);
  };

  const enqueue = (owner: string, id: string, row?: StoredResponse) => {
    pending.add(owner, id, row);
    schedule(pending.size >= BATCH ? 0 : flushAfter);
  };

  const knownOf = (owner: string, id: string): KnownResponse | undefined => {
    const write = pending.get(owner, id);
    if (!write) return withFile((f) => f.known(owner, id));
    const row = write.row ?? write.packed;
    return row && { keeper: row.keeper ?? undefined };
  };

  const get = (owner: string, id: string): StoredResponse | undefined => {
    const write = pending.get(owner, id);
    if (!write) return withFile((f) => f.read(owner, id));
    return write.row ?? (write.packed ? unpack(write.packed) : undefined);
  };

  /** Marks the conversation as just used, so that it is pruned last. */
  const continued = (chain: Chain, id: string, owner: string): Chain => {
    if ('missing' in chain || !file) return chain;
    touched.set(keyOf(owner, id), { owner, id });
    schedule(options.flushAfter ?? 200);
    return chain;
  };

  const forgetSpace = (mark: string, at = preciseNow()) => {
    erasures.add(mark, at);
    const erase = () => {
      for (const write of pending.values()) {
        if ((write.row ?? write.packed)?.space === mark) pending.remove(write);
      }
      withFile((f) => f.eraseSpace(mark, at));
    };
    erase();
    const again = setTimeout(() => {
      if (!closed) erase();
    }, ERASE_AGAIN);
    again.unref();
  };

  open();

  const store: LocalResponses = {
    fetch: () => store,
    put(row) {
      const { space = '', began = Number.POSITIVE_INFINITY } = row;
      if (!closed && !erasures.hasSince(space, began)) enqueue(row.owner, row.id, row);
    },
    get: (id, owner) => get(owner, id),
    known: (id, owner) => knownOf(owner, id),
    change(id, owner, make) {
      open();
      // The file decides between processes, once it has what is queued here.
      for (; file && pending.get(owner, id) !== undefined; ) if (!writeBatch()) break;
      if (file && pending.get(owner, id) === undefined) {
        try {
          return file.change(owner, id, make, now());
        } catch (error) {
          fail('cannot write', error);
        }
      }
      const row = get(owner, id);
      const next = row && make(row);
      if (next === undefined) return false;
      enqueue(owner, id, next);
      return true;
    },
    delete(id, owner) {
      const write = pending.get(owner, id);
      if (knownOf(owner, id) === undefined) return false;
      // Without a file, removing the queued row is enough.
      if (path === undefined && write) pending.remove(write);
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
        const response = pending.responseOf(owner, id) ?? withFile((f) => f.responseOf(owner, id));
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
    eraseSpace: (space) => forgetSpace(nameHash(space)),
    forgetSpace,
    flush() {
      while (writeBatch());
    },
    close() {
      if (closed) return;
      try {
        file?.waitForLastWrite();
      } catch {
        // The write says what is wrong.
      }
      while (writeBatch());
      closed = true;
      clearTimeout(timer);
      try {
        file?.close();
      } catch {
        // Everything committed is safe; the process's end closes the handle.
      }
      file = undefined;
    },
    get persistent() {
      return file !== undefined;
    },
  };
  return store;
}

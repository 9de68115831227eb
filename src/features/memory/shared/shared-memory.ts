/** The memory that all replicas share, in Postgres: ranked as the embedded one, here, from what one trip finds. */

import { asGatewayError, GatewayError } from '../../../conversation/errors.ts';
import type { RecalledEvent, RecallQuery } from '../../../conversation/memory.ts';
import { preciseNow } from '../../../lib/loop/precise-time.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { EngineAway, type Sql } from '../../../state/engines/engine.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import type { EventStore, MemoryBackend, MemoryObserver, RecallKind } from '../backend.ts';
import { captureQueue } from '../capture-queue.ts';
import {
  checkEvent,
  checkSpace,
  clampedEvents,
  DEFAULT_RECALL,
  eventTurn,
  type MemoryLimits,
  shortened,
} from '../event.ts';
import { inSteps } from '../store/add-in-steps.ts';
import { backFill } from '../store/back-fill.ts';
import type { Embedder } from '../store/embedder.ts';
import { SealedEvents, withId } from './sealed-events.ts';
import { sharedRecall } from './shared-recall.ts';
import { type QueuedEvent, SharedStore } from './shared-store.ts';
import { SharedVectors } from './shared-vectors.ts';

export interface SharedMemoryOptions {
  readonly database: Sql;
  readonly seal: TextSeal;
  readonly limits: MemoryLimits;
  readonly dedupeMs: number;
  readonly embedder?: Embedder | undefined;
  readonly observer: MemoryObserver;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Milliseconds that a recall waits for what its own replica has captured and not written. */
const FLUSH_MS = 500;
/** Milliseconds between the first use and the look for erasures that another replica left unfinished. */
const SWEEP_AFTER = 1000;

export function sharedMemory(options: SharedMemoryOptions): MemoryBackend {
  const { database, limits, dedupeMs, embedder, observer, now = Date.now } = options;
  const sealed = new SealedEvents(options.seal);
  const store = new SharedStore({ database, events: sealed, limits, dedupeMs });
  const vectors = new SharedVectors(store, sealed);
  const backFiller =
    embedder &&
    backFill({
      work: vectors.work(),
      embedder,
      onFailure: (thrown) => {
        if (!(thrown instanceof EngineAway)) observer.embeddingsFailed(messageOf(thrown));
      },
    });
  let used = false;
  let sweeping: ReturnType<typeof setTimeout> | undefined;
  let closed = false;

  /** Uses the database. What it throws becomes an error for the client without internal details. */
  async function withStore<T>(use: (store: SharedStore) => Promise<T>): Promise<T> {
    if (closed) throw new GatewayError('overloaded', 'The memory is closing.');
    if (!used) firstUse();
    try {
      return await use(store);
    } catch (thrown) {
      if (thrown instanceof GatewayError) throw thrown;
      if (thrown instanceof EngineAway) {
        throw new GatewayError('overloaded', 'The memory cannot be reached; try again.', {
          cause: thrown,
        });
      }
      observer.problem(messageOf(thrown));
      throw new GatewayError('internal', 'The memory cannot be used.', { cause: thrown });
    }
  }
  /** A replica that ended while it erased a space, or made vectors, left the rest to others. */
  function firstUse(): void {
    used = true;
    backFiller?.wake();
    sweeping = setTimeout(() => void store.sweep().catch(() => {}), SWEEP_AFTER);
    sweeping.unref();
  }

  const queue = captureQueue<QueuedEvent>({
    sizeOf: ({ event }) => 200 + event.text.length * 2,
    onDropped: (count) => observer.captured('dropped', count),
    // That the database is away is told by the engine, once.
    onTrouble: (thrown) => {
      const cause = asGatewayError(thrown).cause;
      if (!(thrown instanceof EngineAway || cause instanceof EngineAway)) {
        observer.problem(messageOf(thrown));
      }
    },
    async write(items) {
      const outcomes = await withStore((all) => all.capture(items));
      for (const outcome of ['stored', 'duplicate', 'full', 'erased'] as const) {
        observer.captured(outcome, outcomes.filter((one) => one === outcome).length);
      }
      if (outcomes.includes('stored')) backFiller?.wake();
    },
  });

  const checkedEvents = (...[space, events, paramOf]: Parameters<EventStore['add']>) => {
    checkSpace(space);
    const time = now();
    return events.map((event, at) => checkEvent(event, limits, time, paramOf(at)));
  };
  const added = <T>(result: T): T => {
    backFiller?.wake();
    return result;
  };
  const eventStore: EventStore = {
    async add(space, events, paramOf) {
      const checked = checkedEvents(space, events, paramOf);
      return added(await withStore((all) => all.add(space, checked)));
    },
    async addInSteps(space, events, paramOf) {
      const steps = inSteps(
        checkedEvents(space, events, paramOf),
        (step) => withStore((all) => all.add(space, step)),
        (id) => withStore((all) => all.remove(space, id)),
      );
      return added(await steps);
    },
    async change(space, id, fields) {
      const old = await withStore((all) => all.get(checkSpace(space), id));
      if (old === undefined) return undefined;
      const event = { ...checkEvent({ ...old, ...fields }, limits, now()), id };
      return added(await withStore((all) => all.change(space, event)));
    },
    settled: () => queue.flush(),
    spaces: (after, limit) => withStore((all) => all.spaces(after, limit)),
    get: (space, id) => withStore((all) => all.get(checkSpace(space), id)),
    list: (space, query) => withStore((all) => all.list(checkSpace(space), query)),
    remove: (space, id) => withStore((all) => all.remove(checkSpace(space), id)),
  };

  async function recall(name: string, query: RecallQuery): Promise<readonly RecalledEvent[]> {
    const { speaker } = query;
    const began = performance.now();
    let kind: RecallKind = 'failed';
    try {
      checkSpace(name);
      const limit = query.limit ?? DEFAULT_RECALL;
      // What this replica captured is found, unless its write is late.
      if (queue.waiting > 0) await Promise.race([queue.flush(), Bun.sleep(FLUSH_MS)]);
      const text = shortened(query.query);
      const vector =
        limit <= 0 ? undefined : await embedder?.embedQuery(text, query.signal, query.payer);
      kind = vector !== undefined ? 'hybrid' : embedder === undefined ? 'text' : 'fallback';
      if (limit <= 0) return [];
      const given = { space: name, query: { ...query, query: text }, speaker, limit, now: now() };
      return await withStore((all) =>
        sharedRecall(all, vectors, sealed, {
          ...given,
          vector: vector && [vector, embedder!.name],
        }),
      );
    } catch (thrown) {
      kind = 'failed';
      throw thrown;
    } finally {
      observer.recalled(kind, performance.now() - began);
    }
  }

  return {
    eventStore,
    recall,
    async capture(space, events, began = preciseNow(), turn) {
      checkSpace(space);
      if (closed) throw new GatewayError('overloaded', 'The memory is closing.');
      const clamped = events.flatMap((event) => clampedEvents(event, limits, now()));
      const own = turn && eventTurn(turn, clamped);
      queue.add(
        clamped.map((event) => ({ space, event: withId(event), began, ...(own && { turn: own }) })),
      );
    },
    async erase(space) {
      checkSpace(space);
      const waiting = await queue.remove((one) => one.space === space);
      const events = await withStore((all) => all.erase(space));
      vectors.drop(space);
      await withStore((all) => all.sweep());
      return events + waiting;
    },
    async close() {
      await queue.close();
      closed = true;
      clearTimeout(sweeping);
      await backFiller?.close();
    },
  };
}

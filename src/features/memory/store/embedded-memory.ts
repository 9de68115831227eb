/** The memory in this process: a database file, with vectors where an embedder is configured. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { RecalledEvent, RecallQuery } from '../../../conversation/memory.ts';
import { preciseNow } from '../../../lib/loop/precise-time.ts';
import { othersTurn } from '../../../lib/loop/steps.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { fileAt, isDamage, setAside } from '../../../state/versioned-store.ts';
import type { EventStore, MemoryBackend, MemoryObserver, RecallKind } from '../backend.ts';
import { captureQueue } from '../capture-queue.ts';
import {
  type CheckedEvent,
  checkEvent,
  checkSpace,
  clampedEvents,
  DEFAULT_RECALL,
  eventTurn,
  type MemoryLimits,
  shortened,
} from '../event.ts';
import { readQuestion } from '../ranking/question.ts';
import { NEAREST, type Ranked, rank } from '../ranking/rank.ts';
import { inSteps } from './add-in-steps.ts';
import { type BackFill, backFill, oneProcess } from './back-fill.ts';
import type { Embedder } from './embedder.ts';
import {
  type CapturedEvent,
  type MemoryStore,
  openMemoryStore,
  type StoredSpace,
} from './memory-store.ts';
export interface EmbeddedOptions {
  /** The database file; opened when it is first needed. */
  readonly path: string;
  readonly limits: MemoryLimits;
  readonly dedupeMs: number;
  readonly embedder?: Embedder;
  readonly observer: MemoryObserver;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Milliseconds between a removal and the rewriting of the index without it. */
const TIDY_AFTER = 2000;

/** A recall makes missing digests so often; events that come in between may then be left out. */
const DIGEST_TRIES = 3;

export function embeddedMemory(options: EmbeddedOptions): MemoryBackend {
  const { path, limits, dedupeMs, embedder, observer, now = Date.now } = options;
  let store: MemoryStore | undefined;
  let backFiller: BackFill | undefined;
  let tidyTimer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  /** The identity of the opened file. */
  let openedFile = 0;

  const opened = (): MemoryStore => {
    if (closed) throw new GatewayError('overloaded', 'The memory is closing.');
    if (store !== undefined) return store;
    store = openMemoryStore({ path, limits: () => limits });
    openedFile = fileAt(path);
    // A process that ended while it erased a space left the rest to the next process.
    if (!store.isSwept()) tidySoon(0);
    if (embedder !== undefined) {
      const onFailure = (thrown: unknown) => observer.embeddingsFailed(messageOf(thrown));
      backFiller = backFill({ work: oneProcess(store.vectors), embedder, onFailure });
      backFiller.wake();
    }
    return store;
  };
  /** Rewrites the file without removed data a moment later, for many removals at once. */
  const tidySoon = (after: number) => {
    clearTimeout(tidyTimer);
    tidyTimer = setTimeout(() => {
      tidyTimer = undefined;
      void sweepUp(withStore).catch(() => {});
    }, after);
    tidyTimer.unref();
  };
  /** Moves a damaged file away without deleting it; the next use creates a new one. */
  const replaceDamagedFile = (cause: unknown) => {
    const damaged = store;
    if (damaged === undefined) return;
    store = undefined;
    backFiller = undefined;
    damaged.close();
    setAside(path, openedFile, cause);
  };
  /** Uses the database. What it throws becomes an error for the client without internal details. */
  const withStore = <T>(use: (store: MemoryStore) => T): T => {
    try {
      return use(opened());
    } catch (thrown) {
      if (thrown instanceof GatewayError) throw thrown;
      observer.problem(messageOf(thrown));
      if (isDamage(thrown)) replaceDamagedFile(thrown);
      throw /BUSY|LOCKED/.test(String((thrown as { code?: unknown }).code))
        ? new GatewayError('overloaded', 'The memory is busy; try again.', { cause: thrown })
        : new GatewayError('internal', 'The memory cannot be used.', { cause: thrown });
    }
  };

  const queue = captureQueue<CapturedEvent>({
    sizeOf: ({ event }) => 200 + event.text.length * 2,
    onDropped: (count) => observer.captured('dropped', count),
    onTrouble: (thrown) => observer.problem(messageOf(thrown)),
    write(items) {
      const counts = opened().capture(items, dedupeMs);
      observer.captured('stored', counts.stored);
      observer.captured('duplicate', counts.duplicates);
      observer.captured('full', counts.full);
      observer.captured('erased', counts.erased);
      if (counts.stored > 0) backFiller?.wake();
    },
  });

  const add = (space: string, events: readonly CheckedEvent[]) => {
    const added = withStore((file) => file.add(space, events));
    backFiller?.wake();
    return added;
  };
  const checkedEvents = (...[space, events, paramOf]: Parameters<EventStore['add']>) => {
    checkSpace(space);
    const time = now();
    return events.map((event, at) => checkEvent(event, limits, time, paramOf(at)));
  };
  const eventStore: EventStore = {
    add: async (space, events, paramOf) => add(space, checkedEvents(space, events, paramOf)),
    addInSteps: async (space, events, paramOf) =>
      inSteps(
        checkedEvents(space, events, paramOf),
        async (step) => add(space, step),
        async (id) => withStore((file) => file.remove(space, id)),
      ),
    async change(space, id, fields) {
      await queue.settle();
      return withStore((file) => {
        const old = file.get(checkSpace(space), id);
        if (old === undefined) return undefined;
        const event = checkEvent({ ...old, ...fields }, limits, now());
        const changed = file.change(space, { ...event, id });
        tidySoon(TIDY_AFTER);
        backFiller?.wake();
        return changed;
      });
    },
    settled: () => queue.settle(),
    async spaces(after, limit) {
      await queue.settle();
      return withStore((file) => file.spaces(after, limit));
    },
    async get(space, id) {
      await queue.settle();
      return withStore((file) => file.get(checkSpace(space), id));
    },
    async list(space, query) {
      await queue.settle();
      return withStore((file) => file.list(checkSpace(space), query));
    },
    async remove(space, id) {
      await queue.settle();
      const removed = withStore((file) => file.remove(checkSpace(space), id));
      if (removed) tidySoon(TIDY_AFTER);
      return removed;
    },
  };

  /** Of events from before there were digests, in steps that let other work run. */
  async function makeDigests(rows: readonly number[]): Promise<void> {
    for (let left = rows; left.length > 0; left = withStore((file) => file.digests.make(left))) {
      await othersTurn();
    }
  }

  async function recall(name: string, query: RecallQuery): Promise<readonly RecalledEvent[]> {
    const { speaker } = query;
    const began = performance.now();
    let kind: RecallKind = 'failed';
    try {
      checkSpace(name);
      await queue.settle();
      const limit = query.limit ?? DEFAULT_RECALL;
      if (limit <= 0 || withStore((file) => file.space(name)) === undefined) {
        kind = 'text';
        return [];
      }
      const text = shortened(query.query);
      const vector = await embedder?.embedQuery(text, query.signal, query.payer);
      kind = vector !== undefined ? 'hybrid' : embedder === undefined ? 'text' : 'fallback';
      const question = readQuestion(text, now(), query);
      const asked = { question, speaker, limit, now: now() };
      for (let tries = 0; ; tries++) {
        // Read again after each wait: the space may have been erased meanwhile.
        const without = withStore((file) => {
          const space = file.space(name);
          if (space === undefined) return { events: [] };
          const nearest = vector && file.vectors.nearest(space.id, embedder!.name, vector, NEAREST);
          const found = file.digests.find(space, question, nearest?.map(([row]) => row) ?? []);
          if (found.without.length > 0 && tries < DIGEST_TRIES) return { without: found.without };
          return { events: withTexts(file, space, rank(found, { ...asked, nearest })) };
        });
        if (without.events !== undefined) return without.events;
        await makeDigests(without.without);
      }
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
      queue.add(clamped.map((event) => ({ space, event, began, ...(own && { turn: own }) })));
    },
    async erase(space) {
      checkSpace(space);
      const waiting = await queue.remove((one) => one.space === space);
      const found = withStore((file) => file.space(space));
      const events = withStore((file) => file.forget(space, preciseNow()));
      if (found !== undefined) withStore((file) => file.vectors.drop(found.id));
      await sweepUp(withStore);
      return events + waiting;
    },
    async close() {
      store?.waitForLastWrite();
      await queue.close();
      if (tidyTimer !== undefined) {
        clearTimeout(tidyTimer);
        await sweepUp(withStore).catch(() => {});
      }
      closed = true;
      await backFiller?.close();
      store?.close();
      store = undefined;
    },
  };
}

function withTexts(
  file: MemoryStore,
  space: StoredSpace,
  ranked: readonly Ranked[],
): readonly RecalledEvent[] {
  const rows = ranked.map(({ row }) => row);
  const events = new Map(file.eventsByRow(space, rows).map((event) => [event.row, event]));
  return ranked.flatMap(({ row, score }) => {
    const found = events.get(row);
    if (found === undefined) return [];
    const { row: _, ...event } = found;
    return { ...event, score };
  });
}

/** Removes erased spaces in short steps, then every trace of removed data in the file. */
async function sweepUp(withStore: <T>(use: (store: MemoryStore) => T) => T): Promise<void> {
  do {
    while (withStore((file) => file.sweep())) await othersTurn();
    for (let first = true; withStore((file) => file.termIndex.tidy(first)); first = false) {
      await othersTurn();
    }
  } while (!withStore((file) => file.isSwept()));
  while (withStore((file) => file.vacuum())) await othersTurn();
  for (let tries = 0; tries < 20; tries++) {
    if (withStore((file) => file.flush())) return;
    await Bun.sleep(50);
  }
}

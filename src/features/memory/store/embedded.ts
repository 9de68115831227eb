/** The memory in this process: a database file, events ranked by words and, with an embedder, by vectors too. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { MemoryEvent, RecalledEvent, RecallQuery } from '../../../conversation/memory.ts';
import { preciseNow } from '../../../lib/loop/precise-time.ts';
import { fileAt, isDamage, setAside } from '../../../lib/store/versioned-store.ts';
import type { EventBook, MemoryBase, MemoryWatch, RecallKind } from '../base.ts';
import { captureQueue } from '../capture-queue.ts';
import { checkEvent, checkSpace, fitted, indexed, type MemoryLimits } from '../event.ts';
import { worthOf } from '../ranking/kinds.ts';
import { fitOf, fused, type Statistics, scored } from '../ranking/ranking.ts';
import { queryTerms } from '../ranking/terms.ts';
import { type BackFill, backFill } from './back-fill.ts';
import type { Embedder } from './embedder.ts';
import { type Captured, type MemoryStore, openMemoryStore, type Space } from './memory-store.ts';

export interface EmbeddedOptions {
  /** The database file; opened when it is first needed. */
  readonly path: string;
  readonly limits: MemoryLimits;
  readonly dedupeMs: number;
  readonly embedder?: Embedder;
  readonly watch: MemoryWatch;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Events of a recall where the caller names no number. */
export const DEFAULT_RECALL = 10;
/** Characters of a question that are looked at, from both ends. */
const QUERY_LENGTH = 1000;
/** Candidates whose words are weighed exactly, and how many of each list are fused. */
const POOL = 128;
const FUSED = 50;
/** What fits less than this share of the best is left out where words alone decide. */
const FLOOR = 0.15;
/** Characters of texts that are taken in at a time: each of them is indexed. */
const STEP_CHARACTERS = 16_000;
/** Others have their turn this often, in milliseconds. */
const STEP_MS = 10;
/** Milliseconds between a removal and the rewriting of the index without it. */
const TIDY_AFTER = 2000;

interface Ranked {
  /** What it is worth as an answer included. */
  readonly relevant: number;
  readonly event: RecalledRow;
  /** It tells something, and neither asks nor repeats. */
  readonly states: boolean;
  /** It holds the word of the question that says most: it is given, however little it fits else. */
  readonly keyed?: boolean;
}
type RecalledRow = ReturnType<MemoryStore['rows']>[number];

export function embeddedMemory(options: EmbeddedOptions): MemoryBase {
  const { path, limits, dedupeMs, embedder, watch, now = Date.now } = options;
  let store: MemoryStore | undefined;
  let filling: BackFill | undefined;
  let tidying: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  let there = 0;

  const opened = (): MemoryStore => {
    if (closed) throw new GatewayError('overloaded', 'The memory is closing.');
    if (store !== undefined) return store;
    store = openMemoryStore({ path, limits: () => limits });
    there = fileAt(path);
    // A process that ended while it erased a space left the rest to the next one.
    if (store.sweep()) tidySoon(0);
    if (embedder !== undefined) {
      const onFailure = (thrown: unknown) => watch.embeddingsFailed(wordsOf(thrown));
      filling = backFill({ vectors: store.vectors, embedder, onFailure });
      filling.wake();
    }
    return store;
  };
  /** What was removed leaves the file a moment later, many removals at once. */
  const tidySoon = (after: number) => {
    clearTimeout(tidying);
    tidying = setTimeout(() => {
      tidying = undefined;
      void sweepUp(ask).catch(() => {});
    }, after);
    tidying.unref();
  };
  /** A damaged file is moved away, never deleted, and the next question makes a new one. */
  const startAnew = (cause: unknown) => {
    const damaged = store;
    if (damaged === undefined) return;
    store = undefined;
    filling = undefined;
    damaged.close();
    setAside(path, there, cause);
  };
  /** Asks the database; what it throws becomes an error for the client that tells nothing inner. */
  const ask = <T>(question: (store: MemoryStore) => T): T => {
    try {
      return question(opened());
    } catch (thrown) {
      if (thrown instanceof GatewayError) throw thrown;
      watch.problem(wordsOf(thrown));
      if (isDamage(thrown)) startAnew(thrown);
      throw /BUSY|LOCKED/.test(String((thrown as { code?: unknown }).code))
        ? new GatewayError('overloaded', 'The memory is busy; try again.', { cause: thrown })
        : new GatewayError('internal', 'The memory cannot be used.', { cause: thrown });
    }
  };

  const queue = captureQueue<Captured>({
    sizeOf: ({ event }) => 200 + event.text.length * 2,
    onDropped: (count) => watch.captured('dropped', count),
    onTrouble: (thrown) => watch.problem(wordsOf(thrown)),
    write(items) {
      const kept = opened().keep(items, dedupeMs);
      watch.captured('stored', kept.stored);
      watch.captured('duplicate', kept.duplicates);
      watch.captured('full', kept.full);
      watch.captured('erased', kept.erased);
      if (kept.stored > 0) filling?.wake();
    },
  });

  const book: EventBook = {
    add(space, events, called) {
      checkSpace(space);
      const checked = events.map((event, place) => checkEvent(event, limits, now(), called(place)));
      const added = ask((file) => file.add(space, checked));
      filling?.wake();
      return added;
    },
    async addInSteps(space, events, called) {
      checkSpace(space);
      const checked = events.map((event, place) => checkEvent(event, limits, now(), called(place)));
      const added: (readonly [MemoryEvent, boolean])[] = [];
      try {
        for (const step of stepsOf(checked, ({ text }) => text.length)) {
          if (added.length > 0) await pause();
          added.push(...ask((file) => file.add(space, step)));
        }
      } catch (thrown) {
        for (const [{ id }, isNew] of added) if (isNew) ask((file) => file.remove(space, id));
        throw thrown;
      }
      filling?.wake();
      return added;
    },
    change(space, id, fields) {
      queue.flushNow();
      return ask((file) => {
        const old = file.get(checkSpace(space), id);
        if (old === undefined) return undefined;
        const event = checkEvent({ ...old, ...fields }, limits, now());
        const changed = file.change(space, { ...event, id });
        tidySoon(TIDY_AFTER);
        filling?.wake();
        return changed;
      });
    },
    settled: () => queue.settle(),
    spaces(after, limit) {
      queue.flushNow();
      return ask((file) => file.spaces(after, limit));
    },
    get: (space, id) => {
      queue.flushNow();
      return ask((file) => file.get(checkSpace(space), id));
    },
    list: (space, query) => {
      queue.flushNow();
      return ask((file) => file.list(checkSpace(space), query));
    },
    remove: (space, id) => {
      queue.flushNow();
      const removed = ask((file) => file.remove(checkSpace(space), id));
      if (removed) tidySoon(TIDY_AFTER);
      return removed;
    },
  };

  /** The events of a space that share words with the question, best first. */
  async function byWords(
    file: MemoryStore,
    space: Space,
    terms: readonly string[],
    speaker: string | undefined,
  ): Promise<readonly Ranked[]> {
    const { rows, having, forms } = file.words.find(space.id, space.events, terms, POOL);
    const statistics: Statistics = {
      events: space.events,
      length: space.length / Math.max(1, space.events),
      having,
      forms,
    };
    const known = [...having.keys()];
    const found: (Ranked & { readonly held: readonly string[] })[] = [];
    let began = performance.now();
    for (const event of file.rows(space, rows)) {
      if (performance.now() - began > STEP_MS) {
        await pause();
        began = performance.now();
      }
      const text = indexed({ ...event, source: event.source ?? '' });
      const { relevant, held } = fitOf(text, known, statistics);
      const worth = worthOf(event, speaker);
      if (relevant > 0)
        found.push({ event, relevant: relevant * worth, states: worth === 1, held });
    }
    const told = new Set(found.flatMap(({ states, held }) => (states ? held : [])));
    const key = known
      .filter((term) => told.has(term))
      .sort((a, b) => having.get(a)! - having.get(b)!)[0];
    return found
      .map(({ held, ...one }) => ({
        ...one,
        keyed: one.states && key !== undefined && held.includes(key),
      }))
      .sort((a, b) => b.relevant - a.relevant || b.event.row - a.event.row);
  }

  /** Words and vectors together. */
  function together(
    file: MemoryStore,
    space: Space,
    words: readonly Ranked[],
    vector: Float32Array,
    speaker: string | undefined,
  ): readonly Ranked[] {
    const near = file.vectors.nearest(space.id, embedder!.name, vector, FUSED);
    const first = words.slice(0, FUSED).map(({ event }) => event.row);
    const shares = fused([first, near]);
    return file.rows(space, [...shares.keys()]).map((event) => {
      const worth = worthOf(event, speaker);
      return { event, relevant: shares.get(event.row)! * worth, states: worth === 1 };
    });
  }

  async function recall(name: string, query: RecallQuery): Promise<readonly RecalledEvent[]> {
    const began = performance.now();
    let kind: RecallKind = 'failed';
    try {
      checkSpace(name);
      await queue.settle();
      const limit = query.limit ?? DEFAULT_RECALL;
      if (limit <= 0 || ask((file) => file.space(name)) === undefined) {
        kind = 'text';
        return [];
      }
      const text = shortened(query.query);
      const vector = await embedder?.query(text, query.signal);
      kind = vector !== undefined ? 'hybrid' : embedder === undefined ? 'text' : 'fallback';
      // Asked again: it may have been erased while the vector was on its way.
      const before = ask((file) => file.space(name));
      if (before === undefined) return [];
      const words = await ask((file) => byWords(file, before, queryTerms(text), query.speaker));
      return ask((file) => {
        // And again: others had their turn meanwhile.
        const space = file.space(name);
        if (space?.id !== before.id) return [];
        const found =
          vector === undefined ? words : together(file, space, words, vector, query.speaker);
        return best(found, limit, now(), vector === undefined ? FLOOR : 0);
      });
    } finally {
      watch.recalled(kind, performance.now() - began);
    }
  }

  return {
    book,
    recall,
    async capture(space, events, began = preciseNow()) {
      checkSpace(space);
      if (closed) throw new GatewayError('overloaded', 'The memory is closing.');
      const fit = events.flatMap((event) => fitted(event, limits, now()) ?? []);
      queue.add(fit.map((event) => ({ space, event, began })));
    },
    async erase(space) {
      checkSpace(space);
      const waiting = await queue.remove((one) => one.space === space);
      const found = ask((file) => file.space(space));
      const events = ask((file) => file.forget(space, preciseNow()));
      if (found !== undefined) ask((file) => file.vectors.drop(found.id));
      await sweepUp(ask);
      return events + waiting;
    },
    async close() {
      await queue.close();
      if (tidying !== undefined) {
        clearTimeout(tidying);
        await sweepUp(ask).catch(() => {});
      }
      closed = true;
      await filling?.close();
      store?.close();
      store = undefined;
    },
  };
}

const pause = () => new Promise((resolve) => setImmediate(resolve));

/** Lists of at most {@link STEP_CHARACTERS}, in order; a larger one stands alone. */
function* stepsOf<T>(all: readonly T[], sizeOf: (one: T) => number): Generator<readonly T[]> {
  let step: T[] = [];
  let size = 0;
  for (const one of all) {
    size += sizeOf(one);
    if (size > STEP_CHARACTERS && step.length > 0) {
      yield step;
      step = [];
      size = sizeOf(one);
    }
    step.push(one);
  }
  if (step.length > 0) yield step;
}

/** Removes what was forgotten in steps, so that nobody else waits long, then every trace in the file. */
async function sweepUp(ask: <T>(question: (store: MemoryStore) => T) => T): Promise<void> {
  while (ask((file) => file.sweep())) await pause();
  for (let first = true; ask((file) => file.words.tidy(first)); first = false) await pause();
  for (let tries = 0; tries < 20; tries++) {
    if (ask((file) => file.flush())) return;
    await Bun.sleep(50);
  }
}

/**
 * The best by score, `floor` being the least share of the best one's relevance. Questions and replies
 * take at most half of the places while there are statements left, and the same words but one.
 */
function best(
  found: readonly Ranked[],
  limit: number,
  now: number,
  floor: number,
): readonly RecalledEvent[] {
  const least = floor * Math.max(0, ...found.map(({ relevant }) => relevant));
  const ranked = found
    .filter(({ relevant, keyed }) => relevant >= least || keyed === true)
    .map(({ event: { row: _, ...event }, relevant, states }) => ({
      states,
      event: { ...event, score: scored(relevant, event, now) },
    }))
    .sort(
      ({ event: a, states: one }, { event: b, states: other }) =>
        b.score - a.score || Number(other) - Number(one) || b.time - a.time,
    );
  const statements = ranked.reduce((sum, { states }) => sum + Number(states), 0);
  const others = Math.max(1, Math.floor(limit / 2), limit - statements);
  const said = new Set<string>();
  return ranked
    .filter(({ states, event: { text } }) => {
      if (states) return true;
      if (said.has(text) || said.size >= others) return false;
      said.add(text);
      return true;
    })
    .slice(0, limit)
    .map(({ event }) => ({ ...event, score: Math.round(event.score * 10_000) / 10_000 }));
}

function shortened(query: string): string {
  if (query.length <= 2 * QUERY_LENGTH) return query;
  return `${query.slice(0, QUERY_LENGTH)}\n${query.slice(-QUERY_LENGTH)}`;
}

const wordsOf = (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown));

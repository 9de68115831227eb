/** A recall: what a question finds in the tables is ranked here, and then the best texts are read. */

import type { MemoryEvent, RecalledEvent, RecallQuery } from '../../../conversation/memory.ts';
import { othersTurn } from '../../../lib/loop/steps.ts';
import { digestOf, readDigest } from '../ranking/digest.ts';
import { lookedUpTerms } from '../ranking/known-terms.ts';
import { readQuestion } from '../ranking/question.ts';
import { type Asked, type Candidate, NEAREST, rank } from '../ranking/rank.ts';
import type { MemoryStore } from './memory-store.ts';
import type { FoundRow } from './terms-index.ts';
import type { Vectors } from './vectors.ts';

export interface StoreRecall extends Pick<Asked, 'speaker' | 'limit' | 'now'> {
  readonly space: string;
  /** The query, with a shortened text. */
  readonly query: RecallQuery;
  /** The vector of the query, and the name of its model. */
  readonly vector: readonly [vector: Float32Array, model: string] | undefined;
}

/** Digests that are made before others get their turn. */
const DIGESTS_STEP = 16;

export async function recallFrom(
  store: MemoryStore,
  vectors: Vectors,
  { space, query, vector, ...asked }: StoreRecall,
): Promise<readonly RecalledEvent[]> {
  const question = readQuestion(query.query, asked.now, query);
  const near = vector && (await vectors.near(space, vector[1], vector[0], NEAREST));
  const nearest = vector && (near?.nearest ?? []);
  const found = await store.terms.find({
    space,
    question,
    lookedUp: lookedUpTerms(question),
    near: nearest?.map(([row]) => row) ?? [],
  });
  // The space was erased between the trips, and perhaps made again.
  if (found === undefined || (near !== undefined && near.space !== found.space)) return [];
  const { rows } = found;
  const candidates = await candidatesOf(store, space, rows);
  const ranked = rank({ ...found, candidates }, { ...asked, question, nearest });
  const best = new Set(ranked.map(({ row }) => row));
  const bestRows = rows.filter(({ seq }) => best.has(seq));
  const events = await eventsOf(store, space, bestRows);
  return ranked.flatMap(({ row, score }) => {
    const event = events.get(row);
    return event === undefined ? [] : [{ ...event, score }];
  });
}

/** The events of rows; those that came without their bodies are read. */
async function eventsOf(
  store: MemoryStore,
  space: string,
  rows: readonly FoundRow[],
): Promise<ReadonlyMap<number, MemoryEvent>> {
  const bare = rows.flatMap(({ seq, body }) => (body === null ? [seq] : []));
  const events = new Map(await store.events(space, bare));
  for (const { body, ...row } of rows) {
    const event = body === null ? undefined : store.sealed.opened(space, { ...row, body });
    if (event !== undefined) events.set(row.seq, event);
  }
  return events;
}

/** The candidates; events from before there were digests get theirs. */
async function candidatesOf(
  store: MemoryStore,
  space: string,
  rows: readonly FoundRow[],
): Promise<readonly Candidate[]> {
  const { sealed } = store;
  const withoutDigest = rows.filter(({ digest }) => digest === null);
  const events = await eventsOf(store, space, withoutDigest);
  const made: [number, Uint8Array][] = [];
  const candidates: Candidate[] = [];
  for (const { seq: row, id, time, importance, digest } of rows) {
    const event = events.get(row);
    let bytes: Uint8Array | undefined;
    if (digest !== null) bytes = sealed.openedDigest(space, id, digest);
    else if (event !== undefined) {
      bytes = digestOf({ ...event, source: event.source ?? '' });
      made.push([row, sealed.sealedDigest(space, id, bytes)]);
      if (made.length % DIGESTS_STEP === 0) await othersTurn();
    }
    const read = bytes && readDigest(bytes);
    if (read !== undefined) candidates.push({ row, time, importance, digest: read });
  }
  // A digest that is not written is made again by the next recall that finds its event.
  if (made.length > 0) store.saveDigests(made).catch(() => {});
  return candidates;
}

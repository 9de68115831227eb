/** A recall from the memory of all replicas: what one trip finds is ranked here, and long texts take another one. */

import type { MemoryEvent, RecalledEvent, RecallQuery } from '../../../conversation/memory.ts';
import { othersTurn } from '../../../lib/loop/steps.ts';
import { digestOf, readDigest } from '../ranking/digest.ts';
import { findingTerms, knownTerms, lookedUpTerms, MAX_ROWS_READ } from '../ranking/known-terms.ts';
import { readQuestion } from '../ranking/question.ts';
import {
  type Asked,
  type Beside,
  type Candidate,
  type Found,
  NEAREST,
  OF_A_TIME,
  POOL,
  pairsOf,
  rank,
  WITH_NEIGHBOURS,
} from '../ranking/rank.ts';
import { isSingleCharacter } from '../ranking/terms.ts';
import type { SealedEvents } from './sealed-events.ts';
import { READ_MS, type SharedStore, WRITE_MS } from './shared-store.ts';
import type { SharedVectors } from './shared-vectors.ts';

export interface SharedRecall extends Pick<Asked, 'speaker' | 'limit' | 'now'> {
  readonly space: string;
  /** Its text is shortened. */
  readonly query: RecallQuery;
  /** Of the query, and the name of its model. */
  readonly vector: readonly [vector: Float32Array, model: string] | undefined;
}

/** Bodies of events up to so many bytes come with the digests. */
const WHOLE_BYTES = 1500;
/** Digests that are made before others get their turn. */
const DIGESTS_STEP = 16;

export async function sharedRecall(
  store: SharedStore,
  vectors: SharedVectors,
  sealed: SealedEvents,
  { space, query, vector, ...asked }: SharedRecall,
): Promise<readonly RecalledEvent[]> {
  const question = readQuestion(query.query, asked.now, query);
  const [given, model] = vector ?? [];
  const near = given && (await vectors.near(space, model!, given, NEAREST));
  const terms = lookedUpTerms(question.terms);
  const stored = new Map<string, string>();
  for (const form of terms.flatMap(findingTerms)) {
    if (!stored.has(form)) stored.set(form, sealed.term(space, form));
  }
  const answer = await store.call<FindAnswer>(
    'SELECT hopgate.memory_find($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS answer',
    [
      space,
      JSON.stringify(
        terms.map((term) => [
          isSingleCharacter(term),
          findingTerms(term).map((form) => stored.get(form)),
        ]),
      ),
      MAX_ROWS_READ,
      POOL,
      WITH_NEIGHBOURS,
      JSON.stringify(question.times.map(({ since, until }) => [since, until])),
      OF_A_TIME,
      near?.nearest.map(([row]) => row) ?? [],
      WHOLE_BYTES,
      question.within.since,
      question.within.until,
    ],
    READ_MS,
  );
  // Erased between the trips, and perhaps made again.
  const isGone =
    answer.space === undefined || (near !== undefined && near.space !== answer.space[0]);
  if (isGone) return [];
  const [, events, length] = answer.space!;
  const counts = new Map(Object.entries(answer.counts!));
  const found: Found = {
    ...knownTerms(terms, events, (form) => counts.get(stored.get(form)!) ?? 0),
    events,
    length,
    candidates: await candidatesOf(store, sealed, space, answer),
    pairs: pairsOf(answer.beside!),
  };
  const nearest = given && (near?.nearest ?? []);
  const ranked = rank(found, { ...asked, question, nearest });
  const texts = await textsOf(
    store,
    sealed,
    space,
    answer,
    ranked.map(({ row }) => row),
  );
  return ranked.flatMap(({ row, score }) => {
    const event = texts.get(row);
    return event === undefined ? [] : [{ ...event, score }];
  });
}

async function candidatesOf(
  store: SharedStore,
  sealed: SealedEvents,
  space: string,
  answer: FindAnswer,
): Promise<readonly Candidate[]> {
  const made: [number, string][] = [];
  const candidates: Candidate[] = [];
  for (const [row, id, time, importance, digest, body] of answer.events!) {
    let bytes = digest === null ? undefined : sealed.openedDigest(space, id, digest);
    if (digest === null) {
      const event = sealed.opened(space, { id, time, body: body!, importance });
      if (event === undefined) continue;
      bytes = digestOf({ ...event, source: event.source ?? '' });
      made.push([row, sealed.sealedDigest(space, id, bytes)]);
      if (made.length % DIGESTS_STEP === 0) await othersTurn();
    }
    const read = bytes && readDigest(bytes);
    if (read !== undefined) candidates.push({ row, time, importance, digest: read });
  }
  if (made.length > 0) {
    // A digest that is not written is made again by the next recall that finds its event.
    store
      .query('SELECT hopgate.memory_digest($1)', [JSON.stringify(made)], WRITE_MS)
      .catch(() => {});
  }
  return candidates;
}

/** Omits rows that are gone or cannot be read. */
async function textsOf(
  store: SharedStore,
  sealed: SealedEvents,
  space: string,
  answer: FindAnswer,
  rows: readonly number[],
): Promise<ReadonlyMap<number, MemoryEvent>> {
  const wanted = new Set(rows);
  const found = answer.events!.filter(([row]) => wanted.has(row));
  const long = found.flatMap(([row, , , , , body]) => (body === null ? [row] : []));
  const rest =
    long.length === 0
      ? []
      : await store.query<{ row: number; body: string }>(
          `SELECT e.seq AS row, encode(e.body, 'base64') AS body FROM hopgate.memory_events e
            JOIN hopgate.memory_spaces s ON s.id = e.space AND s.name = $1 WHERE e.seq = ANY($2::bigint[])`,
          [space, long],
          READ_MS,
        );
  const bodies = new Map(rest.map(({ row, body }) => [row, body]));
  return new Map(
    found.flatMap(([row, id, time, importance, , whole]) => {
      const body = whole ?? bodies.get(row);
      const event = body && sealed.opened(space, { id, time, body, importance });
      return event ? [[row, event] as const] : [];
    }),
  );
}

interface FindAnswer {
  readonly space?: readonly [id: number, events: number, length: number];
  /** By stored form. */
  readonly counts?: Readonly<Record<string, number>>;
  /** Digest and body are base64. */
  readonly events?: readonly (readonly [
    row: number,
    id: string,
    time: number,
    importance: number,
    digest: string | null,
    body: string | null,
  ])[];
  readonly beside?: readonly Beside[];
}

/** Ranks the events of a space for a question: by its terms, by vectors where there are some, then by score. */

import type { MemoryEvent, RecalledEvent } from '../../../conversation/memory.ts';
import { indexedText } from '../event.ts';
import { kindWeight } from '../ranking/event-kinds.ts';
import type { KnownTerms } from '../ranking/known-terms.ts';
import { fuseRanks, relevanceOf, scoreOf, type TermStatistics } from '../ranking/ranking.ts';

/** Characters of a question that are read, from both ends. */
const QUERY_LENGTH = 1000;
/** Candidates whose terms are weighed exactly. */
export const POOL = 128;
/** Candidates of each list that are fused. */
export const FUSED = 50;
/** Without vectors, events below this share of the best relevance are left out. */
const FLOOR = 0.15;
/** Milliseconds of work before others get their turn. */
const STEP_MS = 10;

export interface RankedEvent {
  /** 0 to 1, weighted by the kind of the event. */
  readonly relevance: number;
  readonly event: MemoryEvent & { readonly row: number };
  /** It states something: it is neither a question nor a reply. */
  readonly isStatement: boolean;
  /** It contains the rarest term of the question, so it is never left out as too little relevant. */
  readonly holdsKeyTerm?: boolean;
}

/** The part of a question that is looked up. */
export function shortened(query: string): string {
  if (query.length <= 2 * QUERY_LENGTH) return query;
  return `${query.slice(0, QUERY_LENGTH)}\n${query.slice(-QUERY_LENGTH)}`;
}

/** Events that share terms with a question, and what is known of the terms and the space. */
export interface Candidates extends KnownTerms {
  /** Of the space. */
  readonly events: number;
  /** Of all texts of the space together, as of `Terms.length`. */
  readonly length: number;
  readonly found: readonly RankedEvent['event'][];
}

/**
 * The candidates that share terms with the question, the most relevant first.
 * @param speaker as for {@link kindWeight}
 */
export async function rankByTerms(
  { events, length, eventCounts, forms, found: candidates }: Candidates,
  speaker: string | undefined,
): Promise<readonly RankedEvent[]> {
  const statistics: TermStatistics = {
    events,
    length: length / Math.max(1, events),
    eventCounts,
    forms,
  };
  const knownTerms = [...eventCounts.keys()];
  const found: (RankedEvent & { readonly held: readonly string[] })[] = [];
  let began = performance.now();
  for (const event of candidates) {
    if (performance.now() - began > STEP_MS) {
      await new Promise((resolve) => setImmediate(resolve));
      began = performance.now();
    }
    const text = indexedText({ ...event, source: event.source ?? '' });
    const { relevance, held } = relevanceOf(text, knownTerms, statistics);
    if (relevance === 0) continue;
    const weight = kindWeight(event, speaker);
    if (weight === 0) continue;
    found.push({ event, relevance: relevance * weight, isStatement: weight === 1, held });
  }
  const stated = new Set(found.flatMap(({ isStatement, held }) => (isStatement ? held : [])));
  const [keyTerm] = knownTerms
    .filter((term) => stated.has(term))
    .sort((a, b) => eventCounts.get(a)! - eventCounts.get(b)!);
  return found
    .map(({ held, ...one }) => ({
      ...one,
      holdsKeyTerm: one.isStatement && keyTerm !== undefined && held.includes(keyTerm),
    }))
    .sort((a, b) => b.relevance - a.relevance || b.event.row - a.event.row);
}

/**
 * The ranking by terms fused with the ranking by vectors.
 * @param nearest rows, the nearest first, at most {@link FUSED}
 * @param eventsOf the events of rows, in the order of rows
 */
export function rankWithVectors(
  byTerms: readonly RankedEvent[],
  nearest: readonly number[],
  eventsOf: (rows: readonly number[]) => readonly RankedEvent['event'][],
  speaker: string | undefined,
): readonly RankedEvent[] {
  const first = byTerms.slice(0, FUSED).map(({ event }) => event.row);
  const shares = fuseRanks([first, nearest]);
  return eventsOf([...shares.keys()]).flatMap((event) => {
    const weight = kindWeight(event, speaker);
    if (weight === 0) return [];
    return { event, relevance: shares.get(event.row)! * weight, isStatement: weight === 1 };
  });
}

/**
 * The best events by score. Questions and replies take at most half of the places while there are
 * statements left, and the same text takes one place.
 * @param byTermsAlone the ranking had no vectors: events of little relevance are left out
 */
export function selectBest(
  found: readonly RankedEvent[],
  limit: number,
  now: number,
  byTermsAlone: boolean,
): readonly RecalledEvent[] {
  const floor = byTermsAlone ? FLOOR : 0;
  const least = floor * Math.max(0, ...found.map(({ relevance }) => relevance));
  const ranked = found
    .filter(({ relevance, holdsKeyTerm }) => relevance >= least || holdsKeyTerm === true)
    .map(({ event: { row: _, ...event }, relevance, isStatement }) => ({
      isStatement,
      event: { ...event, score: scoreOf(relevance, event, now) },
    }))
    .sort(
      (a, b) =>
        b.event.score - a.event.score ||
        Number(b.isStatement) - Number(a.isStatement) ||
        b.event.time - a.event.time,
    );
  const statements = ranked.reduce((sum, { isStatement }) => sum + Number(isStatement), 0);
  const others = Math.max(1, Math.floor(limit / 2), limit - statements);
  const texts = new Set<string>();
  return ranked
    .filter(({ isStatement, event: { text } }) => {
      if (isStatement) return true;
      if (texts.has(text) || texts.size >= others) return false;
      texts.add(text);
      return true;
    })
    .slice(0, limit)
    .map(({ event }) => ({ ...event, score: Math.round(event.score * 10_000) / 10_000 }));
}

/** Scores events: BM25 over terms, rank fusion, and a small share for importance and freshness. */

import { isSingleCharacter, termsOf } from './terms.ts';

/** Something that can be ranked. */
export interface Rankable {
  readonly time: number;
  readonly importance: number;
}

/** Statistics of the terms of a space. */
export interface TermStatistics {
  /** The number of events. */
  readonly events: number;
  /** Their average length, as of `Terms.length`. */
  readonly length: number;
  /** The number of events that contain a term. */
  readonly eventCounts: ReadonlyMap<string, number>;
  /** The forms in which the texts may contain a term of the query; left out: only the term itself. */
  readonly forms?: ReadonlyMap<string, readonly string[]>;
}

// BM25 with the usual K. B is low because the length of chat messages says little about their value.
const K = 1.2;
const B = 0.4;
/** The weight of a single character of an unspaced script, which says less than a pair or a word. */
const SINGLE_CHARACTER = 0.4;

/** A small space counts as one of so many events, since it says little about how rare a term is. */
const LEAST_EVENTS = 50;

/** How rare a term is in its space, above 0. */
export function rarityOf(having: number, events: number): number {
  const all = Math.max(LEAST_EVENTS, events);
  return Math.log(1 + (all - having + 0.5) / (having + 0.5));
}

const weightOf = (term: string) => (isSingleCharacter(term) ? SINGLE_CHARACTER : 1);

/** How well a text matches a query. */
export interface TermRelevance {
  /** BM25 over the query's terms as a share of its maximum for any text, 0 to 1. */
  readonly relevance: number;
  /** The query's terms that the text contains. */
  readonly held: readonly string[];
}

/** @param terms of the query, each once */
export function relevanceOf(
  text: string,
  terms: readonly string[],
  statistics: TermStatistics,
): TermRelevance {
  const held: string[] = [];
  const { counts, length } = termsOf(text);
  const norm = K * (1 - B + (B * length) / Math.max(1, statistics.length));
  let found = 0;
  let most = 0;
  for (const term of terms) {
    const worth =
      weightOf(term) * rarityOf(statistics.eventCounts.get(term) ?? 0, statistics.events);
    most += worth * (K + 1);
    const often = oftenIn(counts, term, statistics);
    if (often === 0) continue;
    held.push(term);
    found += (worth * often * (K + 1)) / (often + norm);
  }
  return { relevance: most === 0 ? 0 : found / most, held };
}

/** How often a term of the query occurs in a text, in any of its forms. */
function oftenIn(
  counts: ReadonlyMap<string, number>,
  term: string,
  { forms }: Pick<TermStatistics, 'forms'>,
): number {
  let often = 0;
  for (const form of forms?.get(term) ?? [term]) often += counts.get(form) ?? 0;
  return often;
}

/** Milliseconds after which the freshness of an event has halved. */
const HALF_LIFE = 30 * 86_400_000;

/**
 * relevance × (0.75 + 0.15 × importance + 0.10 × 2^(−age / 30 days)). Importance and freshness make up
 * at most a quarter of a score, so they decide only between events of similar relevance.
 */
export function scoreOf(relevance: number, { time, importance }: Rankable, now: number): number {
  const fresh = 2 ** (-Math.max(0, now - time) / HALF_LIFE);
  return relevance * (0.75 + 0.15 * importance + 0.1 * fresh);
}

const RANK_K = 60;

/**
 * Reciprocal rank fusion: the sum of 1 / (60 + rank) over the lists that contain the item, as a share
 * of the sum for an item that is first in every list, 0 to 1.
 */
export function fuseRanks<T>(lists: readonly (readonly T[])[]): ReadonlyMap<T, number> {
  const most = lists.length / (RANK_K + 1);
  const sums = new Map<T, number>();
  for (const list of lists) {
    list.forEach((item, at) => {
      sums.set(item, (sums.get(item) ?? 0) + 1 / (RANK_K + at + 1) / most);
    });
  }
  return sums;
}

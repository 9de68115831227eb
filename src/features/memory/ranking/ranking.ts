/** How events are ordered: what fits the words first, then what is important and what is fresh. */

import { isLone, termsOf } from './terms.ts';

/** Something that can be ranked. */
export interface Rankable {
  readonly time: number;
  readonly importance: number;
}

/** What is known of a space's words. */
export interface Statistics {
  /** Events of the space. */
  readonly events: number;
  /** Their length on average, as of `Terms.length`. */
  readonly length: number;
  /** In how many events of the space a term stands. */
  readonly having: ReadonlyMap<string, number>;
  /** Under which terms the texts may hold a word of the query; left out: its own. */
  readonly forms?: ReadonlyMap<string, readonly string[]>;
}

// BM25 with the usual K; messages of a chat differ little in length and not by their worth.
const K = 1.2;
const B = 0.4;
/** One character of an unspaced script says less than a pair of them or a word. */
const LONE = 0.4;

/** A space of a few events tells little of how rare a word is: it is taken for one of so many. */
const LEAST_EVENTS = 50;

/** How rare a term is in its space, above 0. */
export function rarity(having: number, events: number): number {
  const all = Math.max(LEAST_EVENTS, events);
  return Math.log(1 + (all - having + 0.5) / (having + 0.5));
}

const weightOf = (term: string) => (isLone(term) ? LONE : 1);

/** How well a text fits a query. */
export interface Fit {
  /** Its BM25 over the query's terms, as a share of the most that any text could have: 0 to 1. */
  readonly relevant: number;
  /** Those of the terms that it holds. */
  readonly held: readonly string[];
}

export function fitOf(text: string, terms: readonly string[], statistics: Statistics): Fit {
  const held: string[] = [];
  const { counts, length } = termsOf(text);
  const norm = K * (1 - B + (B * length) / Math.max(1, statistics.length));
  let found = 0;
  let most = 0;
  for (const term of terms) {
    const worth = weightOf(term) * rarity(statistics.having.get(term) ?? 0, statistics.events);
    most += worth * (K + 1);
    const often = oftenIn(counts, term, statistics);
    if (often === 0) continue;
    held.push(term);
    found += (worth * often * (K + 1)) / (often + norm);
  }
  return { relevant: most === 0 ? 0 : found / most, held };
}

/** How often a word of the query stands in a text, in any of its forms. */
function oftenIn(
  counts: ReadonlyMap<string, number>,
  term: string,
  { forms }: Pick<Statistics, 'forms'>,
): number {
  let often = 0;
  for (const form of forms?.get(term) ?? [term]) often += counts.get(form) ?? 0;
  return often;
}

/** Days after which an event's freshness has halved. */
const HALF_LIFE = 30 * 86_400_000;

/**
 * relevance × (0.75 + 0.15 × importance + 0.10 × 2^(−age / 30 days)): importance and freshness together
 * move a score by a quarter at most, so that they decide only between events that fit about as well.
 */
export function scored(relevant: number, { time, importance }: Rankable, now: number): number {
  const fresh = 2 ** (-Math.max(0, now - time) / HALF_LIFE);
  return relevant * (0.75 + 0.15 * importance + 0.1 * fresh);
}

const RANK_K = 60;

/**
 * Reciprocal rank fusion: for each item the sum of 1 / (60 + its rank) over the lists it stands in, as
 * a share of what the first of every list would have: 0 to 1.
 */
export function fused<T>(lists: readonly (readonly T[])[]): ReadonlyMap<T, number> {
  const most = lists.length / (RANK_K + 1);
  const sums = new Map<T, number>();
  for (const list of lists) {
    list.forEach((item, at) => {
      sums.set(item, (sums.get(item) ?? 0) + 1 / (RANK_K + at + 1) / most);
    });
  }
  return sums;
}

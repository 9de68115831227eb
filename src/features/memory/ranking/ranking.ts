/** Scores events by the terms of a question (BM25), and by a small share for importance and freshness. */

import { countingIn, type Digest } from './digest.ts';
import { isSingleCharacter } from './terms.ts';

/** Something that can be ranked. */
export interface Rankable {
  readonly time: number;
  readonly importance: number;
}

// BM25 with the usual K. B is low because the length of chat messages says little about their value.
const K = 1.2;
const B = 0.4;
/** The weight of a single character of an unspaced script, which says less than a pair or a word. */
export const SINGLE_CHARACTER = 0.4;

/** Events that a smaller space counts as, since it says little about how rare a term is. */
export const MIN_EVENTS = 50;

/** The rarity of a term in its space, above 0. */
export function rarityOf(having: number, events: number): number {
  const all = Math.max(MIN_EVENTS, events);
  return Math.log(1 + (all - having + 0.5) / (having + 0.5));
}

/** The largest weight of a term. */
export const worthOf = (term: string, having: number, events: number): number =>
  (isSingleCharacter(term) ? SINGLE_CHARACTER : 1) * rarityOf(having, events);

/** A term of a question as texts are weighed by it. */
export interface WeighedTerm {
  readonly term: string;
  /** Hashes of the forms in which the space has it. */
  readonly hashes: readonly number[];
  readonly worth: number;
  /** The share of the space's events that hold it. */
  readonly share: number;
  /** The question does not have it itself: it tells of a change of what is asked for. */
  readonly isHint: boolean;
}

/**
 * BM25 of texts for each term of a question, as shares of the maximum for any text: together 0 to 1.
 * @param averageLength of the space's texts
 */
export function termShares(
  terms: readonly WeighedTerm[],
  averageLength: number,
): (digest: Digest) => Float64Array {
  const countsOf = countingIn(terms.map(({ hashes }) => hashes));
  let most = 0;
  for (const { worth, isHint } of terms) if (!isHint) most += worth * (K + 1);
  return (digest) => {
    const shares = countsOf(digest);
    const norm = K * (1 - B + (B * digest.length) / Math.max(1, averageLength));
    for (let at = 0; at < terms.length; at++) {
      const often = shares[at]!;
      if (often === 0) continue;
      shares[at] = most === 0 ? 0 : (terms[at]!.worth * often * (K + 1)) / (often + norm) / most;
    }
    return shares;
  };
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

/** Full-text search in memory: stems of English words, pairs of Han characters, ranked by BM25. */

import { stem } from './stem.ts';

export interface Searchable {
  readonly title: string;
  readonly text: string;
}

export interface FullText<T extends Searchable> {
  /**
   * The best `count` items that hold a word of the query or of `related`, best first.
   * @param related other words for those of the query; they weigh less
   */
  search(query: string, count: number, related?: string): readonly T[];
  /** Each term of the items, as {@link termOf} gives it, with the number of items that have it. */
  readonly terms: ReadonlyMap<string, number>;
}

const HAN = /\p{Script=Han}/u;
const RUNS = /\p{Script=Han}+|(?:(?!\p{Script=Han})[\p{L}\p{N}_])+/gu;

/**
 * The search terms of a text: words in lower case; for Han, which is written without spaces, every character and
 * every pair of neighbours. The parts of `tool_rounds` are terms too, and a plural counts as its singular.
 */
export function searchWords(text: string): readonly string[] {
  const out: string[] = [];
  for (const [run] of text.toLowerCase().matchAll(RUNS)) {
    if (HAN.test(run)) pairs([...run], out);
    else {
      out.push(singular(run));
      if (run.includes('_')) {
        for (const part of run.split('_')) if (part !== '') out.push(singular(part));
      }
    }
  }
  return out;
}

function pairs(characters: readonly string[], out: string[]): void {
  characters.forEach((character, at) => {
    out.push(character);
    const next = characters[at + 1];
    if (next !== undefined) out.push(character + next);
  });
}

/** `keys` as `key`. A word that only looks like a plural is still found, because the query is treated alike. */
const singular = (word: string) =>
  word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word;

/** The form under which a word is indexed: `routing`, `routes` and `route` are the same. */
export const termOf = (word: string): string => {
  const root = stem(word);
  return root.length > 4 && root.endsWith('e') ? root.slice(0, -1) : root;
};

// BM25 with the usual constants; a word of the title counts like three of the text.
const K = 1.2;
const B = 0.75;
const TITLE = 3;
const RELATED = 0.3;

/** An index over a fixed set of items. */
export function fullText<T extends Searchable>(items: readonly T[]): FullText<T> {
  // Few words of a text are new.
  const stems = new Map<string, string>();
  const counts = items.map(({ title, text }) => {
    const found = new Map<string, number>();
    const add = (word: string, weight: number) => {
      let term = stems.get(word);
      if (term === undefined) {
        term = termOf(word);
        stems.set(word, term);
      }
      found.set(term, (found.get(term) ?? 0) + weight);
    };
    for (const word of searchWords(title)) add(word, TITLE);
    for (const word of searchWords(text)) add(word, 1);
    return found;
  });
  const lengths = counts.map((found) => [...found.values()].reduce((sum, n) => sum + n, 0));
  const mean = lengths.reduce((sum, n) => sum + n, 0) / Math.max(1, items.length);
  const holding = new Map<string, number>();
  for (const found of counts) {
    for (const term of found.keys()) holding.set(term, (holding.get(term) ?? 0) + 1);
  }
  return {
    terms: holding,
    search(query, count, related = '') {
      const scores = items.map(() => 0);
      const add = (word: string, weight: number) => {
        const having = holding.get(word) ?? 0;
        if (having === 0) return;
        const rarity = weight * Math.log(1 + (items.length - having + 0.5) / (having + 0.5));
        counts.forEach((found, at) => {
          const often = found.get(word) ?? 0;
          const norm = K * (1 - B + (B * lengths[at]!) / mean);
          scores[at]! += (rarity * often * (K + 1)) / (often + norm);
        });
      };
      const asked = queryWords(query);
      for (const word of asked) add(word, 1);
      for (const word of queryWords(related)) if (!asked.has(word)) add(word, RELATED);
      return items
        .map((item, at) => ({ item, score: scores[at]! }))
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score)
        .slice(0, count)
        .map(({ item }) => item);
    },
  };
}

/** The terms of a query; single Han characters count only where there is no other term. */
function queryWords(query: string): ReadonlySet<string> {
  const words = new Set(searchWords(query));
  const lone = (word: string) => word.length === 1 && HAN.test(word);
  const rest = [...words].filter((word) => !lone(word));
  return new Set((rest.length === 0 ? [...words] : rest).map(termOf));
}

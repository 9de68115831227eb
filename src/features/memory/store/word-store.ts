/** The inverted index: which events of a space hold a term (FTS5), without a word of another space. */

import type { Database } from 'bun:sqlite';
import { rarity } from '../ranking/ranking.ts';
import { isLone, type Terms } from '../ranking/terms.ts';
import { formsOf } from '../ranking/word-forms.ts';

/**
 * Terms are made here and stand in the index as `<space>:<term>`, so that no query, no count and no
 * rarity ever reaches beyond its space. No texts, no positions: the events have them. The ascii
 * tokenizer takes every other character for a letter, also those that are younger than unicode61's
 * tables.
 */
export const WORDS_SCHEMA = `
CREATE VIRTUAL TABLE words USING fts5(terms, content='', contentless_delete=1, detail=none,
  tokenize="ascii tokenchars ':'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab('words', 'row');
`;

export interface Found {
  /** Rows that hold the rarest terms, the most promising first. */
  readonly rows: readonly number[];
  /** In how many events of the space each term stands. */
  readonly having: ReadonlyMap<string, number>;
  /** Under which terms the space holds each of them. */
  readonly forms: ReadonlyMap<string, readonly string[]>;
}

export interface WordStore {
  add(space: number, row: number, terms: Terms): void;
  remove(row: number): void;
  find(space: number, events: number, terms: readonly string[], count: number): Found;
  /** One step of rewriting the index without what was deleted; false when there is nothing left to do. */
  tidy(first: boolean): boolean;
}

/** Rows read for one query; what common words add beyond them is left to the ranking. */
const BUDGET = 8000;
/** Terms of a query that are looked up. */
const MOST_TERMS = 96;
/** Pages of the index for one step. */
const TIDY_PAGES = 500;

const keyOf = (space: number, term: string) => `${space.toString(36)}:${term}`;

export function wordStore(db: Database): WordStore {
  const insert = db.query('INSERT INTO words (rowid, terms) VALUES (?, ?)');
  const remove = db.query('DELETE FROM words WHERE rowid = ?');
  const having = db.query<{ doc: number }, [string]>('SELECT doc FROM vocabulary WHERE term = ?');
  const match = db.query<{ rowid: number }, [string, number]>(
    'SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?',
  );
  const merge = db.query<unknown, [number]>("INSERT INTO words(words, rank) VALUES ('merge', ?)");
  const changes = db.query<{ n: number }, []>('SELECT total_changes() AS n');

  return {
    add(space, row, { counts }) {
      insert.run(row, [...counts.keys()].map((term) => keyOf(space, term)).join(' '));
    },
    remove: (row) => void remove.run(row),
    find(space, events, terms, count) {
      const asked = terms.length <= MOST_TERMS ? terms : fewer(terms);
      const known = new Map<string, number>();
      const forms = new Map<string, readonly string[]>();
      for (const term of asked) {
        const held = formsOf(term).flatMap((form) => {
          const events = having.get(keyOf(space, form))?.doc ?? 0;
          return events > 0 ? [{ form, events }] : [];
        });
        const sum = held.reduce((all, one) => all + one.events, 0);
        known.set(term, Math.min(sum, events));
        forms.set(
          term,
          held.map(({ form }) => form),
        );
      }
      const rarest = asked
        .filter((term) => known.get(term)! > 0)
        .sort((a, b) => known.get(a)! - known.get(b)!);
      const weights = new Map<number, number>();
      let left = BUDGET;
      for (const term of rarest) {
        // A word that is everywhere tells little where rarer ones were found.
        if (known.get(term)! > left && weights.size > 0) break;
        const worth = rarity(known.get(term)!, events) * (isLone(term) ? 0.4 : 1);
        const held = forms.get(term)!.map((form) => `"${keyOf(space, form)}"`);
        const rows = match.values(held.join(' OR '), left) as [number][];
        for (const [row] of rows) weights.set(row, (weights.get(row) ?? 0) + worth);
        left -= rows.length;
        if (left <= 0) break;
      }
      const rows = [...weights].sort((a, b) => b[1] - a[1] || b[0] - a[0]);
      return { rows: mixed(rows, count), having: known, forms };
    },
    tidy(first) {
      // A negative number begins a full rewrite; a merge that changed less than two rows had nothing to do.
      const before = changes.get()!.n;
      merge.run(first ? -TIDY_PAGES : TIDY_PAGES);
      return changes.get()!.n - before >= 2;
    },
  };
}

/**
 * The first `count` rows, but of those that hold the very same terms at most half until all others had
 * their turn: a question that was asked a hundred times must not keep out what it asks for.
 */
function mixed(rows: readonly (readonly [number, number])[], count: number): readonly number[] {
  if (rows.length <= count) return rows.map(([row]) => row);
  const first: number[] = [];
  const rest: number[] = [];
  let worth = Number.NaN;
  let same = 0;
  for (const [row, weight] of rows) {
    if (first.length >= count) break;
    same = weight === worth ? same + 1 : 1;
    worth = weight;
    if (same <= count / 2) first.push(row);
    else if (rest.length < count) rest.push(row);
  }
  return [...first, ...rest].slice(0, count);
}

/** Of a long query those that say most: pairs and words before single characters, the last ones first. */
function fewer(terms: readonly string[]): readonly string[] {
  const late = terms.toReversed();
  const whole = late.filter((term) => !isLone(term));
  return [...whole, ...late.filter(isLone)].slice(0, MOST_TERMS);
}

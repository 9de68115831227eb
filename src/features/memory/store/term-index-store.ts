/** The inverted index (FTS5) of terms to events, strictly separate for each space. */

import type { Database } from 'bun:sqlite';
import { rarityOf } from '../ranking/ranking.ts';
import { isSingleCharacter, type Terms } from '../ranking/terms.ts';
import { formsOf } from '../ranking/word-forms.ts';

/**
 * Terms are stored as `<space>:<term>`, so that no query and no count reaches beyond its space. The index
 * has no texts and no positions, which the events have. The ascii tokenizer takes every non-ASCII
 * character for a letter, including those that are newer than unicode61's tables.
 */
export const TERMS_SCHEMA = `
CREATE VIRTUAL TABLE words USING fts5(terms, content='', contentless_delete=1, detail=none,
  tokenize="ascii tokenchars ':'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab('words', 'row');
`;

export interface TermMatches {
  /** Rows that contain the rarest terms, the most promising first. */
  readonly rows: readonly number[];
  /** The number of the space's events that contain each term. */
  readonly eventCounts: ReadonlyMap<string, number>;
  /** The forms of each term that the space contains. */
  readonly forms: ReadonlyMap<string, readonly string[]>;
}

export interface TermIndex {
  add(space: number, row: number, terms: Terms): void;
  remove(row: number): void;
  find(space: number, events: number, terms: readonly string[], count: number): TermMatches;
  /** Rewrites a part of the index without deleted entries; false when nothing is left to do. */
  tidy(first: boolean): boolean;
}

/** Rows read for one query. The ranking weighs common terms that are not read here. */
const MAX_ROWS_READ = 8000;
/** Terms of a query that are looked up at most. */
const MAX_TERMS = 96;
/** Pages of the index that one step rewrites. */
const TIDY_PAGES = 500;

const keyOf = (space: number, term: string) => `${space.toString(36)}:${term}`;

export function termIndex(db: Database): TermIndex {
  const insert = db.query('INSERT INTO words (rowid, terms) VALUES (?, ?)');
  const remove = db.query('DELETE FROM words WHERE rowid = ?');
  const documentCount = db.query<{ doc: number }, [string]>(
    'SELECT doc FROM vocabulary WHERE term = ?',
  );
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
      const lookedUp = terms.length <= MAX_TERMS ? terms : mostTellingTerms(terms);
      const known = new Map<string, number>();
      const forms = new Map<string, readonly string[]>();
      for (const term of lookedUp) {
        const held = formsOf(term).flatMap((form) => {
          const events = documentCount.get(keyOf(space, form))?.doc ?? 0;
          return events > 0 ? [{ form, events }] : [];
        });
        const sum = held.reduce((all, one) => all + one.events, 0);
        known.set(term, Math.min(sum, events));
        forms.set(
          term,
          held.map(({ form }) => form),
        );
      }
      const rarest = lookedUp
        .filter((term) => known.get(term)! > 0)
        .sort((a, b) => known.get(a)! - known.get(b)!);
      const weights = new Map<number, number>();
      let left = MAX_ROWS_READ;
      for (const term of rarest) {
        // A very common term adds little once rarer terms have been found.
        if (known.get(term)! > left && weights.size > 0) break;
        const worth = rarityOf(known.get(term)!, events) * (isSingleCharacter(term) ? 0.4 : 1);
        const held = forms.get(term)!.map((form) => `"${keyOf(space, form)}"`);
        const rows = match.values(held.join(' OR '), left) as [number][];
        for (const [row] of rows) weights.set(row, (weights.get(row) ?? 0) + worth);
        left -= rows.length;
        if (left <= 0) break;
      }
      const rows = [...weights].sort((a, b) => b[1] - a[1] || b[0] - a[0]);
      return { rows: diverseRows(rows, count), eventCounts: known, forms };
    },
    tidy(first) {
      // A negative number starts a full rewrite; a merge that changes fewer than two rows is done.
      const before = changes.get()!.n;
      merge.run(first ? -TIDY_PAGES : TIDY_PAGES);
      return changes.get()!.n - before >= 2;
    },
  };
}

/**
 * The first `count` rows, but at most half of them with the very same terms while there are others: a
 * question that was asked a hundred times must not displace its answer.
 */
function diverseRows(
  rows: readonly (readonly [number, number])[],
  count: number,
): readonly number[] {
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

/** The most telling terms of a long query: words and pairs before single characters, the last first. */
function mostTellingTerms(terms: readonly string[]): readonly string[] {
  const late = terms.toReversed();
  const whole = late.filter((term) => !isSingleCharacter(term));
  return [...whole, ...late.filter(isSingleCharacter)].slice(0, MAX_TERMS);
}

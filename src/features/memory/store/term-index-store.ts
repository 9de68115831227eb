/** The inverted index (FTS5) of terms to events, strictly separate for each space. */

import type { Database } from 'bun:sqlite';
import {
  type KnownTerms,
  knownTerms,
  lookedUpTerms,
  MAX_ROWS_READ,
} from '../ranking/known-terms.ts';
import { worthOf } from '../ranking/ranking.ts';
import type { Terms } from '../ranking/terms.ts';

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

export interface TermMatches extends KnownTerms {
  /** Rows that contain the rarest terms, the most promising first. */
  readonly rows: readonly number[];
}

export interface TermIndex {
  add(space: number, row: number, terms: Terms): void;
  remove(row: number): void;
  /** Merges about three times what a step of events adds; to be called after each. */
  merge(): void;
  /** @param allowed those of some rows that may be found; left out: all of them */
  find(
    space: number,
    events: number,
    terms: readonly string[],
    count: number,
    allowed?: (rows: readonly number[]) => readonly number[],
  ): TermMatches;
  /** Rewrites a part of the index without deleted entries; false when nothing is left to do. */
  tidy(first: boolean): boolean;
}

/** Pages of the index that one step writes. */
const STEP_PAGES = 16;
/** Of the tidying: it passes over what is dead besides. */
const TIDY_PAGES = 8;

/**
 * By itself SQLite merges within a write, and as much as there is. Many small parts of one transaction are merged all the
 * same: an index of 2,000 parts takes no more.
 */
const OWN_MERGES = { deletemerge: 0, automerge: 0, crisismerge: 256 };

const keyOf = (space: number, term: string) => `${space.toString(36)}:${term}`;

export function termIndex(db: Database): TermIndex {
  const set = db.query<{ v: number }, [string]>('SELECT v FROM words_config WHERE k = ?');
  for (const [name, value] of Object.entries(OWN_MERGES)) {
    if (set.get(name)?.v !== value) {
      db.run('INSERT INTO words(words, rank) VALUES (?, ?)', [name, value]);
    }
  }
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
    merge: () => void merge.run(STEP_PAGES),
    find(space, events, terms, count, allowed) {
      const lookedUp = lookedUpTerms(terms);
      const { eventCounts: known, forms } = knownTerms(
        lookedUp,
        events,
        (form) => documentCount.get(keyOf(space, form))?.doc ?? 0,
      );
      const rarest = lookedUp
        .filter((term) => known.get(term)! > 0)
        .sort((a, b) => known.get(a)! - known.get(b)!);
      const weights = new Map<number, number>();
      let left = MAX_ROWS_READ;
      for (const term of rarest) {
        // A very common term adds little once rarer terms have been found.
        if (known.get(term)! > left && weights.size > 0) break;
        const worth = worthOf(term, known.get(term)!, events);
        const held = forms.get(term)!.map((form) => `"${keyOf(space, form)}"`);
        const rows = match.values(held.join(' OR '), left) as [number][];
        for (const [row] of rows) weights.set(row, (weights.get(row) ?? 0) + worth);
        left -= rows.length;
        if (left <= 0) break;
      }
      if (allowed !== undefined) {
        const some = new Set(allowed([...weights.keys()]));
        for (const row of weights.keys()) if (!some.has(row)) weights.delete(row);
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

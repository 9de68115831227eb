/** The texts of exchanges in the index: each text once, found by any part of it. Removed with the last sample that has it. */

import type { Database, SQLQueryBindings, Statement } from 'bun:sqlite';
import { createHash } from 'node:crypto';
import { runAtOnce } from '../../lib/loop/steps.ts';
import type { FoundTexts, SampleTexts } from '../sample.ts';

/*
 * Groups of three letters find words of any script; the text itself is compared then, so that no places need
 * to be stored. A Chinese word has often two characters: `heads` holds single and paired characters of such
 * scripts, and the first one or two letters of other words. The full-text tables hold no texts: a row of
 * them is removed by a mark, which costs the same for any text, and dropped when their parts are merged.
 * A text has a row for each of its pieces, since SQLite takes a row in one go; `pieces` says how many are there.
 */
export const TEXT_SCHEMA = `
CREATE INDEX IF NOT EXISTS samples_unread ON samples (time) WHERE texts_read = 0;
CREATE TABLE IF NOT EXISTS texts (
  number INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, text TEXT NOT NULL,
  pieces INTEGER NOT NULL DEFAULT 0
);
CREATE VIRTUAL TABLE IF NOT EXISTS text_parts USING fts5 (
  text, content = '', contentless_delete = 1, tokenize = 'trigram', detail = none
);
CREATE VIRTUAL TABLE IF NOT EXISTS text_heads USING fts5 (
  heads, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0', detail = none
);
-- By itself SQLite merges in the middle of a write, and as much as there is.
INSERT INTO text_parts (text_parts, rank) VALUES ('automerge', 0), ('crisismerge', 500), ('usermerge', 16);
INSERT INTO text_heads (text_heads, rank) VALUES ('automerge', 0), ('crisismerge', 500), ('usermerge', 16);
CREATE TABLE IF NOT EXISTS said (
  sample INTEGER NOT NULL, text INTEGER NOT NULL, added INTEGER NOT NULL, PRIMARY KEY (sample, text)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS said_text ON said (text, added);
CREATE TABLE IF NOT EXISTS unsaid (sample INTEGER PRIMARY KEY);
`;

/** Characters of one text, and of all texts of one exchange, that are searched. */
const MAX_TEXT = 100_000;
const MAX_IN_ALL = 2_000_000;
/** Characters of a piece, and the numbers that the pieces of a text have. */
const PIECE = 4000;
const PIECES = 32;
/** Rows that one step of a search looks up, and texts that fit after which a search ends. */
const STEP = 100;
const MAX_FOUND = 2000;
/** The first letters of a word, which are looked up: the comparison decides about the rest. */
const MAX_LETTERS = 42;
/** Characters of the next piece that a piece has, too, so that one of both has those letters. */
const OVERLAP = 2 * MAX_LETTERS;
/** Pages that one step of a merge writes. */
const MERGED_PAGES = 64;
/** Pages that are merged after each piece: about three times what it adds to a table. */
const MERGED_BEHIND = 16;
const FULL_TEXT = ['text_parts', 'text_heads'] as const;
/** Words of a query that count. */
const MAX_WORDS = 8;

/** Scripts that write words without spaces. */
const DENSE = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]/u;
const WORD = /[\p{L}\p{N}]+/gu;

const LETTER = /[\p{L}\p{N}]$/u;

/**
 * Single and paired characters of dense scripts, and the first letters of other words, in lower case.
 * @param inWord the text begins within a word
 */
function headsOf(text: string, inWord: boolean): string {
  const heads = new Set<string>();
  for (const { 0: word, index } of text.toLowerCase().matchAll(WORD)) {
    if (!DENSE.test(word)) {
      if (inWord && index === 0) continue;
      const [first, second = ''] = word;
      heads.add(first!);
      heads.add(first + second);
      continue;
    }
    let before = '';
    for (const character of word) {
      heads.add(character);
      if (before !== '') heads.add(before + character);
      before = character;
    }
  }
  return [...heads].join(' ');
}

const hashOf = (text: string) => createHash('sha256').update(text).digest().subarray(0, 16);

interface Said {
  readonly text: number;
  readonly added: number;
}

/** Groups of three letters that a text with this word has, as a query. */
function partsOf(word: string): string {
  const letters = [...word].slice(0, MAX_LETTERS);
  const parts = letters.slice(2).map((_, i) => letters.slice(i, i + 3).join(''));
  return [...new Set(parts)].map((part) => `"${part.replaceAll('"', '""')}"`).join(' AND ');
}

/** The search of an index, with the removal of texts that no sample has any more. */
export interface TextIndex extends SampleTexts {
  /** Removes the texts that only removed samples had. */
  tidy(): Generator<void, void, void>;
  /** Drops what marks hide in the full-text tables. */
  scrub(): Generator<void, void, void>;
}

export function textsOf(db: Database): TextIndex {
  const of = <Row, Args extends SQLQueryBindings[]>(sql: string) =>
    db.query(sql) as unknown as Statement<Row, Args>;
  const unread = of<{ id: string }, [number]>(
    `SELECT id FROM samples WHERE texts_read = 0 AND state != 'open' ORDER BY time LIMIT ?`,
  );
  const progress = of<{ all: number; unread: number }, [string | null]>(
    `SELECT count(*) AS "all", coalesce(sum(texts_read = 0 AND state != 'open'), 0) AS unread
     FROM samples WHERE owner = coalesce(?, owner)`,
  );
  const sampleNumber = of<{ number: number; owner: string }, [string]>(
    'SELECT number, owner FROM samples WHERE id = ?',
  );
  const merges = FULL_TEXT.map((table) =>
    of<unknown, [number]>(`INSERT INTO ${table} (${table}, rank) VALUES ('merge', ?)`),
  );
  const known = of<{ number: number }, [Uint8Array]>('SELECT number FROM texts WHERE hash = ?');
  const written = of<{ pieces: number }, [number]>('SELECT pieces FROM texts WHERE number = ?');
  const addPiece = of<unknown, [number]>('UPDATE texts SET pieces = pieces + 1 WHERE number = ?');
  // Whether others have said the same makes no difference: what a key finds would tell it.
  const saidBefore = of<{ sample: number }, [number, number, string]>(
    `SELECT said.sample AS sample FROM said JOIN samples ON samples.number = said.sample
     WHERE said.text = ? AND said.sample != ? AND samples.owner = ? LIMIT 1`,
  );
  const insert = of<{ number: number }, [Uint8Array, string]>(
    'INSERT INTO texts (hash, text) VALUES (?, ?) RETURNING number',
  );
  const insertParts = of<unknown, [number, string]>(
    'INSERT INTO text_parts (rowid, text) VALUES (?, ?)',
  );
  const insertHeads = of<unknown, [number, string]>(
    'INSERT INTO text_heads (rowid, heads) VALUES (?, ?)',
  );
  const say = of<unknown, [number, number, number]>(
    `INSERT INTO said VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET added = max(said.added, excluded.added)`,
  );
  const read = of<unknown, [string]>('UPDATE samples SET texts_read = 1 WHERE id = ?');
  const text = of<{ text: string }, [number]>('SELECT text FROM texts WHERE number = ?');
  const speakers = of<{ id: string }, [number, string | null]>(
    `SELECT samples.id AS id FROM said JOIN samples ON samples.number = said.sample
     WHERE said.added = 1 AND said.text = ? AND samples.owner = coalesce(?, samples.owner)`,
  );

  const changes = of<{ count: number }, []>('SELECT total_changes() AS count');
  const unsaid = of<{ sample: number }, []>('SELECT sample FROM unsaid LIMIT 1');
  const done = of<unknown, [number]>('DELETE FROM unsaid WHERE sample = ?');
  const saidBy = of<Said, [number]>('SELECT text, added FROM said WHERE sample = ? LIMIT 1');
  const unsay = of<unknown, [number, number]>('DELETE FROM said WHERE sample = ? AND text = ?');
  const next = of<{ sample: number }, [number]>('SELECT sample FROM said WHERE text = ? LIMIT 1');
  /** Of each owner that has a text and no exchange that said it, the first exchange. */
  const heirs = of<{ sample: number }, [number]>(
    `SELECT min(said.sample) AS sample FROM said JOIN samples ON samples.number = said.sample
     WHERE said.text = ? GROUP BY samples.owner HAVING max(said.added) = 0`,
  );
  const first = of<unknown, [number, number]>(
    'UPDATE said SET added = 1 WHERE sample = ? AND text = ?',
  );
  const dropText = of<unknown, [number]>('DELETE FROM texts WHERE number = ?');
  const dropPiece = FULL_TEXT.map((table) =>
    of<unknown, [number]>(`DELETE FROM ${table} WHERE rowid = ?`),
  );
  const forget = db.transaction((sample: number, { text: number, added }: Said) => {
    unsay.run(sample, number);
    if (next.get(number) === null) {
      for (let piece = written.get(number)?.pieces ?? 0; piece-- > 0; ) {
        for (const table of dropPiece) table.run(number * PIECES + piece);
      }
      dropText.run(number);
    }
    // The exchange of its owner that has it from now on is the one that said it.
    else if (added === 1) {
      for (const { sample: other } of heirs.all(number)) first.run(other, number);
    }
  }).immediate;
  /** The number of the text; undefined: the exchange was removed meanwhile. */
  const begin = db.transaction((id: string, shown: string, added: boolean) => {
    const found = sampleNumber.get(id);
    if (found === null) return undefined;
    const { number: sample, owner } = found;
    const hash = hashOf(shown);
    const { number } = known.get(hash) ?? insert.get(hash, shown)!;
    const isNew = added || saidBefore.get(number, sample, owner) === null;
    say.run(sample, number, isNew ? 1 : 0);
    return number;
  }).immediate;
  /** Writes the next piece that no process has written. True: there was one. */
  const putPiece = db.transaction((number: number, shown: string): boolean => {
    const pieces = written.get(number)?.pieces;
    // The text was removed meanwhile, or is whole.
    if (pieces === undefined || pieces * PIECE >= shown.length) return false;
    const from = pieces * PIECE;
    const piece = shown.slice(from, from + PIECE + OVERLAP).toWellFormed();
    const rowid = number * PIECES + pieces;
    insertParts.run(rowid, piece);
    insertHeads.run(rowid, headsOf(piece, LETTER.test(shown.slice(Math.max(0, from - 2), from))));
    addPiece.run(number);
    return true;
  }).immediate;
  /** SQLite's work in one step grows neither with the text nor with the exchange. */
  function* putInSteps(id: string, texts: Parameters<SampleTexts['put']>[1]) {
    let room = MAX_IN_ALL;
    for (const { text: said, added } of texts) {
      const shown = said.slice(0, MAX_TEXT).toWellFormed();
      if (shown.trim() === '') continue;
      room -= shown.length;
      if (room < 0) break;
      const number = begin(id, shown, added);
      if (number === undefined) return;
      while (putPiece(number, shown)) {
        yield;
        for (const merge of merges) merge.run(MERGED_BEHIND);
        yield;
      }
    }
    read.run(id);
  }
  return {
    unread: (limit) => unread.all(limit).map(({ id }) => id),
    progress: (owner) => progress.get(owner ?? null)!,
    putInSteps,
    put: (id, texts) => runAtOnce(putInSteps(id, texts)),
    *find(words, owner): Generator<void, FoundTexts, void> {
      const counted = words.slice(0, MAX_WORDS).filter((word) => word !== '');
      const long = counted.filter((word) => [...word].length >= 3);
      const by = new Map<string, number>();
      const terms =
        long.length > 0
          ? long.map(partsOf)
          : counted.flatMap((word) =>
              [...word.toLowerCase().matchAll(WORD)].map(([head]) => `"${head}"`),
            );
      const table = long.length > 0 ? 'text_parts' : 'text_heads';
      const compared = long.length > 0 ? counted.map((word) => word.toLowerCase()) : [];
      const count = of<{ rows: number }, [string]>(
        `SELECT count(*) AS rows FROM (SELECT 1 FROM ${table} WHERE ${table} MATCH ? LIMIT ${MAX_FOUND})`,
      );
      const rows = terms.map((term) => ({ term, rows: count.get(term)!.rows }));
      const [rarest, ...others] = rows.toSorted((a, b) => a.rows - b.rows);
      // Signs alone are in no index.
      if (rarest === undefined) return { by, partial: false };
      const page = of<{ row: number }, [string, number]>(
        `SELECT rowid AS row FROM ${table} WHERE ${table} MATCH ? AND rowid < ?
         ORDER BY rowid DESC LIMIT ${STEP}`,
      );
      const has = of<unknown, [string, number, number]>(
        `SELECT 1 FROM ${table} WHERE ${table} MATCH ? AND rowid BETWEEN ? AND ? LIMIT 1`,
      );
      /** Has the text the other words, too, if in other pieces? */
      const hasOthers = (number: number) =>
        others.every(
          ({ term }) => has.get(term, number * PIECES, (number + 1) * PIECES - 1) !== null,
        );
      /** To read a text costs less than to ask the index for each word again. */
      const saysAll = (number: number) => {
        const said = text.get(number)?.text.toLowerCase() ?? '';
        return compared.every((word) => said.includes(word));
      };
      let before = Number.MAX_SAFE_INTEGER;
      let last: number | undefined;
      for (let found = 0; ; ) {
        const rows = page.all(rarest.term, before);
        yield;
        for (const { row } of rows) {
          const number = Math.floor(row / PIECES);
          if (number === last) continue;
          last = number;
          const ids = speakers.all(number, owner ?? null);
          if (ids.length === 0) continue;
          if (compared.length === 0 ? hasOthers(number) : saysAll(number)) {
            for (const { id } of ids) if (!by.has(id)) by.set(id, number);
            found++;
          }
          yield;
        }
        if (rows.length < STEP) return { by, partial: false };
        if (found >= MAX_FOUND) return { by, partial: true };
        before = rows.at(-1)!.row;
      }
    },
    text: (number) => text.get(number)?.text,
    *tidy(): Generator<void, void, void> {
      for (let gone = unsaid.get(); gone !== null; gone = unsaid.get()) {
        const { sample } = gone;
        for (let said = saidBy.get(sample); said !== null; said = saidBy.get(sample)) {
          forget(sample, said);
          yield;
        }
        done.run(sample);
      }
    },
    *scrub(): Generator<void, void, void> {
      for (const merge of merges) {
        // A negative number begins a merge of everything; each step continues it.
        for (let step = -MERGED_PAGES; ; step = MERGED_PAGES) {
          const before = changes.get()!.count;
          merge.run(step);
          if (changes.get()!.count - before < 2) break;
          yield;
        }
      }
    },
  };
}

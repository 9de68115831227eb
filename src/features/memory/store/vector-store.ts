/** Vectors of events in the database, by model, with a nearest-neighbour search within one space. */

import type { Database, SQLQueryBindings, Statement } from 'bun:sqlite';
import type { Nearest } from '../ranking/rank.ts';
import { bytesOf, type CachedSigns, nearest, SignCache } from './sign-cache.ts';
import { quantized, signs, signWords } from './vector-math.ts';

/** `number` only grows, so new rows are known by it. An empty vector: the model gave none for the event. */
export const VECTORS_SCHEMA = `
CREATE TABLE vectors (
  number INTEGER PRIMARY KEY AUTOINCREMENT, row INTEGER NOT NULL UNIQUE, space INTEGER NOT NULL,
  model TEXT NOT NULL, signs BLOB NOT NULL, vector BLOB NOT NULL
);
CREATE INDEX vectors_space ON vectors (space, model, number);
CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
`;

/** An event without a vector of a model. */
export interface EventWithoutVector {
  readonly row: number;
  readonly text: string;
  readonly source: string;
}

export interface VectorStore {
  /** The events of all spaces after a row, in the order of rows. */
  withoutVector(model: string, behind: number, count: number): readonly EventWithoutVector[];
  /** Stores vectors by row; undefined: the model gave none. Rows that no longer exist are skipped. */
  put(model: string, vectors: ReadonlyMap<number, Float32Array | undefined>): void;
  /** The vectors of a space that are nearest. @param query a unit vector */
  nearest(space: number, model: string, query: Float32Array, count: number): Nearest;
  /** Drops what is cached of a space. */
  drop(space: number): void;
  /** Takes or extends a lease for `ms`; false while another holder has it. */
  lease(name: string, holder: string, now: number, ms: number): boolean;
  release(name: string, holder: string): void;
}

export function vectorStore(db: Database): VectorStore {
  const of = <R, A extends SQLQueryBindings[]>(sql: string) =>
    db.query(sql) as unknown as Statement<R, A>;
  const withoutVector = of<EventWithoutVector, [string, number, number]>(
    `SELECT events.row AS row, events.text AS text, events.source AS source FROM events
     JOIN spaces ON spaces.id = events.space AND spaces.name IS NOT NULL
     LEFT JOIN vectors ON vectors.row = events.row AND vectors.model = ?
     WHERE vectors.row IS NULL AND events.row > ? ORDER BY events.row LIMIT ?`,
  );
  const put = of<unknown, [string, Uint8Array, Uint8Array, number]>(
    `INSERT OR REPLACE INTO vectors (row, space, model, signs, vector)
     SELECT row, space, ?, ?, ? FROM events WHERE row = ?`,
  );
  const since = of<[number, number, Uint8Array], [number, string, number]>(
    'SELECT number, row, signs FROM vectors WHERE space = ? AND model = ? AND number > ? ORDER BY number',
  );
  const exact = of<{ row: number; vector: Uint8Array }, [number, string, string]>(
    `SELECT row, vector FROM vectors
     WHERE +space = ? AND +model = ? AND row IN (SELECT value FROM json_each(?))`,
  );
  const lease = of<{ holder: string }, [string, string, number, number]>(
    `INSERT INTO leases (name, holder, until) VALUES (?1, ?2, ?3)
     ON CONFLICT (name) DO UPDATE SET holder = ?2, until = ?3 WHERE holder = ?2 OR until < ?4
     RETURNING holder`,
  );
  const release = of<unknown, [string, string]>('DELETE FROM leases WHERE name = ? AND holder = ?');
  const cache = new SignCache();
  const keyOf = (space: number, model: string) => `${space} ${model}`;

  function cachedSigns(space: number, model: string, words: number): CachedSigns {
    const found = cache.of(keyOf(space, model), words);
    for (const [number, row, bytes] of since.values(space, model, found.last) as unknown as [
      number,
      number,
      Uint8Array,
    ][]) {
      found.add(number, row, bytes);
    }
    cache.trim(found);
    return found;
  }

  const putAll = db.transaction(
    (model: string, vectors: ReadonlyMap<number, Float32Array | undefined>) => {
      for (const [row, vector] of vectors) {
        if (vector === undefined) put.run(model, new Uint8Array(0), new Uint8Array(0), row);
        else put.run(model, bytesOf(signs(vector)), bytesOf(quantized(vector)), row);
      }
    },
  );

  return {
    withoutVector: (model, behind, count) => withoutVector.all(model, behind, count),
    put: (model, vectors) => putAll.immediate(model, vectors),
    nearest(space, model, query, count) {
      const near = cachedSigns(space, model, signWords(query.length)).near(query, count);
      return nearest(exact.all(space, model, JSON.stringify(near)), query, count);
    },
    drop(space) {
      cache.drop((key) => key.startsWith(`${space} `));
    },
    release: (name, holder) => void release.run(name, holder),
    lease: (name, holder, now, ms) => lease.get(name, holder, now + ms, now) !== null,
  };
}

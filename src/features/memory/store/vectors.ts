/** Vectors of events: leased to one process each to be made, and searched in this process, space by space. */

import { othersTurn } from '../../../lib/loop/steps.ts';
import { rowPlaceholders, type SqlStatements, type SqlValue } from '../../../state/sql/sql.ts';
import type { Nearest } from '../ranking/rank.ts';
import type { MemoryStore } from './memory-store.ts';
import { cosine, fewestDifferences, quantized, signs, signWords } from './vector-math.ts';

/** Sign patterns read in one trip. */
const SIGNS_PAGE = 4000;
/** Sign patterns opened before others get their turn. */
const SIGNS_STEP = 500;
/** Events among which one trip looks for some without a vector. */
const CLAIM_SPAN = 20_000;
const READ_MS = 2000;
const WRITE_MS = 5000;

export interface NearestInSpace {
  readonly space: number;
  readonly nearest: Nearest;
}

/** A vector as it is stored, but not sealed; both parts are empty where the model gave none. */
export interface StoredVector {
  readonly model: string;
  readonly signs: Uint8Array;
  readonly vector: Uint8Array;
}

const NONE = { signs: new Uint8Array(0), vector: new Uint8Array(0) };

/** Writes vectors of events by their rows, in a transaction that has the locks of their spaces. */
export async function putVectors(
  store: MemoryStore,
  inside: SqlStatements,
  given: ReadonlyMap<number, StoredVector>,
): Promise<void> {
  const { sealed, forms } = store;
  const rows = [JSON.stringify([...given.keys()])];
  const places = await inside.query<{ seq: number; space: number }>(
    `SELECT e.seq, e.space FROM hopgate.memory_events e JOIN hopgate.memory_spaces s
       ON s.id = e.space AND s.name IS NOT NULL WHERE ${forms.isOneOf('e.seq', '$1', 'bigint')}`,
    rows,
  );
  const isOne = forms.isOneOf('seq', '$1', 'bigint');
  await inside.query(`DELETE FROM hopgate.memory_vectors WHERE ${isOne}`, rows);
  const values = places.flatMap(({ seq, space }): SqlValue[] => {
    const { model, signs, vector } = given.get(seq)!;
    const part = (name: string, bytes: Uint8Array) => sealed.sealedPart(name, space, seq, bytes);
    return [seq, space, model, part('signs', signs), part('vector', vector)];
  });
  if (places.length > 0) {
    await inside.query(
      `INSERT INTO hopgate.memory_vectors (seq, space, model, signs, vector)
         VALUES ${rowPlaceholders(places.length, 5)}`,
      values,
    );
  }
  await inside.query(`DELETE FROM hopgate.memory_claims WHERE ${isOne}`, rows);
}

export interface EventWithoutVector {
  readonly row: number;
  readonly text: string;
  readonly source: string;
}

interface NextEvents {
  readonly events: readonly EventWithoutVector[];
  /** The row up to which nothing is left once these have their vectors. */
  readonly behind: number;
  /** Milliseconds after which to look again, and from where on, since others work on some events. */
  readonly again?: { readonly after: number; readonly behind: number };
}

const LEASE_MS = 60_000;

export class Vectors {
  readonly #cache = new SignCache();
  /** The id of each space when it was read last. */
  readonly #spaces = new Map<string, number>();
  /** The end of what reads on in a space: two recalls read nothing twice. */
  readonly #reading = new Map<string, Promise<unknown>>();

  constructor(private readonly store: MemoryStore) {}

  /** Two trips, the first of them for what is new since the last search. Undefined: there is no such space. */
  async near(
    space: string,
    model: string,
    query: Float32Array,
    count: number,
  ): Promise<NearestInSpace | undefined> {
    const read = await this.#read(space, model, signWords(query.length));
    if (read === undefined) return undefined;
    const { id, cached } = read;
    const { db, forms, sealed } = this.store;
    const rows = await db.query<{ row: number; vector: Uint8Array }>(
      `SELECT v.seq AS row, v.vector FROM hopgate.memory_vectors v
         JOIN hopgate.memory_spaces s ON s.id = +v.space
         WHERE ${forms.isOneOf('v.seq', '$1', 'bigint')} AND s.id = $2 AND s.name = $3 AND v.model = $4 ORDER BY v.seq`,
      [JSON.stringify(cached.near(query, count)), id, space, model],
      READ_MS,
    );
    const stored = rows.map(({ row, vector }) => ({
      row,
      vector: sealed.openedPart('vector', id, row, vector),
    }));
    return { space: id, nearest: nearest(stored, query, count) };
  }

  drop(space: string): void {
    const id = this.#spaces.get(space);
    this.#spaces.delete(space);
    if (id !== undefined) this.#cache.drop((key) => key.startsWith(`${id} `));
  }

  /** Stores vectors by row; undefined: the model gave none. Rows that no longer exist are skipped. */
  async put(model: string, vectors: ReadonlyMap<number, Float32Array | undefined>): Promise<void> {
    const { db, forms } = this.store;
    const names = await db.query<{ name: string }>(
      `SELECT DISTINCT s.name FROM hopgate.memory_events e JOIN hopgate.memory_spaces s
         ON s.id = e.space AND s.name IS NOT NULL WHERE ${forms.isOneOf('e.seq', '$1', 'bigint')}`,
      [JSON.stringify([...vectors.keys()])],
      READ_MS,
    );
    const given = [...vectors].map(([row, one]): [number, StoredVector] => [
      row,
      {
        model,
        ...(one === undefined
          ? NONE
          : { signs: bytesOf(signs(one)), vector: bytesOf(quantized(one)) }),
      },
    ]);
    // Numbers are given out under the lock of the space: who reads on from the last one that it knows misses none.
    await this.store.writing(
      names.map(({ name }) => name),
      ({ inside }) => putVectors(this.store, inside, new Map(given)),
    );
  }

  /** Leases the next events after a row. */
  async next(model: string, behind: number, count: number): Promise<NextEvents> {
    for (let from = behind; ; ) {
      const { events, reached, more, others } = await this.#claim(model, from, count);
      if (events.length === 0 && more) {
        from = reached;
        continue;
      }
      return {
        events,
        behind: events.at(-1)?.row ?? reached,
        ...(others !== null && { again: { after: LEASE_MS, behind: others - 1 } }),
      };
    }
  }

  /** Leases the next events without a vector to this process. Looks at a part of all events, up to `reached`. */
  async #claim(model: string, behind: number, count: number) {
    const { db, forms, sealed } = this.store;
    const now = forms.time(db.now);
    return db.transaction(
      async (inside) => {
        const [last] = await inside.query<{ newest: number }>(
          'SELECT coalesce(max(seq), 0) AS newest FROM hopgate.memory_events',
        );
        const { newest } = last!;
        const reached = Math.max(behind, Math.min(newest, behind + CLAIM_SPAN));
        const free = await inside.query<{
          seq: number;
          name: string;
          id: string;
          body: Uint8Array;
        }>(
          `SELECT e.seq, s.name, e.id, e.body FROM hopgate.memory_events e
             JOIN hopgate.memory_spaces s ON s.id = e.space AND s.name IS NOT NULL
             WHERE e.seq > $2 AND e.seq <= $3
               AND NOT EXISTS (SELECT 1 FROM hopgate.memory_vectors v WHERE v.seq = e.seq AND v.model = $1)
               AND NOT EXISTS (SELECT 1 FROM hopgate.memory_claims c WHERE c.seq = e.seq AND c.until > ${now})
             ORDER BY e.seq LIMIT $4${forms.taking('e')}`,
          [model, behind, reached, count],
        );
        const until = forms.time(`(${db.now} + ${LEASE_MS})`);
        const rows = free.map((_, at) => `($${at + 1}, ${until})`);
        const taken =
          free.length === 0
            ? []
            : await inside.query<{ seq: number }>(
                `INSERT INTO hopgate.memory_claims AS c (seq, until) VALUES ${rows.join(', ')}
                   ON CONFLICT (seq) DO UPDATE SET until = excluded.until WHERE c.until <= ${now} RETURNING seq`,
                free.map(({ seq }) => seq),
              );
        const own = new Set(taken.map(({ seq }) => seq));
        const [other] = await inside.query<{ others: number | null }>(
          `SELECT min(seq) AS others FROM hopgate.memory_claims WHERE NOT (${forms.isOneOf('seq', '$1', 'bigint')})`,
          [JSON.stringify([...own])],
        );
        const events = free.flatMap(({ seq, name, id, body }) => {
          if (!own.has(seq)) return [];
          const event = sealed.opened(name, { id, time: 0, body, importance: 0 });
          return [{ row: seq, text: event?.text ?? '', source: event?.source ?? '' }];
        });
        return { events, reached, more: reached < newest, others: other!.others };
      },
      { deadlineMs: WRITE_MS },
    );
  }

  /** Reads the sign patterns that are new. */
  #read(space: string, model: string, words: number): Promise<Read | undefined> {
    const before = this.#reading.get(space) ?? Promise.resolve();
    const reading = before.catch(() => {}).then(() => this.#readOn(space, model, words));
    this.#reading.set(space, reading);
    const done = () => {
      if (this.#reading.get(space) === reading) this.#reading.delete(space);
    };
    reading.then(done, done);
    return reading;
  }

  async #readOn(space: string, model: string, words: number): Promise<Read | undefined> {
    const { db, sealed } = this.store;
    for (;;) {
      const known = this.#spaces.get(space);
      const last = known === undefined ? 0 : this.#cache.of(`${known} ${model}`, words).last;
      const rows = await db.query<Signs>(
        `SELECT s.id AS space, v.number, v.seq AS row, v.signs FROM hopgate.memory_spaces s
           LEFT JOIN hopgate.memory_vectors v ON v.space = s.id AND v.model = $2
             AND v.number > CASE WHEN s.id = $3 THEN CAST($4 AS bigint) ELSE 0 END
           WHERE s.name = $1 ORDER BY v.number LIMIT $5`,
        [space, model, known ?? 0, last, SIGNS_PAGE],
        READ_MS,
      );
      const id = rows[0]?.space;
      if (id !== known) this.drop(space);
      if (id === undefined) return undefined;
      this.#spaces.set(space, id);
      const cached = this.#cache.of(`${id} ${model}`, words);
      for (const [at, one] of rows.entries()) {
        if (one.number === null) break;
        cached.add(one.number, one.row, sealed.openedPart('signs', id, one.row, one.signs));
        if (at % SIGNS_STEP === SIGNS_STEP - 1) await othersTurn();
      }
      this.#cache.trim(cached);
      if (rows.length < SIGNS_PAGE) return { id, cached };
    }
  }
}

interface Read {
  readonly id: number;
  readonly cached: CachedSigns;
}

/** `number` is null in the only row of a space without new vectors. */
type Signs =
  | { readonly space: number; readonly number: null }
  | {
      readonly space: number;
      readonly number: number;
      readonly row: number;
      readonly signs: Uint8Array;
    };

/** Bytes of cached sign patterns; the least recently used space is dropped first. */
const CACHE_BYTES = 64 * 2 ** 20;
/** The least number of candidates whose exact angle is computed. */
const POOL = 200;

/** The sign patterns of a space and model that have been read so far. */
export class CachedSigns {
  readonly #rows: number[] = [];
  #signs: Uint32Array;
  #last = 0;

  /** @param words the length of a pattern in 32-bit words */
  constructor(private readonly words: number) {
    this.#signs = new Uint32Array(words * 64);
  }

  /** The number of the last vector that was read. */
  get last(): number {
    return this.#last;
  }

  get bytes(): number {
    return this.#signs.byteLength;
  }

  /** @param pattern of another length: the vector has another number of dimensions, or there is none */
  add(number: number, row: number, pattern: Uint8Array): void {
    this.#last = number;
    const words = this.words;
    if (pattern.byteLength !== words * 4) return;
    const at = this.#rows.length * words;
    if (at + words > this.#signs.length) {
      const grown = new Uint32Array(this.#signs.length * 2);
      grown.set(this.#signs);
      this.#signs = grown;
    }
    this.#signs.set(new Uint32Array(pattern.slice().buffer), at);
    this.#rows.push(row);
  }

  /** Rows among which the `count` nearest ones are, for their exact angles. */
  near(query: Float32Array, count: number): readonly number[] {
    const most = Math.max(POOL, count * 4);
    const places = fewestDifferences(this.#signs, this.#rows.length, signs(query), most);
    return [...new Set(places.map((at) => this.#rows[at]!))];
  }
}

export class SignCache {
  readonly #cached = new Map<string, CachedSigns>();

  of(key: string, words: number): CachedSigns {
    const found = this.#cached.get(key) ?? new CachedSigns(words);
    this.#cached.delete(key);
    this.#cached.set(key, found);
    return found;
  }

  /** Drops what was used least recently, as far as there is no room; not what is in use now. */
  trim(inUse: CachedSigns): void {
    let bytes = 0;
    for (const one of this.#cached.values()) bytes += one.bytes;
    for (const [key, one] of this.#cached) {
      if (bytes <= CACHE_BYTES || one === inUse) break;
      bytes -= one.bytes;
      this.#cached.delete(key);
    }
  }

  drop(which: (key: string) => boolean): void {
    for (const key of this.#cached.keys()) if (which(key)) this.#cached.delete(key);
  }
}

export function nearest(
  stored: readonly { readonly row: number; readonly vector: Uint8Array }[],
  query: Float32Array,
  count: number,
): Nearest {
  return stored
    .flatMap(({ row, vector }) => {
      const own = new Int8Array(vector.buffer, vector.byteOffset, vector.byteLength);
      return own.length === query.length ? [[row, cosine(own, query)] as const] : [];
    })
    .sort(([one, a], [other, b]) => b - a || one - other)
    .slice(0, count);
}

export const bytesOf = ({ buffer, byteOffset, byteLength }: Uint32Array | Int8Array): Uint8Array =>
  new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);

/** Vectors of events in Postgres: leased to one replica each to be made, and searched in this process, space by space. */

import { othersTurn } from '../../../lib/loop/steps.ts';
import type { Nearest } from '../ranking/rank.ts';
import { type BackFillWork, LEASE_MS } from '../store/back-fill.ts';
import { bytesOf, type CachedSigns, nearest, SignCache } from '../store/sign-cache.ts';
import { quantized, signs, signWords } from '../store/vector-math.ts';
import type { SealedEvents } from './sealed-events.ts';
import { READ_MS, type SharedStore, WRITE_MS } from './shared-store.ts';

/** Sign patterns read in one trip. */
const SIGNS_PAGE = 4000;
/** Sign patterns opened before others get their turn. */
const SIGNS_STEP = 500;

export interface NearestInSpace {
  readonly space: number;
  readonly nearest: Nearest;
}

export class SharedVectors {
  readonly #store: SharedStore;
  readonly #events: SealedEvents;
  readonly #cache = new SignCache();
  /** The id of each space when it was read last. */
  readonly #spaces = new Map<string, number>();
  /** The end of what reads on in a space: two recalls read nothing twice. */
  readonly #reading = new Map<string, Promise<unknown>>();

  constructor(store: SharedStore, events: SealedEvents) {
    this.#store = store;
    this.#events = events;
  }

  /** Two trips, the first of them for what is new since the last search. Undefined: there are no vectors. */
  async near(
    space: string,
    model: string,
    query: Float32Array,
    count: number,
  ): Promise<NearestInSpace | undefined> {
    const read = await this.#read(space, model, signWords(query.length));
    if (read === undefined) return undefined;
    const { id, cached } = read;
    const rows = await this.#store.query<{ row: number; vector: Uint8Array }>(
      `SELECT v.seq AS row, v.vector FROM hopgate.memory_vectors v
        JOIN hopgate.memory_spaces s ON s.id = v.space
        WHERE v.seq = ANY($1::bigint[]) AND s.id = $2 AND s.name = $3 AND v.model = $4 ORDER BY v.seq`,
      [cached.near(query, count), id, space, model],
      READ_MS,
    );
    const stored = rows.map(({ row, vector }) => ({
      row,
      vector: this.#events.openedPart('vector', id, row, vector),
    }));
    return { space: id, nearest: nearest(stored, query, count) };
  }

  /** Drops what is cached of a space. */
  drop(space: string): void {
    const id = this.#spaces.get(space);
    this.#spaces.delete(space);
    if (id !== undefined) this.#cache.drop((key) => key.startsWith(`${id} `));
  }

  /** Each replica makes vectors; no event is leased to two of them. */
  work(): BackFillWork {
    return {
      next: async (model, behind, count) => {
        const { events, reached, others } = await this.#claim(model, behind, count);
        const opened = events.map(([seq, space, id, body]) => {
          const event = this.#events.opened(space, { id, time: 0, body, importance: 0 });
          return { row: seq, text: event?.text ?? '', source: event?.source ?? '' };
        });
        return {
          events: opened,
          behind: opened.at(-1)?.row ?? reached,
          ...(others !== null && { again: { after: LEASE_MS, behind: others - 1 } }),
        };
      },
      put: async (model, vectors) => {
        const spaces = await this.#store.query<{ row: number; space: number }>(
          'SELECT seq AS row, space FROM hopgate.memory_events WHERE seq = ANY($1::bigint[])',
          [[...vectors.keys()]],
          READ_MS,
        );
        const given = spaces.map(({ row, space }) => {
          const vector = vectors.get(row);
          const parts =
            vector === undefined ? [] : [bytesOf(signs(vector)), bytesOf(quantized(vector))];
          const sealed = (part: string, bytes: Uint8Array = new Uint8Array(0)) =>
            this.#events.sealedPart(part, space, row, bytes);
          return [row, sealed('signs', parts[0]), sealed('vector', parts[1])];
        });
        await this.#store.query(
          'SELECT hopgate.memory_vectors_put($1, $2)',
          [model, JSON.stringify(given)],
          WRITE_MS,
        );
      },
      done: async () => {},
    };
  }

  async #claim(model: string, behind: number, count: number): Promise<Claimed> {
    for (let from = behind; ; ) {
      const [row] = await this.#store.query<{ answer: Claimed }>(
        'SELECT hopgate.memory_claim($1, $2, $3, $4) AS answer',
        [model, from, count, LEASE_MS],
        WRITE_MS,
      );
      const { events, reached, more } = row!.answer;
      if (events.length > 0 || !more) return row!.answer;
      from = reached;
    }
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
    for (;;) {
      const known = this.#spaces.get(space);
      const last = known === undefined ? 0 : this.#cache.of(`${known} ${model}`, words).last;
      const rows = await this.#store.query<Signs>(
        `SELECT s.id AS space, v.number, v.seq AS row, v.signs FROM hopgate.memory_spaces s
          LEFT JOIN hopgate.memory_vectors v ON v.space = s.id AND v.model = $2
            AND v.number > CASE WHEN s.id = $3 THEN $4::bigint ELSE 0 END
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
        cached.add(one.number, one.row, this.#events.openedPart('signs', id, one.row, one.signs));
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

interface Claimed {
  readonly events: readonly (readonly [seq: number, space: string, id: string, body: string])[];
  /** Events up to this one were looked at. */
  readonly reached: number;
  readonly more: boolean;
  /** The first event that others have a lease of, or had one when they ended. */
  readonly others: number | null;
}

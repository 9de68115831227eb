/** The memory of all replicas as one side of a move: its events, how an event stands there, and how events are written. */

import type { MemoryEvent } from '../../../conversation/memory.ts';
import type { Sql, SqlReader } from '../../../state/engines/engine.ts';
import { beforeErasures, erasureTables, isErased, nameHash } from '../../../state/erasures.ts';
import {
  type ClockAhead,
  clockAhead,
  type MovedItem,
  movedFrom,
  movedItems,
  NO_CONDITION,
  noteMoved,
  notMovedFrom,
  tablesThere,
} from '../../../state/move/moved-items.ts';
import type { Standing } from '../../../state/move/paged-move.ts';
import { prepared } from '../../../state/sql/migrations.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import { type MemoryLimits, memoryIsFull, spaceIsFull } from '../event.ts';
import { type ReadEvent, SealedEvents } from '../shared/sealed-events.ts';
import { MEMORY_TABLES } from '../shared/tables.ts';
import type { EventName, EventWithVector } from './file-events-store.ts';
import { formOf, type MovedEvent, type StoredVector, standingOf } from './moved-event.ts';

export interface EngineEventsOptions {
  readonly database: Sql;
  readonly seal: TextSeal;
  readonly limits: MemoryLimits;
  /** Whose file the events come from, or go to. */
  readonly origin: string;
}

const KIND = 'memory';
const TABLES = ['memory_events', 'moved_items', 'erasures'] as const;
const PAGE = 200;
const READ_MS = 10_000;
const WRITE_MS = 20_000;
/** After so many written events the statistics of the planner are renewed, and then each time their number has doubled. */
const ANALYZE_FIRST = 1000;

/** An event of the source, and what is known of it there. */
interface Looked {
  readonly standing: Standing;
  readonly isThere: boolean;
}

type LookedRow = { readonly moved: string | null; readonly erased: boolean } & (
  | ReadEvent
  | { readonly id: null }
);

export class EngineEvents {
  readonly #options: EngineEventsOptions;
  readonly #sealed: SealedEvents;
  readonly #there: ReadonlySet<string>;
  readonly #ahead: ClockAhead;
  #written = 0;
  #analyzeAt = ANALYZE_FIRST;
  /** Events that were sealed with a secret that is not known here. */
  unreadable = 0;

  private constructor(options: EngineEventsOptions, there: ReadonlySet<string>, ahead: ClockAhead) {
    this.#options = options;
    this.#sealed = new SealedEvents(options.seal);
    this.#there = there;
    this.#ahead = ahead;
  }

  /** @param writes makes the tables where they are missing. @throws EngineAway */
  static async open(options: EngineEventsOptions, writes: boolean): Promise<EngineEvents> {
    const { database } = options;
    if (writes) {
      await erasureTables(database)();
      await prepared(database, 'memory', MEMORY_TABLES)();
      await movedItems(database)();
    }
    const there = await tablesThere(database, TABLES);
    return new EngineEvents(options, there, await clockAhead(database));
  }

  async count(): Promise<number> {
    if (!this.#there.has('memory_events')) return 0;
    const [row] = await this.#options.database.query<{ n: number }>(
      'SELECT coalesce(sum(events), 0)::bigint AS n FROM hopgate.memory_spaces WHERE name IS NOT NULL',
      [],
      READ_MS,
    );
    return row!.n;
  }

  async *pages(): AsyncGenerator<readonly MovedEvent[]> {
    if (!this.#there.has('memory_events')) return;
    this.unreadable = 0;
    for (let last = 0; ; ) {
      const rows = await this.#options.database.query<
        ReadEvent & { seq: number; space: string; bytes: number }
      >(
        `SELECT e.seq, s.name AS space, e.bytes, ${COLUMNS} FROM hopgate.memory_events e
           CROSS JOIN LATERAL (SELECT name FROM hopgate.memory_spaces WHERE id = e.space AND name IS NOT NULL LIMIT 1) s
           WHERE e.seq > $1 ORDER BY e.seq LIMIT ${PAGE}`,
        [last],
        READ_MS,
      );
      const page = rows.flatMap(({ space, bytes, ...row }) => {
        const event = this.#sealed.opened(space, row);
        return event === undefined ? [] : [{ space, event, bytes }];
      });
      this.unreadable += rows.length - page.length;
      if (page.length > 0) yield page;
      if (rows.length < PAGE) return;
      last = rows.at(-1)!.seq;
    }
  }

  /** By space and id: see {@link vectorKey}. */
  async vectors(events: readonly MovedEvent[]): Promise<ReadonlyMap<string, StoredVector>> {
    const rows = await this.#options.database.query<
      StoredVector & { seq: number; place: number; space: string; id: string }
    >(
      `SELECT v.seq, v.space AS place, g.space, g.id, v.model, v.signs, v.vector
         FROM unnest($1::text[], $2::text[]) AS g (space, id)
         CROSS JOIN LATERAL (${EVENT}) e
         CROSS JOIN LATERAL (SELECT * FROM hopgate.memory_vectors WHERE seq = e.seq LIMIT 1) v`,
      [events.map(({ space }) => space), events.map(({ event }) => event.id)],
      READ_MS,
    );
    return new Map(
      rows.map(({ seq, place, space, id, model, signs, vector }) => [
        vectorKey(space, id),
        {
          model,
          signs: this.#sealed.openedPart('signs', place, seq, signs),
          vector: this.#sealed.openedPart('vector', place, seq, vector),
        },
      ]),
    );
  }

  async standings(page: readonly MovedEvent[]): Promise<readonly Standing[]> {
    const { database } = this.#options;
    const looked = await this.#look(
      { query: (sql, values) => database.query(sql, values, READ_MS) },
      page,
    );
    return looked.map(({ standing }) => standing);
  }

  async #look(reader: SqlReader, page: readonly MovedEvent[]): Promise<readonly Looked[]> {
    const has = (table: (typeof TABLES)[number]) => this.#there.has(table);
    const erased = [
      ...(has('erasures') ? [isErased('g.hash', 'g.time')] : []),
      ...(has('memory_events')
        ? [
            'EXISTS (SELECT 1 FROM hopgate.memory_erasures x WHERE x.space = g.hash AND x.at >= g.time)',
          ]
        : []),
    ];
    const rows = await reader.query<LookedRow>(
      `SELECT ${has('moved_items') ? 'm.form' : 'NULL'} AS moved, ${erased.join(' OR ') || 'false'} AS erased,
           ${has('memory_events') ? COLUMNS : 'NULL AS id'}
         FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[])
           WITH ORDINALITY AS g (space, hash, id, time, place)
         ${has('memory_events') ? `LEFT JOIN LATERAL (${EVENT}) e ON true` : ''}
         ${
           has('moved_items')
             ? `LEFT JOIN LATERAL (SELECT form FROM hopgate.moved_items
                  WHERE kind = '${KIND}' AND owner = g.hash AND id = g.id LIMIT 1) m ON true`
             : ''
         }
         ORDER BY g.place`,
      [
        page.map(({ space }) => space),
        page.map(({ space }) => nameHash(space)),
        page.map(({ event }) => event.id),
        page.map(({ event }) => event.time + this.#ahead.least),
      ],
    );
    return rows.map((row, at) => {
      const { space, event } = page[at]!;
      const isThere = row.id !== null;
      const opened = isThere ? this.#sealed.opened(space, row) : undefined;
      const standing = standingOf({
        source: this.#blind(space, event),
        // What cannot be opened is never taken for older.
        target: isThere ? (opened === undefined ? '' : this.#blind(space, opened)) : undefined,
        moved: row.moved ?? undefined,
        isErased: row.erased,
      });
      return { standing, isThere };
    });
  }

  /** The form of an event, such that the database does not learn what it says. */
  #blind(space: string, event: MemoryEvent): string {
    return this.#options.seal.blind(formOf(event), `${space}\nmoved`);
  }

  /**
   * Writes events, all or none, but not what was erased or removed meanwhile.
   * @returns how many were written
   * @throws EngineAway, or a GatewayError that names the limit
   */
  async write(given: readonly EventWithVector[]): Promise<number> {
    const { database, limits, origin } = this.#options;
    try {
      const count = await database.transaction(async (inside) => {
        await beforeErasures(inside);
        // An erasure has it, too: it comes before what is read here, or after what is written.
        await inside.query('SELECT hopgate.memory_lock($1)', [given.map(({ space }) => space)]);
        const looked = await this.#look(inside, given);
        const missing = given.filter((_, at) => looked[at]!.standing === 'missing');
        if (missing.length === 0) return 0;
        for (const kind of ['add', 'change'] as const) {
          const some = given.filter((_, at) => {
            const { standing, isThere } = looked[at]!;
            return standing === 'missing' && isThere === (kind === 'change');
          });
          if (some.length > 0) await this.#put(inside, kind, some);
        }
        await this.#putVectors(inside, missing);
        const moved: MovedItem[] = missing.map(({ space, event }) => ({
          owner: nameHash(space),
          id: event.id,
          form: this.#blind(space, event),
        }));
        await noteMoved(inside, KIND, origin, moved);
        return missing.length;
      }, WRITE_MS);
      await this.#analyze(count);
      return count;
    } catch (thrown) {
      const { code } = thrown as { code?: unknown };
      if (code === 'HG001') throw spaceIsFull(limits);
      if (code === 'HG002') throw memoryIsFull(limits);
      throw thrown;
    }
  }

  /** Without statistics the functions of the memory read all of a table that was just filled. */
  async #analyze(count: number): Promise<void> {
    this.#written += count;
    if (this.#written < this.#analyzeAt) return;
    this.#analyzeAt *= 2;
    await this.#options.database.query(
      'ANALYZE hopgate.memory_events, hopgate.memory_terms, hopgate.moved_items',
      [],
      WRITE_MS,
    );
  }

  async #put(
    inside: SqlReader,
    kind: 'add' | 'change',
    events: readonly MovedEvent[],
  ): Promise<void> {
    const { limits } = this.#options;
    const given: object[] = [];
    for (const { space, event } of events) {
      const checked = { ...event, source: event.source ?? '' };
      given.push(this.#sealed.sealed(space, checked));
    }
    await inside.query('SELECT hopgate.memory_put($1, $2, $3, $4, 0, 0)', [
      kind,
      JSON.stringify(given),
      limits.events,
      limits.bytes,
    ]);
  }

  async #putVectors(inside: SqlReader, events: readonly EventWithVector[]): Promise<void> {
    const given = events.flatMap(({ space, event, vector }) =>
      vector === undefined ? [] : [{ space, id: event.id, vector }],
    );
    for (const model of new Set(given.map(({ vector }) => vector.model))) {
      const some = given.filter(({ vector }) => vector.model === model);
      const rows = await inside.query<{ seq: number; space: number; at: number }>(
        `SELECT e.seq, e.space, g.place - 1 AS at FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS g (space, id, place)
           CROSS JOIN LATERAL (${EVENT}) e`,
        [some.map(({ space }) => space), some.map(({ id }) => id)],
      );
      const sealed = rows.map(({ seq, space, at }) => {
        const { signs, vector } = some[at]!.vector;
        const part = (name: string, bytes: Uint8Array) =>
          this.#sealed.sealedPart(name, space, seq, bytes);
        return [seq, part('signs', signs), part('vector', vector)];
      });
      await inside.query('SELECT hopgate.memory_vectors_put($1, $2)', [
        model,
        JSON.stringify(sealed),
      ]);
    }
  }

  /** What was moved from this file, some at a time. */
  async *moved(): AsyncGenerator<readonly EventName[]> {
    if (!this.#there.has('moved_items')) return;
    yield* movedFrom(this.#options.database, KIND, this.#options.origin);
  }

  /** How many of these are there, by space; `not moved`: without those that {@link moved} gives. */
  async have(
    items: readonly EventName[],
    only?: 'not moved',
  ): Promise<readonly { readonly space: string; readonly count: number }[]> {
    if (items.length === 0 || !this.#there.has('memory_events')) return [];
    const { database, origin } = this.#options;
    const elsewhere =
      only === undefined || !this.#there.has('moved_items')
        ? NO_CONDITION
        : notMovedFrom(KIND, origin, 3);
    return database.query(
      `SELECT s.name AS space, count(*) AS count FROM unnest($1::text[], $2::text[]) AS g (owner, id)
         JOIN hopgate.memory_spaces s ON encode(sha256(convert_to(s.name, 'UTF8')), 'hex') = g.owner
         CROSS JOIN LATERAL (SELECT 1 FROM hopgate.memory_events WHERE space = s.id AND id = g.id LIMIT 1) e${elsewhere.sql}
         GROUP BY s.name ORDER BY s.name`,
      [items.map(({ owner }) => owner), items.map(({ id }) => id), ...elsewhere.values],
      READ_MS,
    );
  }
}

export const vectorKey = (space: string, id: string): string => `${space}\n${id}`;

/** The event of `g`. Looked up by the index, whatever the planner knows of tables that were just filled. */
const EVENT = `SELECT e.* FROM hopgate.memory_spaces s
  CROSS JOIN LATERAL (SELECT * FROM hopgate.memory_events WHERE space = s.id AND id = g.id LIMIT 1) e
  WHERE s.name = g.space LIMIT 1`;

const COLUMNS = "e.id, e.time, encode(e.body, 'base64') AS body, e.importance";

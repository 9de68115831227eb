/** The events of all replicas in Postgres: each method is one trip, and leaves the ranking to its caller. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { MemoryEvent } from '../../../conversation/memory.ts';
import { othersTurn } from '../../../lib/loop/steps.ts';
import { EngineAway, type Sql, type SqlValue } from '../../../state/engines/engine.ts';
import { nameHash } from '../../../state/erasures.ts';
import { prepared } from '../../../state/sql/migrations.ts';
import type { SpaceCount } from '../backend.ts';
import {
  type CheckedEvent,
  type EventTurn,
  isEventId,
  type MemoryLimits,
  memoryIsFull,
  spaceIsFull,
} from '../event.ts';
import {
  cursorOf,
  cursorPosition,
  type EventPage,
  type ListQuery,
} from '../store/event-row-store.ts';
import { DatabaseClock } from './database-clock.ts';
import type { ReadEvent, SealedEvents } from './sealed-events.ts';
import { MEMORY_TABLES } from './tables.ts';

export interface SharedStoreOptions {
  readonly database: Sql;
  readonly events: SealedEvents;
  readonly limits: MemoryLimits;
  readonly dedupeMs: number;
}

/** A captured event, whose id makes a second write of it harmless. */
export interface QueuedEvent {
  readonly space: string;
  readonly event: CheckedEvent & { readonly id: string };
  /** When its turn began, as of `instant`. */
  readonly began: number;
  readonly turn?: EventTurn;
}

export type WriteOutcome = 'stored' | 'duplicate' | 'full' | 'erased';

/** Milliseconds that a recall or a look-up may take, and a write, a list or a step of an erasure. */
export const READ_MS = 2000;
export const WRITE_MS = 5000;
/** Erasures are known for so long. A captured event that waited for longer is dropped: nobody can say. */
const ERASURES_MS = 7 * 86_400_000;
/** Events that one step of an erasure removes. */
const SWEEP_EVENTS = 500;
/** Milliseconds between the steps, also while another replica removes them. */
const SWEEP_PAUSE = 5;

export class SharedStore {
  readonly #options: SharedStoreOptions;
  readonly #prepared: () => Promise<void>;
  readonly #clock = new DatabaseClock();

  constructor(options: SharedStoreOptions) {
    this.#options = options;
    this.#prepared = prepared(options.database, 'memory', MEMORY_TABLES);
  }

  /** @throws EngineAway, or the database's error */
  async query<Row>(sql: string, values: readonly SqlValue[], ms: number): Promise<readonly Row[]> {
    // Once the tables are there, this waits for nothing.
    await inTime(this.#prepared(), ms);
    return this.#options.database.query<Row>(sql, values, ms);
  }

  /** The outcomes in order. The same events again change nothing. */
  async capture(captured: readonly QueuedEvent[]): Promise<readonly WriteOutcome[]> {
    if (!this.#clock.isKnown) {
      await this.call(
        "SELECT jsonb_build_object('clock', hopgate.memory_clock()) AS answer",
        [],
        READ_MS,
      );
    }
    const given: object[] = [];
    for (const { space, event, began, turn } of captured) {
      const ahead = this.#clock.aheadAt(began);
      given.push({
        ...this.#options.events.sealed(space, event),
        hash: nameHash(space),
        began: began + ahead,
        happened: event.time + ahead,
        ...(turn && this.#options.events.turn(space, turn, event.time - this.#options.dedupeMs)),
      });
      await othersTurn();
    }
    const outcomes = await this.#put('capture', given);
    return outcomes.map((one) => (typeof one === 'string' ? (one as WriteOutcome) : 'stored'));
  }

  /**
   * Adds all events or none. An event whose id the space already has stays unchanged (false).
   * @throws GatewayError that names the limit
   */
  async add(
    space: string,
    events: readonly CheckedEvent[],
  ): Promise<readonly (readonly [MemoryEvent, boolean])[]> {
    const { events: sealed } = this.#options;
    const given = events.map((event) => sealed.sealed(space, event));
    const outcomes = await this.#put('add', given);
    return outcomes.map((outcome, at) => {
      const stored = outcome === 'stored' ? given[at]! : (outcome as ReadEvent);
      const event = sealed.opened(space, stored);
      if (event !== undefined) return [event, outcome === 'stored'] as const;
      throw new GatewayError('internal', 'A stored event cannot be read (engines.seal).');
    });
  }

  /** Undefined: it is not there any more. @throws GatewayError at a limit */
  async change(
    space: string,
    event: CheckedEvent & { readonly id: string },
  ): Promise<MemoryEvent | undefined> {
    const given = this.#options.events.sealed(space, event);
    const [outcome] = await this.#put('change', [given]);
    return outcome === 'absent' ? undefined : this.#options.events.opened(space, given);
  }

  async get(space: string, id: string): Promise<MemoryEvent | undefined> {
    if (!isEventId(id)) return undefined;
    const rows = await this.query<ReadEvent>(
      `SELECT ${COLUMNS} FROM hopgate.memory_spaces s JOIN hopgate.memory_events e ON e.space = s.id
        WHERE s.name = $1 AND e.id = $2`,
      [space, id],
      READ_MS,
    );
    return rows[0] && this.#options.events.opened(space, rows[0]);
  }

  /** Leaves out what was sealed with a secret that is not configured any more. */
  async list(space: string, query: ListQuery): Promise<EventPage> {
    const { since = null, until = null, tag, limit, cursor, order } = query;
    const { events: sealed } = this.#options;
    const [time, row] = cursor === undefined ? [null, null] : cursorPosition(cursor);
    const [beyond, sorted] = order === 'asc' ? ['>', 'ASC'] : ['<', 'DESC'];
    const rows = await this.query<ReadEvent & { row: number }>(
      `SELECT e.seq AS row, ${COLUMNS} FROM hopgate.memory_spaces s
        JOIN hopgate.memory_events e ON e.space = s.id
        WHERE s.name = $1 AND ($2::bigint IS NULL OR e.time >= $2) AND ($3::bigint IS NULL OR e.time < $3)
          AND ($4::text IS NULL OR $4 = ANY(e.tags))
          AND ($5::bigint IS NULL OR (e.time, e.seq) ${beyond} ($5, $6::bigint))
        ORDER BY e.time ${sorted}, e.seq ${sorted} LIMIT $7`,
      [
        space,
        since,
        until,
        tag === undefined ? null : sealed.tag(space, tag),
        time,
        row,
        limit + 1,
      ],
      WRITE_MS,
    );
    const events = rows.slice(0, limit).flatMap((one) => sealed.opened(space, one) ?? []);
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return last === undefined ? { events } : { events, next: cursorOf(last) };
  }

  async remove(space: string, id: string): Promise<boolean> {
    if (!isEventId(id)) return false;
    const [row] = await this.query<{ removed: boolean }>(
      'SELECT hopgate.memory_drop($1, $2) AS removed',
      [space, id],
      WRITE_MS,
    );
    return row!.removed;
  }

  spaces(after: string, limit: number): Promise<readonly SpaceCount[]> {
    return this.query<SpaceCount>(
      `SELECT name AS space, events FROM hopgate.memory_spaces WHERE name > $1 AND events > 0
        ORDER BY name LIMIT $2`,
      [after.toWellFormed().replaceAll('\0', ''), limit],
      READ_MS,
    );
  }

  /** Hides the space at once. Returns its number of events. */
  async erase(space: string): Promise<number> {
    const { events } = await this.call<{ events: number }>(
      'SELECT hopgate.memory_erase($1, $2, $3) AS answer',
      [space, nameHash(space), ERASURES_MS],
      WRITE_MS,
    );
    return events;
  }

  /** Removes erased spaces, also those that a replica which ended left behind. */
  async sweep(): Promise<void> {
    for (;;) {
      const [row] = await this.query<{ more: boolean }>(
        'SELECT hopgate.memory_sweep($1) AS more',
        [SWEEP_EVENTS],
        WRITE_MS,
      );
      if (!row!.more) return;
      await Bun.sleep(SWEEP_PAUSE);
    }
  }

  async #put(kind: string, given: readonly object[]): Promise<readonly (string | ReadEvent)[]> {
    const { limits, dedupeMs } = this.#options;
    try {
      const { outcomes } = await this.call<{ outcomes: readonly (string | ReadEvent)[] }>(
        'SELECT hopgate.memory_put($1, $2, $3, $4, $5, $6) AS answer',
        [kind, JSON.stringify(given), limits.events, limits.bytes, dedupeMs, ERASURES_MS],
        WRITE_MS,
      );
      return outcomes;
    } catch (thrown) {
      const { code } = thrown as { code?: unknown };
      if (code === 'HG001') throw spaceIsFull(limits);
      if (code === 'HG002') throw memoryIsFull(limits);
      throw thrown;
    }
  }

  /** A function of the database whose answer has its time. */
  async call<Answer>(sql: string, values: readonly SqlValue[], ms: number): Promise<Answer> {
    const [row] = await this.query<{ answer: Answer & { readonly clock: number } }>(
      sql,
      values,
      ms,
    );
    this.#clock.measured(row!.answer.clock);
    return row!.answer;
  }
}

/** What takes longer goes on, and serves the next call. @throws EngineAway */
async function inTime(work: Promise<void>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const away = () => reject(new EngineAway('database', `no tables within ${ms} ms`));
    timer = setTimeout(away, ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

const COLUMNS = "e.id, e.time, encode(e.body, 'base64') AS body, e.importance";

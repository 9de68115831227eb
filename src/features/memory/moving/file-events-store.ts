/** The file of the memory as one side of a move: its events, how an event stands in it, and how events are written. */

import type { Database } from 'bun:sqlite';
import { nameHash } from '../../../state/erasures.ts';
import { type MovedInFile, movedInFile } from '../../../state/move/moved-store.ts';
import type { Standing } from '../../../state/move/paged-move.ts';
import { openSource } from '../../../state/move/source-store.ts';
import type { MemoryLimits } from '../event.ts';
import { type EventRow, eventOfRow } from '../store/event-row-store.ts';
import { openMemoryStore, VERSION } from '../store/memory-store.ts';
import { formOf, type MovedEvent, type StoredVector, standingOf } from './moved-event.ts';

const PAGE = 200;
/** Milliseconds to wait for a gateway that writes. */
const BUSY_MS = 5000;

/** An event by the hash of its space. */
export interface EventName {
  readonly owner: string;
  readonly id: string;
}

export class FileEvents {
  readonly #db: Database;
  readonly #moved: MovedInFile;

  private constructor(db: Database) {
    this.#db = db;
    this.#moved = movedInFile(db, false);
  }

  /** Undefined where there is no file. @throws Error with a message for people */
  static open(path: string): FileEvents | undefined {
    const file = openSource(path, VERSION);
    return file && new FileEvents(file.db);
  }

  count(): number {
    return this.#db
      .query<{ n: number }, []>(
        'SELECT cast(total(events) AS INTEGER) AS n FROM spaces WHERE name IS NOT NULL',
      )
      .get()!.n;
  }

  *pages(): Generator<readonly MovedEvent[]> {
    const query = this.#db.query<EventRow & { name: string }, [number]>(
      `SELECT e.*, s.name FROM events e JOIN spaces s ON s.id = e.space AND s.name IS NOT NULL
         WHERE e.row > ? ORDER BY e.row LIMIT ${PAGE}`,
    );
    for (let last = 0; ; ) {
      const rows = query.all(last);
      if (rows.length > 0) {
        yield rows.map((row) => ({
          space: row.name,
          event: eventOfRow(row),
          bytes: Buffer.byteLength(row.text),
        }));
      }
      if (rows.length < PAGE) return;
      last = rows.at(-1)!.row;
    }
  }

  vector({ space, event }: MovedEvent): StoredVector | undefined {
    const row = this.#db
      .query<StoredVector, [string, string]>(
        `SELECT model, signs, vector FROM spaces s JOIN events e ON e.space = s.id
           JOIN vectors v ON v.row = e.row WHERE s.name = ? AND e.id = ?`,
      )
      .get(space, event.id);
    return row ?? undefined;
  }

  standing({ space, event }: MovedEvent): Standing {
    return standingIn(this.#db, this.#moved, { space, event });
  }

  has({ owner, id }: EventName): boolean {
    const space = this.#spaces().get(owner);
    if (space === undefined) return false;
    const query = this.#db.query<unknown, [number, string]>(
      'SELECT 1 FROM events WHERE space = ? AND id = ?',
    );
    return query.get(space, id) !== null;
  }

  /** What a move wrote into the file and is not there any more, some at a time. */
  *removed(): Generator<readonly EventName[]> {
    for (const page of this.#moved.pages()) yield page.filter((one) => !this.has(one));
  }

  close(): void {
    this.#db.close();
  }

  #byHash: ReadonlyMap<string, number> | undefined;

  #spaces(): ReadonlyMap<string, number> {
    this.#byHash ??= new Map(
      this.#db
        .query<{ id: number; name: string }, []>(
          'SELECT id, name FROM spaces WHERE name IS NOT NULL',
        )
        .all()
        .map(({ id, name }) => [nameHash(name), id]),
    );
    return this.#byHash;
  }
}

export type EventWithVector = MovedEvent & { readonly vector: StoredVector | undefined };

export interface FileEventWriter {
  /**
   * Writes events, all or none, but not what was erased or removed meanwhile.
   * @returns how many were written
   * @throws GatewayError that names the limit
   */
  write(given: readonly EventWithVector[]): number;
  close(): void;
}

/** Makes the file where it is missing. */
export function fileEventWriter(path: string, limits: MemoryLimits): FileEventWriter {
  const store = openMemoryStore({ path, limits: () => limits, busy: BUSY_MS });
  return {
    write: (given) =>
      store.inOne((db) => {
        const moved = movedInFile(db, true);
        const putVector = db.query<unknown, [string, Uint8Array, Uint8Array, string, string]>(
          `INSERT OR REPLACE INTO vectors (row, space, model, signs, vector)
             SELECT e.row, e.space, ?, ?, ? FROM spaces s JOIN events e ON e.space = s.id WHERE s.name = ? AND e.id = ?`,
        );
        let count = 0;
        for (const one of given) {
          const { space, event, vector } = one;
          if (standingIn(db, moved, one) !== 'missing') continue;
          const checked = { ...event, source: event.source ?? '' };
          if (store.get(space, event.id) === undefined) store.add(space, [checked]);
          else store.change(space, checked);
          if (vector !== undefined) {
            putVector.run(vector.model, vector.signs, vector.vector, space, event.id);
          }
          moved.note(nameHash(space), event.id, formOf(event));
          count++;
        }
        return count;
      }),
    close: () => store.close(),
  };
}

function standingIn(
  db: Database,
  moved: MovedInFile,
  { space, event }: Pick<MovedEvent, 'space' | 'event'>,
): Standing {
  const hash = nameHash(space);
  const row = db
    .query<EventRow, [string, string]>(
      'SELECT e.* FROM spaces s JOIN events e ON e.space = s.id WHERE s.name = ? AND e.id = ?',
    )
    .get(space, event.id);
  const erased = db
    .query<{ at: number }, [Uint8Array]>('SELECT at FROM erasures WHERE space = ?')
    .get(Buffer.from(hash, 'hex'));
  return standingOf({
    source: formOf(event),
    target: row === null ? undefined : formOf(eventOfRow(row)),
    moved: moved.form(hash, event.id),
    isErased: erased !== null && erased.at >= event.time,
  });
}

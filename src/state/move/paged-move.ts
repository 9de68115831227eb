/** Moves one kind of state between the files of a machine and the shared engines, page by page, each item once. */

import { hostname } from 'node:os';
import type { EngineName, Sql } from '../engines/engine.ts';
import { nameHash } from '../erasures.ts';
import { type Prepared, prepared } from '../sql/migrations.ts';

/**
 * An item of the source in the target:
 * - `missing`: a copy writes it
 * - `there`: as in the source, or newer
 * - `differs`: in another form, and neither is known to be older
 * - `removed`: it was there before, and was removed
 * - `erased`: its memory space was erased there
 */
export type TargetState = 'missing' | 'there' | 'differs' | 'removed' | 'erased';

export type Tally = Readonly<Record<TargetState, number>>;

/** Both sides, open for one pass. Its methods reject where a side cannot be read or written. */
export interface MovePass<Key> {
  count(): number | Promise<number>;
  /** All items of the source, some at a time. */
  pages(): AsyncIterable<readonly Key[]> | Iterable<readonly Key[]>;
  /** In the order of the page. */
  states(page: readonly Key[]): readonly TargetState[] | Promise<readonly TargetState[]>;
  /** Writes items that are missing. @returns how many were written */
  write(missing: readonly Key[]): Promise<number>;
  /** Sentences for people about a comparison. */
  notes(tally: Tally): readonly string[] | Promise<readonly string[]>;
  /** After a copy. Rejects where something of it could not be read. */
  finish?(): void;
  close(): void | Promise<void>;
}

export interface PagedMove<Key> {
  readonly name: string;
  readonly item: string;
  readonly engine: EngineName;
  /** @param writes it is opened to copy; else neither files nor tables are made */
  open(writes: boolean): Promise<MovePass<Key>>;
}

export function pagedMove<Key>({ name, item, engine, open }: PagedMove<Key>): StateMove {
  async function using<T>(writes: boolean, work: (pass: MovePass<Key>) => Promise<T>): Promise<T> {
    const pass = await open(writes);
    try {
      return await work(pass);
    } finally {
      await pass.close();
    }
  }
  return {
    name,
    item,
    engine,
    compare: () => using(false, compared),
    copy: (onProgress) =>
      using(true, async (pass) => {
        const all = await pass.count();
        let done = 0;
        let written = 0;
        for await (const page of pass.pages()) {
          const states = await pass.states(page);
          const missing = page.filter((_, at) => states[at] === 'missing');
          if (missing.length > 0) written += await pass.write(missing);
          done += page.length;
          onProgress(done, Math.max(done, all));
        }
        pass.finish?.();
        return written;
      }),
  };
}

async function compared<Key>(pass: MovePass<Key>): Promise<MoveComparison> {
  const tally = await tallyOf(pass);
  const notes = await pass.notes(tally);
  const items = Object.values(tally).reduce((sum, count) => sum + count, 0);
  const { missing, differs } = tally;
  return { items, missing, conflicts: differs, ...(notes.length > 0 && { notes }) };
}

/** Counts all items of the source by their state. */
export async function tallyOf<Key>(pass: Pick<MovePass<Key>, 'pages' | 'states'>): Promise<Tally> {
  const tally = { missing: 0, there: 0, differs: 0, removed: 0, erased: 0 };
  for await (const page of pass.pages()) {
    for (const state of await pass.states(page)) tally[state]++;
  }
  return tally;
}

/**
 * Items that a copy leaves out, for people.
 * @param where `there`, or `on this machine`
 * @param space the kind of space that was erased
 */
export const leftOut = (
  { removed, erased }: Pick<Tally, 'removed' | 'erased'>,
  where: string,
  space = 'memory space',
): readonly string[] => [
  ...(removed > 0 ? [`${removed} were removed ${where}, and are not copied again.`] : []),
  ...(erased > 0 ? [`${erased} are not copied: their ${space} was erased ${where}.`] : []),
];

export const sealedElsewhere = (count: number): string =>
  `${count} cannot be opened: is the secret that sealed them in engines.seal?`;

/**
 * Warns that the file of this machine still has items that were removed in the engines.
 * @param there the move into the engines, open to compare; it is closed here
 */
export async function outdatedFile<Key>(
  path: string,
  there: MovePass<Key>,
): Promise<readonly string[]> {
  try {
    const { removed, erased } = await tallyOf(there);
    const count = removed + erased;
    return count === 0
      ? []
      : [
          `${count} of the file of this machine were removed in the engines: put ${path} away before the copy, so that they do not come back.`,
        ];
  } finally {
    await there.close();
  }
}

/** `form`: the item at that time, where it can change. `origin`: the file that it came from. */
const MIGRATIONS = [
  `CREATE TABLE hopgate.moved_items (
  kind text NOT NULL, owner text NOT NULL, id text NOT NULL, form text NOT NULL, origin text NOT NULL,
  PRIMARY KEY (kind, owner, id)
)
CREATE INDEX moved_items_origin ON hopgate.moved_items (kind, origin, owner, id)`,
];

/** The table is there once this has resolved. */
export const movedItems = (database: Sql): Prepared => prepared(database, 'moves', MIGRATIONS);

const READ_MS = 10_000;

/** Which file it is, on which machine: a hash. */
export const originOf = (path: string): string => nameHash(`${hostname()}\n${path}`).slice(0, 32);

/** These tables of the schema `hopgate`, as far as they are there. @throws EngineAway */
export async function tablesThere(
  database: Sql,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await database.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'hopgate' AND tablename = ANY($1::text[])",
    [names],
    READ_MS,
  );
  return new Set(rows.map(({ name }) => name));
}

/** Milliseconds by which the database's clock is ahead of this one's: at least, and at most. */
export interface ClockAhead {
  readonly least: number;
  readonly most: number;
}

/** @throws EngineAway */
export async function clockAhead(database: Sql): Promise<ClockAhead> {
  const before = Date.now();
  const [row] = await database.query<{ now: number }>(
    'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
    [],
    READ_MS,
  );
  return { least: row!.now - Date.now(), most: row!.now - before };
}

/** Lists of at most so many items and so many bytes together; a larger item is a list of its own. */
export function* batchesOf<Item extends { readonly bytes: number }>(
  items: readonly Item[],
  mostItems: number,
  mostBytes: number,
): Generator<readonly Item[]> {
  let batch: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    if (batch.length === mostItems || (batch.length > 0 && bytes + item.bytes > mostBytes)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(item);
    bytes += item.bytes;
  }
  if (batch.length > 0) yield batch;
}

export type MoveDirection = 'engines' | 'embedded';

/** Both sides of a move, compared. */
export interface MoveComparison {
  /** Items of the source. */
  readonly items: number;
  /** Items that the target lacks, or has in an older form: a copy writes them. */
  readonly missing: number;
  /** Items that differ, and neither side is known to be older: a copy leaves them as they are. */
  readonly conflicts: number;
  /** Sentences for people. */
  readonly notes?: readonly string[];
}

/**
 * One kind of state. A move copies and never removes: the source stays as it is. Both sides may be in use meanwhile.
 *
 * Each item is copied whole or not at all, and only once, however often a copy is cut and begun again.
 */
export interface StateMove {
  /** Its name for people: `keys`, `budgets` … */
  readonly name: string;
  /** One item of it: `key`, `window` … */
  readonly item: string;
  readonly engine: EngineName;
  /** A gateway with engines copies it at its start, so no command has to be run for it. */
  readonly byItself?: boolean;
  /** Writes nothing, neither files nor tables. Rejects where a side cannot be read. */
  compare(): Promise<MoveComparison>;
  /**
   * Copies items that {@link compare} calls missing, in batches.
   * @param onProgress how many items were gone through so far, of how many
   * @returns how many were written
   */
  copy(onProgress: (done: number, all: number) => void): Promise<number>;
}

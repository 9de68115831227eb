/** Stored responses in their tables: written in batches, read with their chain in one trip, removed by conversation and share. */

import { batchesOf } from '../../lib/loop/batches.ts';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import { othersTurn } from '../../lib/loop/steps.ts';
import {
  placeholders,
  readJson,
  rowPlaceholders,
  type SqlDatabase,
  type SqlStatements,
  type SqlValue,
} from '../../state/sql/sql.ts';
import { beyondLimits, type ShareRow } from './response-limits.ts';
import { type ColumnForms, columnForms } from './schema.ts';
import {
  isUsable,
  keyOf,
  type ResponseLimits,
  type ResponseRow,
  type RowKey,
} from './stored-response.ts';

/** Ids that a request names. */
export interface Named {
  /** Responses, and with `chains` also those that they continue. */
  readonly responses: readonly string[];
  readonly chains: boolean;
  /** Output items. */
  readonly items: readonly string[];
}

export interface ReadRows {
  readonly rows: readonly ResponseRow[];
  /** The chain goes on beyond the limits of one. */
  readonly isCut: boolean;
}

const READ_MS = 1000;
const WRITE_MS = 5000;
/** For many rows, or long texts. */
const LONG_MS = 20_000;
/** A longer chain is refused. */
const MAX_LINKS = 10_000;
const MAX_BYTES = 64 * 2 ** 20;
/** The part of a chain that one trip reads. */
const PAGE_LINKS = 1000;
const PAGE_BYTES = 8 * 2 ** 20;
/** Keys in one statement. */
const MAX_KEYS = 4096;
const PAGE = 500;
/** A replica that was away for longer must not bring its old queue. */
const REMEMBERED_MS = 40 * 86_400_000;
/** A conversation whose first response is still on its way has no rows yet. */
const NEW_MS = 60_000;

/** Writers share this advisory lock; a deletion has it alone, and so sees everything that was written, or is seen. */
export const LOCK = 7496251;

const COLUMNS =
  'owner, id, thread, created, previous, model, space, keeper, began, bytes, item_ids, items, response';
const HEAD =
  'owner, id, thread, created, previous, model, space, keeper, began, bytes, item_ids AS "itemIds", items';

type ReadRow = Omit<ResponseRow, 'itemIds' | 'response'> & {
  readonly itemIds: unknown;
  readonly response: Uint8Array | null;
};

const rowFrom = ({ itemIds, response, ...rest }: ReadRow): ResponseRow => ({
  ...rest,
  itemIds: readJson(itemIds) as readonly string[],
  response: response ?? new Uint8Array(0),
});

/** The last one again and again, up to a power of eight: few statements differ, and are kept prepared. */
function padded<T>(list: readonly T[], none: T): readonly T[] {
  const size = 8 ** Math.ceil(Math.log2(Math.max(1, list.length)) / 3);
  return [...list, ...Array.from({ length: size - list.length }, () => list.at(-1) ?? none)];
}

export class ResponseTables {
  readonly #forms: ColumnForms;
  /** Milliseconds by which the database's clock is ahead of this one's: at least, and at most. */
  #ahead = { least: 0, most: 0 };
  #lastUse = 0;

  constructor(private readonly db: SqlDatabase) {
    this.#forms = columnForms(db);
  }

  /** Rows that one statement writes: a file has one that is prepared, and no trips to save. */
  get #together(): number {
    return this.form === 'file' ? 1 : PAGE;
  }

  get form(): SqlDatabase['form'] {
    return this.db.form;
  }

  /** A time of this process by the clock of the database, as far as that is known: never later than it was. */
  timeOf(local: number): number {
    return local + this.#ahead.least;
  }

  /** The reverse, never later than it was, either. */
  localTimeOf(time: number): number {
    return time - this.#ahead.most;
  }

  /** @throws EngineAway, or the database's error */
  async learnClock(inside: Pick<SqlDatabase, 'query'> = this.db): Promise<void> {
    const before = preciseNow();
    const [row] = await inside.query<{ now: number }>(`SELECT ${this.db.now} AS now`);
    this.#learnt(row!.now, before);
  }

  /** @param now of the database, in whole milliseconds */
  #learnt(now: number, before: number): void {
    // A file has the clock of this machine.
    if (this.form === 'database')
      this.#ahead = { least: now - preciseNow(), most: now + 1 - before };
  }

  close(): void {
    this.db.close();
  }

  /**
   * Writes all of them or none, without those that were deleted or erased.
   * @param rows of different responses, `began` by the clock of this process
   * @param threads conversations that were continued
   * @returns what they continue and is not there: who made it has not written it yet, or never will
   * @throws EngineAway, or the database's error
   */
  async write(
    rows: readonly ResponseRow[],
    threads: readonly string[],
  ): Promise<readonly RowKey[]> {
    return this.db.transaction(
      async (inside) => {
        const kept = await this.#notRemoved(inside, rows);
        const known = await threadsOf(inside, rows);
        const lacking = rows.flatMap(({ owner, previous: id }) =>
          id === null || known.has(keyOf({ owner, id })) ? [] : [{ owner, id }],
        );
        const used = new Map(threads.map((thread) => [thread, this.#use()]));
        const placed = inThreads(kept, known);
        for (const { thread } of placed) used.set(thread, this.#use());
        await this.#put(inside, placed, used, 'replace');
        const written = new Set(rows.map(keyOf));
        return lacking.filter((key) => !written.has(keyOf(key)));
      },
      { deadlineMs: WRITE_MS, sharedLocks: [LOCK] },
    );
  }

  /** Now by the clock of the database, and later than the last time. */
  #use(): number {
    this.#lastUse = Math.max(this.timeOf(preciseNow()), this.#lastUse + 0.001);
    return this.#lastUse;
  }

  /** Reads the clock, too. @returns the others, `began` by the clock of the database */
  async #notRemoved(
    inside: SqlStatements,
    rows: readonly ResponseRow[],
  ): Promise<readonly ResponseRow[]> {
    const keys = padded(
      rows.map(({ owner, id }) => ({ owner, id })),
      NO_KEY,
    );
    const spaces = padded(
      rows.flatMap(({ space }) => space ?? []),
      '',
    );
    const before = preciseNow();
    const found = await inside.query<{ owner: string | null; id: string | null; at: number }>(
      `SELECT owner, id, 0 AS at FROM hopgate.response_deletions
         WHERE (owner, id) IN (VALUES ${rowPlaceholders(keys.length, 2)})
       UNION ALL SELECT NULL, space, at FROM hopgate.response_erasures
         WHERE space IN (${placeholders(spaces.length, keys.length * 2 + 1)})
       UNION ALL SELECT NULL, NULL, ${this.db.now}`,
      [...keys.flatMap(({ owner, id }) => [owner, id]), ...spaces],
    );
    const deleted = new Set<string>();
    const erased = new Map<string, number>();
    for (const { owner, id, at } of found) {
      if (id === null) this.#learnt(at, before);
      else if (owner === null) erased.set(id, at);
      else deleted.add(keyOf({ owner, id }));
    }
    return rows
      .map((row) => ({ ...row, began: this.timeOf(row.began) }))
      .filter((row) => {
        const at = row.space === null ? undefined : erased.get(row.space);
        return !deleted.has(keyOf(row)) && !(at !== undefined && at >= row.began);
      });
  }

  /** @param rows `began` by the clock of the database @returns those that are new, or with `replace` all */
  async #put(
    inside: SqlStatements,
    rows: readonly ResponseRow[],
    used: ReadonlyMap<string, number>,
    conflict: 'replace' | 'keep',
  ): Promise<readonly RowKey[]> {
    const { time, list } = this.#forms;
    // In one order, so that two who write the same do not wait for each other.
    const threads = [...used].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const chunk of batchesOf(threads, this.#together)) {
      const values = chunk.map((_, i) => `($${2 * i + 1}, ${time(`$${2 * i + 2}`)})`);
      await inside.query(
        `INSERT INTO hopgate.response_threads AS t (id, used) VALUES ${values.join(', ')}
           ON CONFLICT (id) DO UPDATE SET used = excluded.used WHERE excluded.used > t.used`,
        chunk.flat(),
      );
    }
    if (rows.length === 0) return [];
    const width = COLUMNS.split(', ').length;
    const idsOf = ({ itemIds }: ResponseRow) =>
      this.form === 'file' ? itemIds : itemIds.filter(isUsable);
    const tuple = (_: unknown, i: number) => {
      const first = i * width + 1;
      const [ids, texts] = [`$${first + 10}`, placeholders(2, first + 11)];
      return `(${placeholders(10, first)}, ${list(ids)}, ${texts})`;
    };
    const then =
      conflict === 'keep'
        ? 'NOTHING'
        : `UPDATE SET created = excluded.created, previous = excluded.previous, model = excluded.model,
             space = excluded.space, keeper = excluded.keeper, bytes = excluded.bytes,
             item_ids = excluded.item_ids, items = excluded.items, response = excluded.response`;
    const written: RowKey[] = [];
    for (const chunk of batchesOf(rows, this.#together)) {
      const keys = await inside.query<RowKey>(
        `INSERT INTO hopgate.responses (${COLUMNS}) VALUES ${chunk.map(tuple).join(', ')}
           ON CONFLICT (owner, id) DO ${then} RETURNING owner, id`,
        chunk.flatMap((row): SqlValue[] => [
          ...[row.owner, row.id, row.thread, row.created, row.previous, row.model, row.space],
          ...[row.keeper, row.began, row.bytes, JSON.stringify(idsOf(row))],
          ...[row.items, row.response],
        ]),
      );
      written.push(...keys);
    }
    const isWritten = new Set(written.map(keyOf));
    const items = new Map<string, readonly [owner: string, item: string, response: string]>();
    for (const row of rows) {
      const { owner, id } = row;
      if (!isWritten.has(keyOf(row))) continue;
      for (const item of idsOf(row)) items.set(`${owner}\n${item}`, [owner, item, id]);
    }
    const sorted = [...items].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
    for (const chunk of batchesOf(sorted, this.#together)) {
      await inside.query(
        `INSERT INTO hopgate.response_items (owner, item, response) VALUES ${rowPlaceholders(chunk.length, 3)}
           ON CONFLICT (owner, item) DO ${conflict === 'keep' ? 'NOTHING' : 'UPDATE SET response = excluded.response'}`,
        chunk.flat(),
      );
    }
    return written;
  }

  /**
   * What the ids name; a chain of usual length in one trip. The rows of a chain that are not named come without their
   * response object.
   * @throws EngineAway, or the database's error
   */
  async read(named: Named, owner: string): Promise<ReadRows> {
    const rows = new Map<string, ResponseRow>();
    const [items = [], ...more] = [...batchesOf(named.items, MAX_KEYS)];
    for (const chunk of more) {
      const page = await this.#page({ responses: [], chains: false, items: chunk }, owner, true);
      for (const row of page) rows.set(row.id, row);
    }
    let bytes = 0;
    let next: Named = { ...named, items };
    for (let isFirst = true; ; isFirst = false) {
      const page = await this.#page(next, owner, isFirst);
      let read = 0;
      for (const row of page) {
        read += row.bytes;
        if (!rows.has(row.id)) rows.set(row.id, row);
      }
      bytes += read;
      const isWhole = !named.chains || (page.length < PAGE_LINKS && read < PAGE_BYTES);
      const isCut = !isWhole && (bytes >= MAX_BYTES || rows.size >= MAX_LINKS);
      const links = page.flatMap(({ previous }) => previous ?? []).filter((id) => !rows.has(id));
      if (isWhole || isCut || links.length === 0) return { rows: [...rows.values()], isCut };
      await othersTurn();
      next = { responses: links, chains: true, items: [] };
    }
  }

  async #page(
    { responses, chains, items }: Named,
    owner: string,
    whole: boolean,
  ): Promise<readonly ResponseRow[]> {
    const ids = padded(responses, '');
    const itemIds = padded(items, '');
    const heads = placeholders(ids.length, 4);
    const rows = await this.db.query<ReadRow>(
      `WITH RECURSIVE chain (id, previous, total, links) AS (
         SELECT id, previous, bytes, 1 FROM hopgate.responses WHERE owner = $1 AND id IN (${heads})
         UNION ALL
         SELECT r.id, r.previous, c.total + r.bytes, c.links + 1
           FROM chain c JOIN hopgate.responses r ON r.owner = $1 AND r.id = c.previous
           WHERE c.total < $2 AND c.links < $3
       ), whole (id) AS (
         SELECT id FROM chain WHERE id IN (${whole ? heads : "''"})
         UNION SELECT response FROM hopgate.response_items
           WHERE owner = $1 AND item IN (${placeholders(itemIds.length, ids.length + 4)})
       )
       SELECT ${HEAD}, CASE WHEN id IN (SELECT id FROM whole) THEN response END AS response
         FROM hopgate.responses WHERE owner = $1 AND id IN (SELECT id FROM chain UNION SELECT id FROM whole)`,
      [owner, PAGE_BYTES, chains ? PAGE_LINKS : 1, ...ids, ...itemIds],
      READ_MS,
    );
    return rows.map(rowFrom);
  }

  /** Whole rows, those of them that are there. */
  async rows(
    keys: readonly RowKey[],
    inside: Pick<SqlDatabase, 'query'> = this.db,
  ): Promise<readonly ResponseRow[]> {
    if (keys.length === 0) return [];
    const all = padded(keys, NO_KEY);
    const rows = await inside.query<ReadRow & { readonly seq: number }>(
      `SELECT seq, ${HEAD}, response FROM hopgate.responses
         WHERE (owner, id) IN (VALUES ${rowPlaceholders(all.length, 2)}) ORDER BY seq`,
      all.flatMap(({ owner, id }) => [owner, id]),
      LONG_MS,
    );
    return rows.map(({ seq: _, ...row }) => rowFrom(row));
  }

  /**
   * Writes what `make` makes of the row, with no other process between. Undefined: it is not there; `same`: nothing was
   * made. `began` of the rows is by the clock of the database.
   * @throws EngineAway, or the database's error
   */
  async change(
    key: RowKey,
    make: (row: ResponseRow) => ResponseRow | undefined,
  ): Promise<ResponseRow | 'same' | undefined> {
    return this.#alone(async (inside) => {
      const [row] = await this.rows([key], inside);
      if (row === undefined) return undefined;
      const next = make(row);
      if (next === undefined) return 'same';
      await this.#put(inside, [next], new Map([[next.thread, this.#use()]]), 'replace');
      return next;
    });
  }

  /** Also what another process is about to write. @throws EngineAway, or the database's error */
  async remove({ owner, id }: RowKey): Promise<void> {
    await this.#alone(async (inside) => {
      await inside.query(
        `INSERT INTO hopgate.response_deletions (owner, id, at) VALUES ($1, $2, ${this.#forms.time(this.db.now)})
           ON CONFLICT (owner, id) DO NOTHING`,
        [owner, id],
      );
      await removeRows(inside, [{ owner, id }]);
    });
  }

  /** Removes rows as if they had never been there. */
  async forget(keys: readonly RowKey[]): Promise<void> {
    await this.db.transaction((inside) => removeRows(inside, keys), { frees: true });
  }

  /**
   * Removes the responses of a space, also those that any process is about to write.
   * @param at by the clock of this process: responses begun later stay; by default now, by the clock of the database
   * @throws EngineAway, or the database's error
   */
  async erase(
    space: string,
    at: number | undefined,
  ): Promise<{ readonly at: number; readonly rows: readonly RowKey[] }> {
    return this.#alone(async (inside) => {
      const until = (at ?? preciseNow()) + this.#ahead.most;
      await inside.query(
        `INSERT INTO hopgate.response_erasures AS e (space, at) VALUES ($1, $2)
           ON CONFLICT (space) DO UPDATE SET at = excluded.at WHERE excluded.at > e.at`,
        [space, until],
      );
      const rows = await inside.query<RowKey>(
        'SELECT owner, id FROM hopgate.responses WHERE space = $1 AND began <= $2',
        [space, until],
      );
      await removeRows(inside, rows);
      return { at: until, rows };
    }, true);
  }

  /** A transaction that waits for those that write, and lets none begin. The clock is known in it. */
  #alone<T>(work: (inside: SqlStatements) => Promise<T>, overwrites = false): Promise<T> {
    return this.db.transaction(
      async (inside) => {
        await this.learnClock(inside);
        return work(inside);
      },
      { deadlineMs: WRITE_MS, lock: LOCK, overwrites },
    );
  }

  /**
   * Removes rows beyond the limits, unless another process did so within this time.
   * @returns the removed rows; undefined: it was not this one's turn
   * @throws EngineAway, or the database's error
   */
  async prune(limits: ResponseLimits, everyMs: number): Promise<readonly RowKey[] | undefined> {
    const { ms, time } = this.#forms;
    const { now } = this.db;
    return this.db.transaction(
      async (inside) => {
        const turn = await inside.query(
          `UPDATE hopgate.response_upkeep SET at = ${time(now)}
             WHERE ${ms('at')} <= ${now} - CAST($1 AS bigint) RETURNING 1 AS turn`,
          [everyMs],
        );
        if (turn.length === 0) return undefined;
        const { rows: most, bytes, age } = limits;
        const isBeyond = await inside.query(
          `SELECT count(*) AS n FROM hopgate.responses r LEFT JOIN hopgate.response_threads t ON t.id = r.thread
             HAVING count(*) > $1 OR sum(r.bytes) > $2 OR min(${usedOf(this.#forms)}) < ${now} - CAST($3 AS bigint)`,
          [most, bytes, age],
        );
        const rows: RowKey[] = [];
        if (isBeyond.length > 0) {
          const all = await inside.query<ShareRow>(
            `SELECT r.owner, r.id, r.thread, r.seq, r.bytes, ${usedOf(this.#forms)} AS used,
                 ${usedOf(this.#forms)} < ${now} - CAST($1 AS bigint) AS idle
               FROM hopgate.responses r LEFT JOIN hopgate.response_threads t ON t.id = r.thread`,
            [age],
          );
          rows.push(...beyondLimits(all, limits));
        }
        for (const chunk of batchesOf(rows, MAX_KEYS)) await removeRows(inside, chunk);
        const before = (ms: number) => `${now} - ${ms}`;
        await inside.query(
          `DELETE FROM hopgate.response_threads WHERE ${ms('used')} < ${before(NEW_MS)}
             AND id NOT IN (SELECT thread FROM hopgate.responses)`,
        );
        await inside.query(
          `DELETE FROM hopgate.response_deletions WHERE ${ms('at')} < ${before(REMEMBERED_MS)}`,
        );
        await inside.query(
          `DELETE FROM hopgate.response_erasures WHERE at < ${before(REMEMBERED_MS)}`,
        );
        return rows;
      },
      { deadlineMs: LONG_MS, frees: true },
    );
  }

  /** The rows that were written first. */
  oldest(count: number): Promise<readonly (RowKey & { readonly bytes: number })[]> {
    return this.db.query(
      `SELECT owner, id, bytes FROM hopgate.responses ORDER BY seq LIMIT ${count}`,
      [],
      LONG_MS,
    );
  }

  /**
   * Takes in rows of other tables that are not here.
   * @param rows in the order in which they were made, times by the clock of this database
   * @returns those that are new
   */
  async take(
    inside: SqlStatements,
    rows: readonly { readonly row: ResponseRow; readonly used: number }[],
  ): Promise<readonly RowKey[]> {
    const given = rows.map(({ row }) => row);
    const placed = inThreads(given, await threadsOf(inside, given));
    const used = new Map<string, number>();
    for (const [at, { thread }] of placed.entries()) {
      used.set(thread, Math.max(used.get(thread) ?? 0, rows[at]!.used));
    }
    return this.#put(inside, placed, used, 'keep');
  }
}

const NO_KEY: RowKey = { owner: '', id: '' };

/** The conversations of the rows that these continue, as far as they are there, by {@link keyOf}. */
async function threadsOf(
  inside: SqlStatements,
  rows: readonly ResponseRow[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const keys = rows.flatMap(({ owner, previous: id }) => (id === null ? [] : [{ owner, id }]));
  for (const chunk of batchesOf(keys, MAX_KEYS)) {
    const all = padded(chunk, NO_KEY);
    const rows = await inside.query<RowKey & { readonly thread: string }>(
      `SELECT owner, id, thread FROM hopgate.responses
         WHERE (owner, id) IN (VALUES ${rowPlaceholders(all.length, 2)})`,
      all.flatMap(({ owner, id }) => [owner, id]),
    );
    for (const row of rows) found.set(keyOf(row), row.thread);
  }
  return found;
}

/** The rows in the conversations that they continue. @param known as of {@link threadsOf} */
function inThreads(
  rows: readonly ResponseRow[],
  known: ReadonlyMap<string, string>,
): readonly ResponseRow[] {
  const threads = new Map(known);
  return rows.map((row) => {
    const { owner, previous } = row;
    const continued = previous === null ? undefined : threads.get(keyOf({ owner, id: previous }));
    const thread = continued ?? row.thread;
    threads.set(keyOf(row), thread);
    return { ...row, thread };
  });
}

async function removeRows(inside: SqlStatements, keys: readonly RowKey[]): Promise<void> {
  if (keys.length === 0) return;
  const all = padded(keys, NO_KEY);
  const values = all.flatMap(({ owner, id }) => [owner, id]);
  const list = `(VALUES ${rowPlaceholders(all.length, 2)})`;
  await inside.query(
    `DELETE FROM hopgate.response_items WHERE (owner, response) IN ${list}`,
    values,
  );
  await inside.query(`DELETE FROM hopgate.responses WHERE (owner, id) IN ${list}`, values);
}

/** When the conversation of a response was used last. */
const usedOf = ({ ms }: ColumnForms): string => `coalesce(${ms('t.used')}, r.created * 1000.0)`;

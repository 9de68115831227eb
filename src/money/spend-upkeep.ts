/** Upkeep of the tables of spend: deletes old rows and totals, and books the tries of dead machines, in one replica at a time. */

import type { SqlDatabase, SqlStatements } from '../state/sql/sql.ts';
import { HOUR, LOST, MONTH } from './schema.ts';
import { dropMonth } from './spend-months.ts';
import { MACHINE_LOCK, type SpendStore } from './spend-store.ts';

const DAY_MS = 86_400_000;
/** Days for which the mark of a process stays after its files are gone: every keeper that had read them has ended. */
const MARK_DAYS = 30;
/** Days for which rows stay at most whose true row may still come. */
const KEPT_DAYS = 366;
/** Machines of one turn. */
const MAX_LAPSED = 20;

const LAPSE_LOCK = 7_496_234;
const PRUNE_LOCK = 7_496_235;

/** The time of the newest row, in ms since 1970; undefined: there is none, or the database has a clock of its own. */
export async function newestTime({ database }: SpendStore): Promise<number | undefined> {
  if (database.form !== 'file') return undefined;
  const [row] = await database.query<{ time: number }>(
    'SELECT time FROM hopgate.spend ORDER BY id DESC LIMIT 1',
  );
  return row?.time;
}

/**
 * Deletes some old rows. True: there are more.
 * @param keep days; 0 = for ever
 * @param settledMs a month whose table was made again later than so long ago stays: late rows must not count twice
 * @param most rows of each table
 * @param clock the time, in ms since 1970, for a file; a database has its own
 */
export function prune(
  store: SpendStore,
  keep: { readonly rows: number; readonly totals: number },
  settledMs: number,
  most: number,
  clock: () => number = Date.now,
): Promise<boolean> {
  const isFile = store.database.form === 'file';
  return store.writing(async (inside) => {
    let more = false;
    if (!isFile && !(await tryLock(inside, PRUNE_LOCK))) return false;
    // The clock of one replica must not delete the rows of all.
    const now = isFile ? clock() : await timeOf(store.database, inside);
    const before = (days: number) => now - days * DAY_MS;
    if (keep.rows > 0) {
      more = isFile
        ? await dropRows(inside, before(keep.rows), most)
        : await dropMonth(inside, before(keep.rows), settledMs);
    }
    const drop = async (table: string, keys: string, where: string, time: number) => {
      const gone = await inside.query(
        `DELETE FROM ${table} WHERE (${keys}) IN (SELECT ${keys} FROM ${table} WHERE ${where} LIMIT ${most}) RETURNING 1`,
        [time],
      );
      more ||= gone.length === most;
    };
    if (keep.totals > 0) {
      const { totals, sessionTotals } = store.names;
      for (let span = HOUR; span <= MONTH; span++) {
        const time = before(keep.totals + (span === MONTH ? 31 : 1));
        const keys = 'span, start, key, labels, model, target';
        await drop(totals, keys, `span = ${span} AND start < $1`, time);
      }
      await drop(sessionTotals, 'start, session, key', 'start < $1', before(keep.totals + 1));
    }
    await drop('hopgate.spend_marks', 'writer', 'gone < $1', before(MARK_DAYS));
    if (!isFile) {
      const days = Math.min(KEPT_DAYS, keep.totals || KEPT_DAYS);
      await drop('hopgate.spend_kept', 'at, writer, n', 'at < $1', before(days));
      await inside.query(
        `DELETE FROM hopgate.spend_spools s WHERE seen < clock_timestamp() - interval '30 days'
          AND NOT EXISTS (SELECT 1 FROM hopgate.spend_open o WHERE o.spool = s.id)`,
      );
    }
    return more;
  });
}

async function timeOf({ now }: SqlDatabase, inside: SqlStatements): Promise<number> {
  const [row] = await inside.query<{ now: number }>(`SELECT ${now} AS now`);
  return Number(row!.now);
}

async function dropRows(inside: SqlStatements, time: number, most: number): Promise<boolean> {
  const gone = await inside.query(
    `DELETE FROM hopgate.spend WHERE time < $1 AND id IN (SELECT id FROM hopgate.spend ORDER BY id LIMIT ${most})
      RETURNING 1`,
    [time],
  );
  return gone.length === most;
}

/**
 * Books the tries of machines that were not heard for so long: they are lost, at the cost that was reserved, until
 * their true rows come.
 * @param most tries of one machine
 * @returns how many
 */
export function lapse(store: SpendStore, afterMs: number, most: number): Promise<number> {
  if (store.database.form === 'file') return Promise.resolve(0);
  return store.writing(async (inside) => {
    if (!(await tryLock(inside, LAPSE_LOCK))) return 0;
    const silent = "seen < clock_timestamp() - $1 * interval '1 millisecond'";
    const machines = await inside.query<{ id: string }>(
      `SELECT id FROM hopgate.spend_spools s WHERE ${silent}
        AND EXISTS (SELECT 1 FROM hopgate.spend_open o WHERE o.spool = s.id) LIMIT ${MAX_LAPSED}`,
      [afterMs],
    );
    let found = 0;
    for (const { id } of machines) {
      if (found >= most || !(await tryLock(inside, MACHINE_LOCK, id))) continue;
      const still = await inside.query(
        `SELECT 1 FROM hopgate.spend_spools WHERE id = $2 AND ${silent}`,
        [afterMs, id],
      );
      if (still.length === 0) continue;
      const some = `(at, writer, n) IN (SELECT at, writer, n FROM hopgate.spend_open WHERE spool = $1 ORDER BY at LIMIT ${most})`;
      found += await store.book(inside, some, [id], ({ row, ...named }) => ({
        ...named,
        rev: LOST,
        row: { ...row, ended: 'lost' },
      }));
    }
    return found;
  });
}

/** @param text a part of the lock: others may have the other parts */
async function tryLock(inside: SqlStatements, lock: number, text?: string): Promise<boolean> {
  const [row] = await inside.query<{ locked: boolean }>(
    text === undefined
      ? `SELECT pg_try_advisory_xact_lock(${lock}) AS locked`
      : `SELECT pg_try_advisory_xact_lock(${lock}, hashtext($1)) AS locked`,
    text === undefined ? [] : [text],
  );
  return row!.locked;
}

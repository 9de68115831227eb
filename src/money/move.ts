/** Moves what was spent between the file of a machine and the database of all replicas: rows, and totals that have no rows. */

import { existsSync } from 'node:fs';
import type { Sql } from '../state/engines/engine.ts';
import { Keeper } from '../state/journal/keeper.ts';
import type { MoveComparison, MoveDirection, StateMove } from '../state/move/state-move.ts';
import { rowFrom } from './earlier-store.ts';
import { PAGE, SharedSpendRows } from './moved-database.ts';
import { type FileRow, type RowPlace, SpendFile } from './moved-file-store.ts';
import { databaseFolder, fileFolder } from './open-spend.ts';
import { ENDED } from './schema.ts';
import { fileStore, type NamedRow, type SpendStore } from './spend-store.ts';

export interface SpendMoveOptions {
  readonly database: Sql;
  /** The file of this machine. */
  readonly path: string;
  readonly to: MoveDirection;
  /** Days after which rows are deleted; 0 = never. */
  readonly keepDays: number;
  /** The name of this machine, for people. */
  readonly replica: string;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const BEGINNING: RowPlace = { id: 0, time: 0 };
const FACTS = { name: 'spend', item: 'row', engine: 'database' } as const;

/** How the database names rows of a file that it did not get from the gateway itself. */
const writerOf = (origin: string) => `file-${origin}`;

export const spendMove = (options: SpendMoveOptions): StateMove =>
  options.to === 'engines' ? toEngines(options) : toFile(options);

function toEngines(options: SpendMoveOptions): StateMove {
  const { database, path, keepDays, replica } = options;
  const usualSince = () => (keepDays === 0 ? 0 : Date.now() - keepDays * DAY_MS);
  return {
    ...FACTS,
    async compare() {
      const file = SpendFile.open(path);
      if (file === undefined) return NOTHING;
      try {
        const shared = await SharedSpendRows.open(database, false);
        const mark = await shared.mark(file.origin);
        const since = mark?.since ?? usualSince();
        const { id } = file.placeFrom(mark ?? BEGINNING);
        const isFirst = mark?.totals !== true && !file.hasImports(shared.name);
        const totals = isFirst ? countOf(file.totals(since)) : 0;
        const isOther = isFirst && !(await shared.knows(file.sent()));
        const rows = file.count(0, since, isOther);
        const news = id === 0 ? rows : file.count(id, since, isOther);
        const notes = file.unsent > 0 ? [WAITING(file.unsent)] : [];
        return { items: rows + totals, missing: news + totals, conflicts: 0, notes };
      } finally {
        file.close();
      }
    },
    async copy(onProgress) {
      if (!existsSync(path)) return 0;
      const origin = SpendFile.name(path);
      const own = fileStore(path);
      await takeIn(own, fileFolder(path)).finally(() => own.close());
      const shared = await SharedSpendRows.open(database, true);
      const store = shared.storeOf(origin, replica);
      await shared.begin(origin, usualSince());
      const mark = (await shared.mark(origin))!;
      const file = SpendFile.open(path)!;
      try {
        const { id } = file.placeFrom(mark);
        // What came from there and was deleted here since cannot be told from the rest, and is counted there already.
        const isFirst = !mark.totals && !file.hasImports(shared.name);
        const isOther = isFirst && !(await shared.knows(file.sent()));
        const all = file.count(id, mark.since, isOther);
        let done = 0;
        for (const { rows, upTo } of file.pages(id, mark.since, isOther, PAGE)) {
          await shared.putRows(
            store,
            origin,
            rows.map((row) => namedOf(row, origin, replica)),
            upTo,
          );
          done += rows.length;
          onProgress(done, Math.max(done, all));
        }
        if (mark.totals) return done;
        const totals = isFirst ? await copyTotals(file, shared, origin, mark.since) : 0;
        await shared.endTotals(origin);
        return done + totals;
      } finally {
        file.close();
      }
    },
  };
}

/** Once for a file: later, rows that were moved are deleted here, and nothing tells them from others. */
async function copyTotals(
  file: SpendFile,
  shared: SharedSpendRows,
  origin: string,
  since: number,
): Promise<number> {
  let count = 0;
  for (const batch of batches(file.totals(since))) {
    await shared.putTotals(origin, batch);
    count += batch.length;
  }
  for (const batch of batches(file.sessions(since))) await shared.putSessions(origin, batch);
  return count;
}

function namedOf(file: FileRow, origin: string, replica: string): NamedRow {
  const { of_writer, of_n, of_at, of_rev, ...row } = file;
  const name =
    of_writer === null
      ? { at: row.time, writer: writerOf(origin), n: row.id, rev: ENDED }
      : { at: of_at, writer: of_writer, n: of_n, rev: of_rev };
  return { ...name, row: rowFrom(row), replica };
}

/** What processes have left that were killed, and did not start again. */
const takeIn = (tables: SpendStore, folder: string): Promise<void> =>
  new Keeper({ folder, tables, onRefused: () => {} }).look();

const NOTHING: MoveComparison = { items: 0, missing: 0, conflicts: 0 };

const WAITING = (rows: number) =>
  `${rows} more wait in the file for the gateway, which sends them by itself.`;

function countOf(all: Iterable<unknown>): number {
  let count = 0;
  for (const _ of all) count++;
  return count;
}

function* batches<T>(all: Iterable<T>): Iterable<readonly T[]> {
  let batch: T[] = [];
  for (const one of all) {
    batch.push(one);
    if (batch.length < PAGE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function toFile({ database, path }: SpendMoveOptions): StateMove {
  /** Days of which the file has not all. */
  async function lacking(file: SpendFile | undefined, shared: SharedSpendRows) {
    const origin = file?.origin;
    const own = origin === undefined ? undefined : writerOf(origin);
    const there = await shared.days(own);
    const here = new Map((file?.days() ?? []).map((one) => [one.day, one]));
    const items = there.reduce((sum, { rows }) => sum + rows, 0);
    const days = there.flatMap(({ day, rows, revs }) => {
      const known = here.get(day);
      if (known?.rows === rows && known.revs === revs) return [];
      return [{ day, rows, missing: Math.max(1, rows - (known?.rows ?? 0)) }];
    });
    return { own, items, days };
  }
  return {
    ...FACTS,
    async compare() {
      const file = SpendFile.open(path);
      try {
        const shared = await SharedSpendRows.open(database, false);
        const { items, days } = await lacking(file, shared);
        const totals = (await withoutRows(file, shared)).hours.length;
        const missing = days.reduce((sum, day) => sum + day.missing, totals);
        return { items: items + totals, missing, conflicts: 0 };
      } finally {
        file?.close();
      }
    },
    async copy(onProgress) {
      SpendFile.name(path);
      const file = SpendFile.open(path)!;
      const store = fileStore(path);
      try {
        const shared = await SharedSpendRows.open(database, true);
        await takeIn(shared.storeOf(file.origin!), databaseFolder(path));
        const { own, days } = await lacking(file, shared);
        const all = days.reduce((sum, { rows }) => sum + rows, 0);
        let done = 0;
        let written = 0;
        for (const { day } of days) {
          for await (const rows of shared.rowsOf(day, own)) {
            const named = rows.map(({ at, writer, n, rev, replica = null, ...row }) => {
              return { at, writer, n, rev, replica, row: rowFrom(row) };
            });
            written += await file.takeIn(store, named, shared.name!);
            done += rows.length;
            onProgress(done, Math.max(done, all));
          }
        }
        const { from, hours } = await withoutRows(file, shared);
        let sessionsOf = from - 1;
        for (const hour of hours) {
          const totals = await shared.totalsWithoutRows(hour);
          const day = hour - (hour % DAY_MS);
          const sessions = day > sessionsOf ? await shared.sessionsWithoutRows(day) : [];
          await file.takeTotals(store, shared.name!, hour, totals, sessions);
          sessionsOf = Math.max(sessionsOf, day);
        }
        return written + hours.length;
      } finally {
        store.close();
        file.close();
      }
    },
  };
}

/**
 * Hours of which the database has deleted rows after their time, and only totals are left. Those in which this file
 * counted alone are left out: its own part is among them. So are hours that were taken before. The sessions of a day
 * go with its first hour.
 */
async function withoutRows(file: SpendFile | undefined, shared: SharedSpendRows) {
  const mark = await shared.mark(file?.origin);
  const taken = file?.takenThrough(shared.name);
  const known = Math.max(mark?.time ?? Number.NEGATIVE_INFINITY, taken ?? Number.NEGATIVE_INFINITY);
  const from = known === Number.NEGATIVE_INFINITY ? 0 : known - (known % HOUR_MS) + HOUR_MS;
  // The present hour is not over.
  const to = Date.now() - (Date.now() % HOUR_MS);
  return { from, hours: await shared.hoursWithoutRows(from, to) };
}

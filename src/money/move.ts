/** Moves what was spent between the file of a machine and the database of all replicas: rows, and totals that have no rows. */

import { existsSync } from 'node:fs';
import { batchesOf } from '../lib/loop/batches.ts';
import { Keeper } from '../state/journal/keeper.ts';
import {
  type MoveComparison,
  type MoveProgress,
  NOTHING,
  type StateMove,
  stateMove,
} from '../state/move/paged-move.ts';
import { type MoveOptions, openSides, type Sides } from '../state/move/sides.ts';
import { rowPlaceholders, type SqlStatements } from '../state/sql/sql.ts';
import { rowFrom } from './earlier-store.ts';
import {
  BEGINNING,
  type DatabaseRow,
  type FileRow,
  nameFile,
  PAGE,
  SpendDatabase,
  SpendFile,
} from './moved-tables.ts';
import { databaseFolder, fileFolder } from './open-spend.ts';
import { ENDED, type HourTotals, type SessionTotals, SUM_COLUMNS, spendSchema } from './schema.ts';
import { type NamedRow, SpendStore } from './spend-store.ts';

export interface SpendMoveOptions extends MoveOptions {
  /** Days after which rows are deleted; 0 = never. */
  readonly keepDays: number;
  /** The name of this machine, for people. */
  readonly replica: string;
}

/** Both sides; `file` is undefined where there is none. */
interface SpendSides extends Pick<SpendMoveOptions, 'keepDays' | 'replica'>, Pick<Sides, 'close'> {
  readonly sides: Sides;
  readonly file: SpendFile | undefined;
  readonly shared: SpendDatabase;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** The writer of moved rows in the database. */
const writerOf = (origin: string) => `file-${origin}`;

export const spendMove = (options: SpendMoveOptions): StateMove =>
  stateMove(
    { name: 'spend', item: 'row', engine: 'database' },
    (writes) => opened(options, writes),
    options.to === 'engines' ? comparedThere : comparedHere,
    options.to === 'engines' ? copiedThere : copiedHere,
  );

/** Before a copy, takes in the journals of processes that were killed and did not start again. */
async function opened(options: SpendMoveOptions, writes: boolean): Promise<SpendSides | undefined> {
  const { path, to, keepDays, replica } = options;
  if (to === 'engines' && !existsSync(path)) return undefined;
  const sides = await openSides(spendSchema(), options, {
    writes: writes ? 'both' : undefined,
    prepare: nameFile,
  });
  const { close } = sides;
  try {
    const file = sides.file && (await SpendFile.of(sides.file));
    const shared = await SpendDatabase.of(sides.database);
    if (writes && file !== undefined) {
      const [folder, tables] =
        to === 'engines'
          ? [fileFolder(path), fileStore(sides)]
          : [databaseFolder(path), databaseStore(sides, file.origin!)];
      await new Keeper({ folder, tables, onRefused: () => {} }).look();
    }
    return { sides, file, shared, keepDays, replica, close };
  } catch (thrown) {
    close();
    throw thrown;
  }
}

const fileStore = ({ file }: Sides) => new SpendStore(file!.db, { machine: '' });
/** A machine has an order of its own. */
const databaseStore = ({ database }: Sides, machine: string, replica = '') =>
  new SpendStore(database.db, { machine, replica });

/** The rows and totals of a file that are not moved yet. */
async function leftOf({ file, shared, keepDays }: SpendSides) {
  if (file === undefined) return undefined;
  const mark = await shared.mark(file.origin);
  const since = mark?.since ?? (keepDays === 0 ? 0 : Date.now() - keepDays * DAY_MS);
  const { id } = await file.placeFrom(mark ?? BEGINNING);
  // Rows from there that were deleted here since look like other totals, and are counted there already.
  const isFirst = mark?.totals !== true && !(await file.hasImports(shared.name));
  const isOther = isFirst && !(await shared.knows(await file.sent()));
  return { file, since, id, isFirst, isOther, isMarked: mark?.totals === true };
}

async function comparedThere(both: SpendSides): Promise<MoveComparison> {
  const left = await leftOf(both);
  if (left === undefined) return NOTHING;
  const { file, since, id, isFirst, isOther } = left;
  const totals = isFirst ? (await file.totals(since)).length : 0;
  const rows = await file.count(0, since, isOther);
  const news = id === 0 ? rows : await file.count(id, since, isOther);
  const unsent = await file.unsent();
  const notes =
    unsent > 0
      ? [`${unsent} more wait in the file for the gateway, which sends them by itself.`]
      : [];
  return { items: rows + totals, missing: news + totals, conflicts: 0, notes };
}

async function copiedThere(both: SpendSides, onProgress: MoveProgress): Promise<number> {
  const { file, since, id, isFirst, isOther, isMarked } = (await leftOf(both))!;
  const { replica } = both;
  const origin = file.origin!;
  const store = databaseStore(both.sides, origin, replica);
  await store.writing((inside) =>
    inside.query(
      'INSERT INTO hopgate.spend_moves (origin, since, id, time) VALUES ($1, $2, 0, 0) ON CONFLICT DO NOTHING',
      [origin, since],
    ),
  );
  const all = await file.count(id, since, isOther);
  let done = 0;
  for await (const { rows, upTo } of file.pages(id, since, isOther)) {
    const named = rows.map((row) => namedOf(row, origin, replica));
    await store.writing(async (inside) => {
      await store.replace(inside, named);
      await inside.query('UPDATE hopgate.spend_moves SET id = $2, time = $3 WHERE origin = $1', [
        ...[origin, upTo.id, upTo.time],
      ]);
    });
    done += rows.length;
    onProgress(done, Math.max(done, all));
  }
  if (isMarked) return done;
  // Once for a file: later its totals also count moved rows that were deleted here.
  const totals = isFirst ? await file.totals(since) : [];
  const sessions = isFirst ? await file.sessions(since) : [];
  for (const batch of batchesOf(totals, PAGE)) {
    await store.writing(async (inside) =>
      store.addTotals(inside, await noted(store, inside, 'spend_moved_totals', origin, batch), []),
    );
  }
  for (const batch of batchesOf(sessions, PAGE)) {
    await store.writing(async (inside) => {
      const news = await noted(store, inside, 'spend_moved_sessions', origin, batch);
      await store.addTotals(inside, [], news.map(withoutRows));
    });
  }
  await store.writing((inside) =>
    inside.query('UPDATE hopgate.spend_moves SET totals = true WHERE origin = $1', [origin]),
  );
  return done + totals.length;
}

function namedOf(file: FileRow, origin: string, replica: string): NamedRow {
  const { of_writer, of_n, of_at, of_rev, ...row } = file;
  const name =
    of_writer === null
      ? { at: row.time, writer: writerOf(origin), n: row.id, rev: ENDED }
      : { at: of_at, writer: of_writer, n: of_n, rev: of_rev };
  return { ...name, row: rowFrom(row), replica };
}

const TOTALS_KEY = ['start', 'key', 'labels', 'model', 'target'];
const SESSIONS_KEY = ['start', 'session', 'key'];

/** Notes totals of a file, by their keys. @returns those that were not noted before */
async function noted<Group extends HourTotals | SessionTotals>(
  store: SpendStore,
  inside: SqlStatements,
  table: string,
  origin: string,
  groups: readonly Group[],
): Promise<readonly Group[]> {
  const key = table === 'spend_moved_totals' ? TOTALS_KEY : SESSIONS_KEY;
  const columns = [...key, ...SUM_COLUMNS];
  const labels = await store.textIds(
    inside,
    groups.flatMap((group) => ('labels' in group ? group.labels : [])),
  );
  const rows = groups.map((group) => {
    const values = { ...group, ...('labels' in group && { labels: labels.get(group.labels) }) };
    return columns.map((name) => values[name as keyof typeof values] as string | number);
  });
  const found = await inside.query<Readonly<Record<string, string | number>>>(
    `INSERT INTO hopgate.${table} (origin, ${columns.join(', ')})
       VALUES ${rowPlaceholders(rows.length, columns.length + 1)} ON CONFLICT DO NOTHING RETURNING ${key.join(', ')}`,
    rows.flatMap((row) => [origin, ...row]),
  );
  const news = new Set(found.map((row) => key.map((name) => row[name]).join('\n')));
  return groups.filter((_, at) => news.has(rows[at]!.slice(0, key.length).join('\n')));
}

/** The file has none of the rows that these totals count. */
const withoutRows = (one: SessionTotals) => ({ ...one, first_row: null, last_row: null });

/** Days with rows that the file lacks. */
async function lacking({ file, shared }: SpendSides) {
  const own = file?.origin === undefined ? undefined : writerOf(file.origin);
  const there = await shared.days(own);
  const here = new Map(((await file?.days()) ?? []).map((one) => [one.day, one]));
  const items = there.reduce((sum, { rows }) => sum + rows, 0);
  const days = there.flatMap(({ day, rows, revs }) => {
    const known = here.get(day);
    if (known?.rows === rows && known.revs === revs) return [];
    return [{ day, rows, missing: Math.max(1, rows - (known?.rows ?? 0)) }];
  });
  return { own, items, days };
}

async function comparedHere(both: SpendSides): Promise<MoveComparison> {
  const { items, days } = await lacking(both);
  const totals = (await withoutRowsThere(both)).hours.length;
  const missing = days.reduce((sum, day) => sum + day.missing, totals);
  return { items: items + totals, missing, conflicts: 0 };
}

async function copiedHere(both: SpendSides, onProgress: MoveProgress): Promise<number> {
  const { sides, shared } = both;
  const store = fileStore(sides);
  const name = shared.name!;
  const { own, days } = await lacking(both);
  const all = days.reduce((sum, { rows }) => sum + rows, 0);
  let done = 0;
  let written = 0;
  for (const { day } of days) {
    for await (const rows of shared.rowsOf(day, own)) {
      written += await store.writing((inside) => takeRows(store, inside, rows, name));
      done += rows.length;
      onProgress(done, Math.max(done, all));
    }
  }
  const { from, hours } = await withoutRowsThere(both);
  let sessionsOf = from - 1;
  for (const hour of hours) {
    const totals = await shared.totalsOf(hour);
    const day = hour - (hour % DAY_MS);
    const sessions = day > sessionsOf ? await shared.sessionsOf(day) : [];
    await store.writing(async (inside) => {
      await store.addTotals(inside, totals, sessions.map(withoutRows));
      await inside.query('INSERT OR REPLACE INTO taken_totals VALUES ($1, $2)', [name, hour]);
    });
    sessionsOf = Math.max(sessionsOf, day);
  }
  return written + hours.length;
}

/** Writes rows of the database that the file lacks or has in an older version. @returns how many */
async function takeRows(
  store: SpendStore,
  inside: SqlStatements,
  rows: readonly DatabaseRow[],
  database: string,
): Promise<number> {
  const news: NamedRow[] = [];
  const gone: number[] = [];
  for (const { at, writer, n, rev, replica = null, ...row } of rows) {
    const [known] = await inside.query<{ rev: number; spend: number }>(
      'SELECT rev, spend FROM shared_rows WHERE writer = $1 AND n = $2 AND at = $3',
      [writer, n, at],
    );
    if (known !== undefined && known.rev >= rev) continue;
    if (known !== undefined) gone.push(known.spend);
    news.push({ at, writer, n, rev, replica, row: rowFrom(row) });
  }
  const written = await store.replace(inside, news, gone);
  for (const id of gone) await inside.query('DELETE FROM shared_rows WHERE spend = $1', [id]);
  for (const [{ writer, n, at, rev, row }, id] of written) {
    await inside.query('INSERT OR REPLACE INTO shared_rows VALUES ($1, $2, $3, $4, $5, $6)', [
      ...[writer, n, at, rev, id, row.time],
    ]);
  }
  if (written.length === 0) return 0;
  const [first, last] = [written[0]![1], written.at(-1)![1]];
  const [before] = await inside.query<{ first: number; last: number; database: string }>(
    'SELECT * FROM imports ORDER BY first DESC LIMIT 1',
  );
  const goesOn = before?.last === first - 1 && before.database === database;
  await inside.query('INSERT OR REPLACE INTO imports VALUES ($1, $2, $3)', [
    ...[goesOn ? before.first : first, last, database],
  ]);
  return news.length;
}

/**
 * Hours whose rows the database has deleted, so that only totals are left. Hours up to the mark of this file are left
 * out, since their totals count its own rows, and so are hours that were taken before. The sessions of a day go with
 * its first hour.
 */
async function withoutRowsThere({ file, shared }: SpendSides) {
  const mark = await shared.mark(file?.origin);
  const taken = await file?.takenThrough(shared.name);
  const known = Math.max(mark?.time ?? Number.NEGATIVE_INFINITY, taken ?? Number.NEGATIVE_INFINITY);
  const from = known === Number.NEGATIVE_INFINITY ? 0 : known - (known % HOUR_MS) + HOUR_MS;
  // The present hour is not over.
  const to = Date.now() - (Date.now() % HOUR_MS);
  return { from, hours: await shared.hoursWithoutRows(from, to) };
}

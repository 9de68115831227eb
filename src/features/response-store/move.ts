/** Moves stored responses between the file of a machine and the database of all replicas. */

import type { Sql } from '../../state/engines/engine.ts';
import { erasureTables } from '../../state/erasures.ts';
import { batchesOf, movedItems, originOf, tablesThere } from '../../state/move/moved-items.ts';
import {
  erasedHere,
  erasedThere,
  type MovePass,
  outdatedFile,
  pagedMove,
  removedHere,
  removedThere,
  sealedElsewhere,
} from '../../state/move/paged-move.ts';
import type { MoveDirection, StateMove } from '../../state/move/state-move.ts';
import { openPostgres, openPostgresToRead } from '../../state/sql/postgres.ts';
import type { SqlDatabase } from '../../state/sql/sql.ts';
import { openSqlite, openSqliteToRead } from '../../state/sql/sqlite.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import { type ListedRow, ResponseTables } from './response-tables.ts';
import { RESPONSES } from './schema.ts';
import { AS_IT_IS, isUsable, keyOf, type RowKey, resealed } from './stored-response.ts';

export interface ResponsesMoveOptions {
  readonly database: Sql;
  readonly seal: TextSeal;
  /** The file of this machine. */
  readonly path: string;
  readonly to: MoveDirection;
}

/** The tables of one side. */
interface Side {
  /** Undefined: there is nothing. */
  readonly tables: ResponseTables | undefined;
  readonly seal: TextSeal;
  /** Names of tables that are there. */
  readonly there: ReadonlySet<string>;
}

// Of one transaction.
const BATCH = 64;
const BATCH_BYTES = 2_000_000;
/** Milliseconds to wait for a gateway that writes. */
const BUSY_MS = 5000;

export function responsesMove(options: ResponsesMoveOptions): StateMove {
  return pagedMove<ListedRow>({
    name: 'responses',
    item: 'response',
    engine: 'database',
    open: (writes) => passOf(options, writes),
  });
}

async function passOf(
  options: ResponsesMoveOptions,
  writes: boolean,
): Promise<MovePass<ListedRow>> {
  const { path, to } = options;
  const toEngines = to === 'engines';
  const file = fileSide(path, writes && !toEngines);
  const engines = await engineSide(options, writes && toEngines && file.tables !== undefined);
  const [from, target] = toEngines ? [file, engines] : [engines, file];
  const origin = originOf(path);
  let unusable = 0;
  let sealed = 0;
  return {
    count: async () => (from.there.has('responses') ? ((await from.tables?.count()) ?? 0) : 0),
    async *pages() {
      unusable = 0;
      for await (const page of listed(from)) {
        const usable = page.filter(({ id, previous }) => isUsable(id) && isUsable(previous ?? ''));
        unusable += page.length - usable.length;
        if (usable.length > 0) yield usable;
      }
    },
    standings: async (page) =>
      (await target.tables?.standings(page, target.there)) ?? page.map(() => 'missing'),
    async write(missing) {
      let written = 0;
      for (const batch of batchesOf(missing, BATCH, BATCH_BYTES)) {
        const keys = new Map(batch.map((key) => [keyOf(key), key]));
        const rows = (await from.tables!.rows(batch)).flatMap((row) => {
          const again = resealed(row, from.seal, target.seal);
          const key = keys.get(keyOf(row))!;
          if (again === undefined) sealed++;
          return again === undefined
            ? []
            : [{ row: { ...again, began: key.began }, used: key.used }];
        });
        written += await target.tables!.take(rows, origin, target.there);
      }
      return written;
    },
    finish() {
      if (sealed > 0) throw new Error(sealedElsewhere(sealed));
    },
    async notes(tally) {
      if (!toEngines) {
        const there = await passOf({ ...options, to: 'engines' }, false);
        return [
          ...removedHere(tally),
          ...erasedHere(tally, 'memory space'),
          ...(await outdatedFile(path, there)),
        ];
      }
      const left = await leftThere(file, engines, origin);
      return [
        ...(unusable > 0 ? [`${unusable} have ids that the database cannot hold.`] : []),
        ...removedThere(tally),
        ...erasedThere(tally, 'memory space'),
        ...(left > 0
          ? [
              `${left} that were on both sides are not on this machine any more, but still there: delete there what must not stay.`,
            ]
          : []),
      ];
    },
    close() {
      file.tables?.close();
      engines.tables?.close();
    },
  };
}

function fileSide(path: string, writes: boolean): Side {
  const opened = writes
    ? openSqlite(RESPONSES, { path, busyMs: BUSY_MS, shrinks: true })
    : openSqliteToRead(RESPONSES, path);
  return sideOf(opened, AS_IT_IS, new Set(['responses', 'moved_items']));
}

async function engineSide(
  { database, seal }: ResponsesMoveOptions,
  writes: boolean,
): Promise<Side> {
  if (writes) {
    await erasureTables(database)();
    await movedItems(database)();
  }
  const opened = writes
    ? openPostgres(database, RESPONSES)
    : ((await openPostgresToRead(database, RESPONSES, 'responses')) ??
      (await openPostgresToRead(database, RESPONSES, 'erasures')));
  const names = ['responses', 'erasures', 'moved_items'];
  const there = new Set([
    ...(await tablesThere(database, names)),
    // It is made with the first statement.
    ...(writes ? ['responses'] : []),
  ]);
  const side = sideOf(opened, seal, there);
  await side.tables?.learnClock();
  return side;
}

const sideOf = (
  opened: SqlDatabase | undefined,
  seal: TextSeal,
  there: ReadonlySet<string>,
): Side => ({ tables: opened && new ResponseTables(opened), seal, there });

/** All rows, some at a time, their times by the clock of this machine: never later than they were. */
async function* listed({ tables, there }: Side): AsyncGenerator<readonly ListedRow[]> {
  if (tables === undefined || !there.has('responses')) return;
  for (let last = 0; ; ) {
    const page = await tables.list(last);
    if (page.length === 0) return;
    yield page.map((row) => ({
      ...row,
      began: tables.localTimeOf(row.began),
      used: tables.localTimeOf(row.used),
    }));
    last = page.at(-1)!.seq;
  }
}

/** How many are still in the engines of those that were copied one way or the other, and removed from the file. */
async function leftThere(file: Side, engines: Side, origin: string): Promise<number> {
  const counted = new Set<string>();
  for (const { tables, there } of [engines, file]) {
    if (tables === undefined || !there.has('moved_items')) continue;
    for await (const page of tables.moved(origin)) {
      const [here, away] = [await haveOf(file, page), await haveOf(engines, page)];
      for (const key of page.map(keyOf)) if (away.has(key) && !here.has(key)) counted.add(key);
    }
  }
  return counted.size;
}

const haveOf = async ({ tables, there }: Side, keys: readonly RowKey[]) =>
  (there.has('responses') ? await tables?.have(keys) : undefined) ?? new Map<string, string>();

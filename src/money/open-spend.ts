/** Puts the journal of a process, its keeper and the tables together: the file of this machine, or a shared database. */

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomBase36 } from '../lib/text/ids.ts';
import type { Sql } from '../state/engines/engine.ts';
import { Keeper } from '../state/journal/keeper.ts';
import { openPostgres } from '../state/sql/postgres.ts';
import type { SqlDatabase } from '../state/sql/sql.ts';
import { takeEarlier } from './earlier-store.ts';
import { SpendJournal, type SpendJournalOptions } from './journal.ts';
import { KeeperThread, onThisLoop } from './keeper-handle.ts';
import { FileReader, sharedSpendReader } from './reader.ts';
import { spendSchema } from './schema.ts';
import { SpendKeeper, type SpendKeeperOptions } from './spend-keeper.ts';
import { fileStore, SpendStore } from './spend-store.ts';

export interface SpendOptions
  extends Pick<SpendJournalOptions, 'estimate' | 'onRecovered' | 'momentMs' | 'journal'>,
    Pick<SpendKeeperOptions, 'keep' | 'onRefused' | 'onLost' | 'lookEveryMs' | 'lapseEveryMs'>,
    Pick<SpendKeeperOptions, 'lostAfterMs' | 'at'> {
  /** Entries or tables cannot be written; once until they can. `waiting`: entries that are not in the tables. */
  readonly onProblem: (message: string, waiting: number) => void;
  /** Of the file, also where there is a database. */
  readonly path: string;
  /** Of all replicas; undefined: spend is in the file. */
  readonly database?: Sql | undefined;
  /** The name of this machine, for people. */
  readonly replica?: string;
  /** The first process takes in what this one writes; this one does when somebody asks. */
  readonly isWorker?: boolean;
  /** This is the first process of several. */
  readonly hasWorkers?: boolean;
  /** For tests: the keeper of a file runs on this loop, with these tables. */
  readonly tables?: () => SqlDatabase;
}

/** Where the journals of the processes of a machine are whose entries belong into its file. */
export const fileFolder = (path: string): string => `${path.replace(/\.db$/, '')}.journal`;
/** The same of entries that belong into the shared database: what a kill leaves stays where it belongs. */
export const databaseFolder = (path: string): string => `${fileFolder(path)}-database`;

export function openSpend(options: SpendOptions): SpendJournal {
  const { path, database, tables, onProblem, onRecovered } = options;
  const { isWorker = false, hasWorkers = false } = options;
  const folder = database === undefined ? fileFolder(path) : databaseFolder(path);
  const common = { ...options, folder, isWorker, hasOthers: hasWorkers && !isWorker };
  // Both may have the same full disk.
  const problems = new Set<string>();
  let lost = 0;
  const tellingOf = (part: 'journal' | 'tables') => ({
    onProblem(message: string) {
      if (problems.size === 0) onProblem(message, journal.waiting);
      problems.add(part);
    },
    onRecovered(more = 0) {
      lost += more;
      if (!problems.delete(part) || problems.size > 0) return;
      onRecovered(lost);
      lost = 0;
    },
  });
  const telling = tellingOf('tables');
  const onLoop = (writer: string, own: Pick<SpendKeeperOptions, 'open' | 'path'>) => {
    const keeper = new SpendKeeper({
      ...common,
      ...telling,
      ...own,
      own: new Set([writer]),
      async takeEarlier(store) {
        // Of a time without the database.
        if (database !== undefined) await takeInFile(path);
        return takeEarlier(store, path);
      },
    });
    return onThisLoop(keeper, writer);
  };
  const journal = new SpendJournal({
    ...common,
    ...tellingOf('journal'),
    mayHoldEntries: database !== undefined || hasWorkers || existsSync(path) || hasEntries(folder),
    reader: database === undefined ? new FileReader(path) : sharedSpendReader(database),
    keeper(writer) {
      if (database !== undefined) {
        return onLoop(writer, {
          open: () => databaseStore(database, folder, options.replica ?? ''),
        });
      }
      if (tables === undefined) return new KeeperThread({ ...common, ...telling, writer });
      return onLoop(writer, { open: () => new SpendStore(tables(), { machine: '' }), path });
    },
  });
  return journal;
}

/** What a kill has left for the file. */
async function takeInFile(path: string): Promise<void> {
  const folder = fileFolder(path);
  if (!hasEntries(folder)) return;
  const tables = fileStore(path);
  const keeper = new Keeper({ folder, tables, onRefused: () => {} });
  await keeper.look().finally(() => tables.close());
}

function databaseStore(database: Sql, folder: string, replica: string): SpendStore {
  const tables = openPostgres(database, spendSchema());
  return new SpendStore(tables, { machine: machineOf(folder), replica });
}

/** The name of a folder among all machines, made with its first use. */
function machineOf(folder: string): string {
  const path = join(folder, 'machine');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    writeFileSync(path, randomBase36(20), { flag: 'wx', mode: 0o600 });
  } catch {
    // It has one.
  }
  return readFileSync(path, 'utf8');
}

function hasEntries(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch {
    return false;
  }
}

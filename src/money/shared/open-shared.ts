/** Puts the journal of a process and the shared database together. */

import type { Sql } from '../../state/engines/engine.ts';
import { prepared } from '../../state/shared-tables.ts';
import { type JournalOptions, SpendJournal } from '../journal.ts';
import type { SpendSource } from '../reports.ts';
import type { SpendReader } from '../schema.ts';
import { type ForwarderOptions, SpendForwarder } from './forwarder.ts';
import { sharedReader } from './reader.ts';
import { SHARED_SPEND } from './tables.ts';
import { SpendUpkeep, type UpkeepOptions } from './upkeep.ts';

/** Rows that the database has stay in the file for so long, at most. */
const OWN_DAYS = 7;

export interface SharedSpendOptions
  extends Omit<JournalOptions, 'onWritten'>,
    Pick<ForwarderOptions, 'database' | 'replica' | 'onRefused' | 'at'>,
    Omit<UpkeepOptions, 'database' | 'ready' | 'keepTotalsDays'> {}

export interface SharedSpend extends SpendSource {
  readonly journal: SpendJournal;
  /** Begins to send, in the background. */
  open(): void;
  /** Sends what waits, as long as the database answers, and closes the journal. */
  close(): Promise<void>;
}

export function openSharedSpend(options: SharedSpendOptions): SharedSpend {
  const { database, keepDays } = options;
  const keepTotalsDays = options.keepTotalsDays ?? (() => 0);
  const ready = prepared(database, 'spend', SHARED_SPEND);
  const journal = new SpendJournal({
    ...options,
    keepSentDays: () => (keepDays() === 0 ? OWN_DAYS : Math.min(OWN_DAYS, keepDays())),
    onWritten: () => forwarder.kick(),
  });
  const forwarder = new SpendForwarder({ ...options, journal, ready });
  const upkeep = new SpendUpkeep({ ...options, ready, keepTotalsDays });
  const reader = sharedReader(database, ready);
  return {
    journal,
    open() {
      journal.open();
      forwarder.open();
      upkeep.open();
    },
    async read(question) {
      // Whoever has just had an answer here finds its row.
      await journal.flush();
      await forwarder.flush();
      return question(reader);
    },
    async close() {
      await journal.flush();
      await upkeep.close();
      await forwarder.close();
      journal.close();
    },
  };
}

/** For commands that only look. */
export const sharedSpendReader = (database: Sql): SpendReader =>
  sharedReader(database, prepared(database, 'spend', SHARED_SPEND));

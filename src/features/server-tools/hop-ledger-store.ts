/** The hop ledger on disk; where the file cannot be used, in memory. */

import {
  ENTRIES,
  type LedgerKind,
  type LedgerOptions,
  openLedgerFile,
  TOTALS,
} from '../../lib/store/ledger-store.ts';
import { type HopEntry, type HopLedger, memoryLedger } from './ledger.ts';

const HOPS: LedgerKind = {
  name: 'hop ledger',
  migrations: [ENTRIES, TOTALS],
  keep: 'newest',
  limits: { entries: 20_000, bytes: 256 * 1024 * 1024, age: 30 * 24 * 3_600_000 },
  // Another process may get the client's next request, and a tool of the client's can be that quick.
  flushAfter: 20,
};

/** Opens the ledger. Never throws: without a usable file it keeps the latest entries in memory. */
export function openHopLedger(options: LedgerOptions): HopLedger {
  const file = openLedgerFile<HopEntry>(HOPS, options);
  if (file === undefined) return memoryLedger();
  return {
    get empty() {
      return file.empty;
    },
    find(keys) {
      for (const key of keys) {
        const entry = file.get(key);
        if (entry !== undefined) return entry;
      }
      return undefined;
    },
    put: (keys, entry) => file.put(keys, entry),
    flush: () => file.flush(),
    close: () => file.close(),
  };
}

/** The session ledger on disk, with what is asked for often in memory. */

import {
  type LedgerKind,
  type LedgerOptions,
  openLedgerFile,
  TOTALS,
} from '../../lib/store/ledger-store.ts';
import { type LedgerEntry, memorySessionLedger, type SessionLedger } from './session-ledger.ts';

const ANSWERS = `
CREATE TABLE answers (id INTEGER PRIMARY KEY, used INTEGER NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX answers_used ON answers (used);
CREATE TABLE keys (key TEXT PRIMARY KEY, answer INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_answer ON keys (answer);
CREATE TRIGGER answer_gone AFTER DELETE ON answers BEGIN DELETE FROM keys WHERE answer = old.id; END;
`;
/** The tables get the names that every ledger has; SQLite carries indexes and triggers along. */
const AS_ENTRIES = `
ALTER TABLE answers RENAME TO entries;
ALTER TABLE keys RENAME COLUMN answer TO entry;
`;

const SESSIONS: LedgerKind = {
  name: 'session ledger',
  migrations: [ANSWERS, AS_ENTRIES + TOTALS],
  keep: 'first',
  limits: { entries: 50_000, bytes: 256 * 1024 * 1024, age: 30 * 24 * 3_600_000 },
  flushAfter: 50,
};

/** How long (ms) the file is taken for unchanged: no longer than others' answers need to get there. */
const RECHECK_AFTER = 20;
/** Keys known to be unknown: histories are full of calls that nobody reasoned about. */
const MAX_MISSING = 50_000;

/** Opens the ledger. Never throws: without a usable file it remembers as long as the process lives. */
export function openSessionLedger(options: LedgerOptions): SessionLedger {
  const now = options.now ?? Date.now;
  const memory = memorySessionLedger();
  const file = openLedgerFile<LedgerEntry>(SESSIONS, options);
  if (file === undefined) return memory;
  /** Whether the file has anything; asked again until it has, but not for every request. */
  let filled = false;
  let asked = -RECHECK_AFTER;
  const missing = new Set<string>();
  let version = -1;
  let checked = 0;

  /** Another process may have written what was missing. */
  function forgetMissing(): void {
    if (now() - checked < RECHECK_AFTER) return;
    checked = now();
    const current = file!.version();
    if (current !== version || missing.size > MAX_MISSING) missing.clear();
    version = current;
  }

  function find(keys: readonly string[]): LedgerEntry | undefined {
    const known = memory.find(keys);
    if (known !== undefined) return known;
    forgetMissing();
    for (const key of keys) {
      if (missing.has(key)) continue;
      const entry = file!.get(key);
      if (entry === undefined) {
        missing.add(key);
        continue;
      }
      memory.put([key], entry);
      return entry;
    }
    return undefined;
  }

  return {
    get empty() {
      if (!memory.empty || filled) return false;
      if (now() - asked < RECHECK_AFTER) return true;
      asked = now();
      filled = !file.empty;
      return !filled;
    },
    find,
    put(keys, entry) {
      const free = keys.filter((key) => find([key]) === undefined);
      if (free.length === 0) return;
      memory.put(free, entry);
      for (const key of free) missing.delete(key);
      file.put(free, entry);
    },
    close: () => file.close(),
  };
}

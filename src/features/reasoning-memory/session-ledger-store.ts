/** The session ledger in a database file, with a memory cache in front. */

import {
  type LedgerKind,
  type LedgerOptions,
  openLedgerFile,
  TOTALS,
} from '../../state/ledger-store.ts';
import { type LedgerEntry, memorySessionLedger, type SessionLedger } from './session-ledger.ts';

const ANSWERS = `
CREATE TABLE answers (id INTEGER PRIMARY KEY, used INTEGER NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX answers_used ON answers (used);
CREATE TABLE keys (key TEXT PRIMARY KEY, answer INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_answer ON keys (answer);
CREATE TRIGGER answer_gone AFTER DELETE ON answers BEGIN DELETE FROM keys WHERE answer = old.id; END;
`;
/** Renames the tables to the names that all ledgers use. SQLite adapts indexes and triggers. */
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

/** For this long (ms) the file is assumed unchanged; other processes need at least as long to write an answer. */
const RECHECK_AFTER = 20;
/** Maximum number of keys remembered as missing: most calls of a history have no reasoning. */
const MAX_MISSING = 50_000;

/** Opens the ledger. Never throws: without a usable file the entries last as long as the process. */
export function openSessionLedger(options: LedgerOptions): SessionLedger {
  const now = options.now ?? Date.now;
  const memory = memorySessionLedger();
  const file = openLedgerFile<LedgerEntry>(SESSIONS, options);
  if (file === undefined) return memory;
  /** Whether the file has entries. Until then it is checked again at intervals. */
  let filled = false;
  let checkedForEntries = -RECHECK_AFTER;
  const missing = new Set<string>();
  let version = -1;
  let checked = 0;

  /** Another process may have written missing entries. */
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
      if (now() - checkedForEntries < RECHECK_AFTER) return true;
      checkedForEntries = now();
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

/** The ledger of short results in a database file. New entries are written in batches. */

import { openStateFile } from '../../state/versioned-store.ts';
import {
  DEFAULT_ROWS,
  memoryShortResultLedger,
  type ShortResultLedger,
} from './short-result-ledger.ts';

const SCHEMA = `
CREATE TABLE sent_short (key TEXT PRIMARY KEY, chars INTEGER NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX sent_short_used ON sent_short (used);
`;

export interface ShortResultLedgerOptions {
  /** The database file; created with mode 0600 in a directory with mode 0700. */
  readonly path: string;
  /** Maximum number of entries, in the file and in memory. */
  readonly rows?: number;
  /** Milliseconds until a new entry is written to the file. */
  readonly flushAfter?: number;
  /** Called once if the file cannot be used; the ledger then works in memory. */
  readonly warn?: (message: string) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Opens the ledger. Never throws: without a usable file the entries last as long as the process. */
export function openShortResultLedger(options: ShortResultLedgerOptions): ShortResultLedger {
  const rows = options.rows ?? DEFAULT_ROWS;
  const now = options.now ?? Date.now;
  const memory = memoryShortResultLedger(rows);
  /** Entries that are not yet in the file, or whose last use is not. */
  const pending = new Map<string, number>();
  let file: ResultFile | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;

  const giveUp = (what: string, error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    options.warn?.(`ledger of short tool results: ${what} (${reason}); keeping it in memory`);
    try {
      file?.close();
    } catch {
      // The file is abandoned anyway.
    }
    file = undefined;
    pending.clear();
  };

  try {
    file = openFile(options.path);
  } catch (error) {
    giveUp(`cannot open ${options.path}`, error);
  }

  const write = () => {
    clearTimeout(timer);
    timer = undefined;
    if (file === undefined || pending.size === 0) return;
    try {
      file.apply(pending, now(), rows);
      pending.clear();
    } catch (error) {
      // Another process may be writing. The pending entries are bounded and written later.
      if (/BUSY|LOCKED/.test(String((error as { code?: unknown }).code)) && pending.size < rows) {
        if (!closed) schedule();
      } else giveUp('cannot write', error);
    }
  };

  const schedule = () => {
    if (closed || file === undefined || timer !== undefined) return;
    timer = setTimeout(write, options.flushAfter ?? 500);
    timer.unref();
  };

  return {
    limitOf(key) {
      const known = memory.limitOf(key);
      if (known !== undefined || file === undefined) return known;
      try {
        const limit = file.limitOf(key);
        if (limit === undefined) return undefined;
        memory.put(key, limit);
        pending.set(key, limit);
        schedule();
        return limit;
      } catch (error) {
        giveUp('cannot read', error);
        return undefined;
      }
    },
    put(key, limit) {
      if (closed) return;
      memory.put(key, limit);
      if (file === undefined) return;
      pending.set(key, limit);
      schedule();
    },
    close() {
      if (closed) return;
      closed = true;
      write();
      try {
        file?.close();
      } catch {
        // Committed entries are safe.
      }
      file = undefined;
      memory.close();
    },
  };
}

interface ResultFile {
  limitOf(key: string): number | undefined;
  apply(entries: ReadonlyMap<string, number>, now: number, rows: number): void;
  close(): void;
}

/** @throws SQLiteError, or an Error where a newer version made the file */
function openFile(path: string): ResultFile {
  const db = openStateFile({ path, migrations: [SCHEMA] });
  const read = db.query<{ chars: number }, [string]>('SELECT chars FROM sent_short WHERE key = ?');
  const put = db.query<unknown, [string, number, number]>(
    'INSERT INTO sent_short (key, chars, used) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET chars = excluded.chars, used = excluded.used',
  );
  const count = db.query<{ rows: number }, []>('SELECT count(*) AS rows FROM sent_short');
  const prune = db.query<unknown, [number]>(
    'DELETE FROM sent_short WHERE key IN (SELECT key FROM sent_short ORDER BY used, key LIMIT ?)',
  );
  const applyAll = db.transaction(
    (entries: ReadonlyMap<string, number>, now: number, rows: number) => {
      for (const [key, limit] of entries) put.run(key, limit, now);
      const over = count.get()!.rows - rows;
      if (over > 0) prune.run(over);
    },
  );
  return {
    limitOf: (key) => read.get(key)?.chars,
    apply: (entries, now, rows) => applyAll.immediate(entries, now, rows),
    close: () => db.close(),
  };
}

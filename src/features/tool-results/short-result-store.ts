/** The ledger of short results in a file: what is new waits in memory and is written in batches. */

import { openStateFile } from '../../lib/store/versioned-store.ts';
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
  /** The database file; made 0600 in a directory 0700. */
  readonly path: string;
  /** Entries kept, in the file and in memory. */
  readonly rows?: number;
  /** Milliseconds between an entry and its way to the file. */
  readonly flushAfter?: number;
  /** Told once when the file cannot be used; the ledger then lives in memory. */
  readonly warn?: (message: string) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Opens the ledger. Never throws: without a usable file it remembers as long as the process lives. */
export function openShortResultLedger(options: ShortResultLedgerOptions): ShortResultLedger {
  const rows = options.rows ?? DEFAULT_ROWS;
  const now = options.now ?? Date.now;
  const memory = memoryShortResultLedger(rows);
  /** Entries that the file does not have yet, or whose last use it does not know. */
  const waiting = new Map<string, number>();
  let file: ResultFile | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;

  const giveUp = (what: string, error: unknown) => {
    const words = error instanceof Error ? error.message : String(error);
    options.warn?.(`ledger of short tool results: ${what} (${words}); keeping it in memory`);
    try {
      file?.close();
    } catch {
      // It is given up anyway.
    }
    file = undefined;
    waiting.clear();
  };

  try {
    file = openFile(options.path);
  } catch (error) {
    giveUp(`cannot open ${options.path}`, error);
  }

  const write = () => {
    clearTimeout(timer);
    timer = undefined;
    if (file === undefined || waiting.size === 0) return;
    try {
      file.apply(waiting, now(), rows);
      waiting.clear();
    } catch (error) {
      // Another process may be writing: what waits is bounded and tried again.
      if (/BUSY|LOCKED/.test(String((error as { code?: unknown }).code)) && waiting.size < rows) {
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
        waiting.set(key, limit);
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
      waiting.set(key, limit);
      schedule();
    },
    close() {
      if (closed) return;
      closed = true;
      write();
      try {
        file?.close();
      } catch {
        // What was committed is safe.
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

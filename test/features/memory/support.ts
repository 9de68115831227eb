/** Memories for tests, embedded or shared: each with a fresh file or database, and with what its observer reports. */

import { Database } from 'bun:sqlite';
import { afterAll, afterEach, beforeAll } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../../src/config/secret.ts';
import type { MemoryBackend, MemoryObserver } from '../../../src/features/memory/backend.ts';
import { DEFAULT_LIMITS } from '../../../src/features/memory/event.ts';
import {
  databaseMemory,
  embeddedMemory,
  type OwnMemoryOptions,
} from '../../../src/features/memory/store/own-memory.ts';
import type { Sql } from '../../../src/state/engines/engine.ts';
import { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import { textSeal } from '../../../src/state/text-seal.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../../support/engines/database-servers.ts';

/** Where the events are: in a file, in Postgres, or sealed in Postgres. */
export type Form = 'embedded' | 'shared' | 'sealed';

/** The forms that a test of the interface runs over: what holds for sealed events holds for others. */
export const FORMS: readonly Form[] = HAS_POSTGRES ? ['embedded', 'sealed'] : ['embedded'];

export const SECRET = 'a secret of the tests, long enough to seal texts';

export interface Watched extends MemoryObserver {
  readonly outcomes: Record<string, number>;
  readonly kinds: string[];
  readonly problems: string[];
  readonly failures: string[];
}

export function watched(): Watched {
  const outcomes: Record<string, number> = {};
  const kinds: string[] = [];
  const problems: string[] = [];
  const failures: string[] = [];
  return {
    outcomes,
    kinds,
    problems,
    failures,
    captured: (outcome, count) => {
      if (count > 0) outcomes[outcome] = (outcomes[outcome] ?? 0) + count;
    },
    recalled: (kind) => void kinds.push(kind),
    problem: (message) => void problems.push(message),
    embeddingsFailed: (message) => void failures.push(message),
  };
}

/** The names of events in a list, or of one event. */
export const inList = (place: number) => `events[${place}]`;
export const alone = () => '';

/** What tests ask of a memory. */
export const asked = (memory: MemoryBackend, watch: Watched) => ({
  memory,
  watch,
  book: memory.eventStore!,
  texts: async (space: string) => {
    await memory.eventStore!.settled();
    const { events } = await memory.eventStore!.list(space, { limit: 1000, order: 'asc' });
    return events.map(({ text }) => text);
  },
  recalled: async (space: string, query: string, limit?: number) => {
    // A shared memory waits for its own writes for a moment only, and a busy machine may take longer.
    await memory.eventStore!.settled();
    return (await memory.recall(space, { query, limit })).map(({ text }) => text);
  },
});

export const databaseAt = (url: string) => new PostgresDatabase({ url: new Secret(url) }, () => {});

/** Memories that end after each test, and their files or databases with them. Call it where tests are grouped. */
export function memories(form: Form = 'embedded') {
  const folders: string[] = [];
  const open: { close(): Promise<void> }[] = [];
  const databases = new Map<string, Sql>();
  const making: Promise<unknown>[] = [];
  let server: DatabaseServer;
  let admin: PostgresDatabase;
  let made = 0;
  if (form !== 'embedded') {
    beforeAll(async () => {
      server = await startPostgres();
      admin = databaseAt(server.url);
    });
    afterAll(async () => {
      await admin.close();
      await server.stop();
    });
  }
  afterEach(async () => {
    for (const one of open.splice(0)) await one.close();
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
    await Promise.allSettled(making.splice(0));
    for (const one of databases.values()) await one.close();
    databases.clear();
  });

  /** Its tables are made with its first use, and itself too. */
  function newDatabase(): string {
    const name = `memory_${++made}`;
    const ready = admin.query(`CREATE DATABASE ${name}`, [], 60_000);
    // A test may end before it used its database.
    ready.catch(() => {});
    making.push(ready);
    const inner = databaseAt(server.url.replace(/postgres$/, name));
    databases.set(name, {
      get state() {
        return inner.state;
      },
      open: () => inner.open(),
      examine: () => inner.examine(),
      close: () => inner.close(),
      query: async (...given) => {
        await ready;
        return inner.query(...given);
      },
      transaction: async (...given) => {
        await ready;
        return inner.transaction(...given);
      },
    });
    return name;
  }

  return {
    /** Milliseconds after which two processes agree that one instant is later than another. */
    clockMs: form === 'embedded' ? 2 : 500,
    /** Names a new file or database. */
    path() {
      if (form !== 'embedded') return newDatabase();
      const folder = mkdtempSync(join(tmpdir(), 'hopgate-memory-'));
      folders.push(folder);
      return join(folder, 'state', 'memory.db');
    },
    database: (path: string): Sql => databases.get(path)!,
    open({ path, ...options }: Partial<OwnMemoryOptions> & { path: string }) {
      const watch = (options.observer as Watched | undefined) ?? watched();
      const own = {
        limits: DEFAULT_LIMITS,
        dedupeMs: 86_400_000,
        ...options,
        observer: watch,
      };
      const memory =
        form === 'embedded'
          ? embeddedMemory({ ...own, path })
          : databaseMemory({
              ...own,
              database: databases.get(path)!,
              seal: textSeal(form === 'sealed' ? [SECRET] : []),
            });
      open.push(memory);
      return asked(memory, watch);
    },
    /** The number of events that have a vector. */
    async vectors(path: string): Promise<number> {
      if (form !== 'embedded') {
        const [row] = await databases
          .get(path)!
          .query<{ n: number }>('SELECT count(*) AS n FROM hopgate.memory_vectors', [], 10_000);
        return row!.n;
      }
      const db = new Database(path, { readonly: true });
      const { n } = db.query('SELECT count(*) AS n FROM memory_vectors').get() as { n: number };
      db.close();
      return n;
    },
  };
}

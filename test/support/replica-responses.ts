/** Stores of responses as replicas have them, on real engines. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../src/config/secret.ts';
import { RESPONSES, ResponseStore } from '../../src/features/response-store/index.ts';
import type { ResponseLimits } from '../../src/features/response-store/stored-response.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { ValkeyCache } from '../../src/state/engines/valkey.ts';
import { openPostgres } from '../../src/state/sql/postgres.ts';
import { textSeal } from '../../src/state/text-seal.ts';

/** Names of files. */
export const WAITING = 'responses-waiting.db';
export const OLD_SPOOL = 'responses-spool.db';

export interface ReplicaOptions {
  /** Port of the cache; left out: none. */
  readonly cache?: number;
  /** Port of Postgres, or of what stands before it. */
  readonly database: number;
  readonly secret?: string;
  readonly limits?: Partial<ResponseLimits>;
  /** Of another replica that is gone: what it could not write is taken over. */
  readonly folder?: string;
}

export interface Replica {
  readonly store: ResponseStore;
  readonly cache: ValkeyCache | undefined;
  readonly database: PostgresDatabase;
  readonly folder: string;
  readonly problems: readonly string[];
  late: number;
  dropped: number;
  close(): Promise<void>;
}

export const databaseOn = (port: number): PostgresDatabase =>
  new PostgresDatabase(
    { url: new Secret(`postgres://hopgate@127.0.0.1:${port}/postgres`) },
    () => {},
  );

export const cacheOn = (port: number): ValkeyCache =>
  new ValkeyCache(
    { form: 'single', nodes: [{ host: '127.0.0.1', port }], db: 0, tls: false },
    () => {},
  );

/** The store is open: it takes over what it finds. */
export function replica(options: ReplicaOptions): Replica {
  const database = databaseOn(options.database);
  const cache = options.cache === undefined ? undefined : cacheOn(options.cache);
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'hopgate-replica-'));
  const problems: string[] = [];
  const made: Replica = {
    database,
    cache,
    folder,
    problems,
    late: 0,
    dropped: 0,
    store: new ResponseStore({
      database: () => openPostgres(database, RESPONSES),
      others: true,
      backMs: () => database.state.backMs,
      cache,
      seal: textSeal(options.secret === undefined ? [] : [options.secret]),
      waitingPath: join(folder, 'state', WAITING),
      oldSpoolPath: join(folder, 'state', OLD_SPOOL),
      ...(options.limits !== undefined && { limits: options.limits }),
      onLate: () => made.late++,
      onDropped: (count) => {
        made.dropped += count;
      },
      warn: (message) => problems.push(message),
    }),
    async close() {
      await made.store.close();
      await Promise.all([database.close(), cache?.close()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  made.store.open();
  return made;
}

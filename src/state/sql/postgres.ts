/** The Postgres driver: the tables of all replicas, in the schema `hopgate`. */

import type { Sql } from '../engines/engine.ts';
import { prepared } from './migrations.ts';
import type { SqlDatabase, SqlSchema, SqlStatements, TransactionOptions } from './sql.ts';

const QUERY_MS = 2000;
const TRANSACTION_MS = 6000;
/** Who waits for a lock in vain is refused, and the database does not count as away. */
const LOCK_MS = 3000;
/** A replica that freezes inside a transaction with a lock holds up the others for so long. */
const IDLE_MS = 2000;

/**
 * @param database the client; its owner closes it
 * @param prepare brings the tables up to date; left out: by the schema, before the first statement
 */
export function openPostgres(
  database: Sql,
  schema: SqlSchema,
  prepare = prepared(database, schema.room, schema.postgres),
): SqlDatabase {
  return {
    form: 'database',
    now: 'CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)',
    async query(sql, values = [], deadlineMs = QUERY_MS) {
      await prepare();
      return database.query(sql, values, deadlineMs);
    },
    async transaction(
      work,
      { deadlineMs = TRANSACTION_MS, lock, sharedLocks = [] }: TransactionOptions = {},
    ) {
      await prepare();
      return within(database, deadlineMs, async (inside) => {
        if (lock !== undefined || sharedLocks.length > 0) {
          await inside.query(
            `SELECT set_config('lock_timeout', $1, true),
               set_config('idle_in_transaction_session_timeout', $2, true)`,
            [`${LOCK_MS}`, `${IDLE_MS}`],
          );
        }
        for (const one of sharedLocks) {
          await inside.query('SELECT pg_advisory_xact_lock_shared($1)', [one]);
        }
        if (lock !== undefined) await inside.query('SELECT pg_advisory_xact_lock($1)', [lock]);
        return work(inside);
      });
    },
    async snapshot(work) {
      await prepare();
      return within(database, TRANSACTION_MS, async (inside) => {
        await inside.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
        return work(inside);
      });
    },
    close() {},
  };
}

/** What `work` throws says nothing of the database. */
class Refused extends Error {
  override readonly name = 'Refused';
}

/** An error of `work` itself passes through as it is. */
async function within<T>(
  database: Sql,
  deadlineMs: number,
  work: (inside: SqlStatements) => Promise<T>,
): Promise<T> {
  /** The last error of a statement: `work` may hand it on. */
  let failed: unknown;
  try {
    return await database.transaction(async (inside) => {
      const query: SqlStatements['query'] = async (sql, values = []) => {
        try {
          return await inside.query(sql, values);
        } catch (thrown) {
          failed = thrown;
          throw thrown;
        }
      };
      try {
        return await work({ query });
      } catch (thrown) {
        if (thrown === failed) throw thrown;
        throw new Refused('undone', { cause: thrown });
      }
    }, deadlineMs);
  } catch (thrown) {
    throw thrown instanceof Refused ? thrown.cause : thrown;
  }
}

/** Postgres as the shared database: a small pool with deadlines. The client is loaded with the first use. */

import type { Pool, PoolClient } from 'pg';
import type { DatabaseAddress } from '../../config/sections/engines.ts';
import { othersTurn } from '../../lib/loop/steps.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import {
  clockFinding,
  EngineAway,
  type EngineFinding,
  type EngineState,
  finding,
  latencyFinding,
  type Sql,
  type SqlTransaction,
  type SqlValue,
} from './engine.ts';
import { EngineWatch } from './watch.ts';

const CONNECT_MS = 2000;
const CONNECTIONS = 8;
const EXAMINE_MS = 5000;
/** The type of bigint. Sums of nano-USD stay within the safe integers. */
const INT8 = 20;

export class PostgresDatabase implements Sql {
  readonly #address: DatabaseAddress;
  readonly #watch: EngineWatch;
  #pool: Promise<Pool> | undefined;

  constructor(address: DatabaseAddress, onChange: (state: EngineState) => void) {
    this.#address = address;
    this.#watch = new EngineWatch({
      name: 'database',
      // Reading is not enough: a primary that became a standby refuses every write.
      ping: () =>
        this.#with(async (client) => {
          const [row] = await rowsOf<{ standby: boolean; readonly: boolean }>(
            client,
            "SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS readonly",
            [],
            CONNECT_MS,
          );
          if (row!.standby) throw new ReadsOnly('the server only reads (it is a standby)');
          if (row!.readonly) throw new ReadsOnly('the server only reads (read-only transactions)');
        }),
      isAway,
      onChange,
    });
  }

  get state(): EngineState {
    return this.#watch.state;
  }

  query<Row>(
    sql: string,
    values: readonly SqlValue[],
    deadlineMs: number,
    stopMs?: number,
  ): Promise<readonly Row[]> {
    return this.#watch.use(deadlineMs, () =>
      stopMs === undefined
        ? this.#once<Row>(sql, values, deadlineMs)
        : this.#with((client) => stoppedRowsOf<Row>(client, sql, values, deadlineMs, stopMs)),
    );
  }

  transaction<T>(work: (inside: SqlTransaction) => Promise<T>, deadlineMs: number): Promise<T> {
    return this.#watch.use(deadlineMs, async () => {
      try {
        return await this.#whole(work, deadlineMs);
      } catch (thrown) {
        // It was undone because one step took too long; the server itself answers.
        if (codeOf(thrown) !== IDLE_TOO_LONG) throw thrown;
        return this.#whole(work, deadlineMs);
      }
    });
  }

  #whole<T>(work: (inside: SqlTransaction) => Promise<T>, deadlineMs: number): Promise<T> {
    return this.#with(async (client) => {
      let isOver = false;
      const end = async (how: 'COMMIT' | 'ROLLBACK') => {
        isOver = true;
        await rowsOf(client, how, undefined, deadlineMs);
      };
      const inside: SqlTransaction = {
        query: async (sql, values) => {
          if (isOver) throw new EngineAway('database', 'the transaction is over');
          return rowsOf(client, sql, values, deadlineMs);
        },
        commit: () => end('COMMIT'),
      };
      // The server gives up too: a connection that is lost must not hold locks for ever.
      // It goes out with the first statements.
      const begun = rowsOf(client, beginOf(deadlineMs), undefined, deadlineMs);
      let result: T;
      try {
        [result] = await Promise.all([work(inside), begun]);
      } catch (thrown) {
        const idled = [thrown, endedBy.get(client)].find((one) => codeOf(one) === IDLE_TOO_LONG);
        if (idled !== undefined) throw idled;
        // Where the end is on its way, all answers are read before the connection is used again.
        await end('ROLLBACK');
        throw thrown;
      }
      if (!isOver) await end('COMMIT');
      return result;
    });
  }

  open(): Promise<void> {
    return this.#watch.open();
  }

  examine(): Promise<readonly EngineFinding[]> {
    return this.#watch.use(EXAMINE_MS, () =>
      this.#with(async (client) => {
        const times: number[] = [];
        let clock = 0;
        for (let i = 0; i < 5; i++) {
          const began = performance.now();
          const [row] = await rowsOf<{ now: number }>(
            client,
            'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
            [],
            EXAMINE_MS,
          );
          times.push(performance.now() - began);
          clock = row!.now;
        }
        const skew = clock - Date.now();
        const [facts] = await rowsOf<Facts>(client, FACTS, [], EXAMINE_MS);
        return [
          versionFinding(facts!),
          rightsFinding(facts!),
          ...(facts!.standby || facts!.readonly ? [ONLY_READS] : []),
          clockFinding(skew, 0),
          latencyFinding(times),
        ];
      }),
    );
  }

  async close(): Promise<void> {
    this.#watch.close();
    const pool = await this.#pool?.catch(() => undefined);
    this.#pool = undefined;
    // Frozen connections never say goodbye.
    await Promise.race([pool?.end(), Bun.sleep(1000)]);
  }

  #once<Row>(
    sql: string,
    values: readonly SqlValue[],
    deadlineMs: number,
  ): Promise<readonly Row[]> {
    return this.#with((client) => rowsOf<Row>(client, sql, values, deadlineMs));
  }

  async #with<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    this.#pool ??= open(this.#address);
    const opened = this.#pool;
    const pool = await opened;
    const client = await connectionOf(pool);
    try {
      const result = await work(client);
      client.release();
      return result;
    } catch (thrown) {
      // After a timeout, an answer may still be on its way: such a connection is not used again.
      client.release(isAway(thrown) || endedBy.has(client));
      // All connections lead to a server that was the primary. New ones find the one that is it now.
      if (codeOf(thrown) === READ_ONLY && this.#pool === opened) {
        this.#pool = undefined;
        void pool.end().catch(() => {});
      }
      throw thrown;
    }
  }
}

/** No server or pooler closes a connection as idle sooner. */
const IDLE_MS = 500;
const usedAt = new WeakMap<PoolClient, number>();

/**
 * A connection to send on. What has arrived for one that was idle is read first, and if that is its end, another one is
 * taken: nothing was sent on it. What is sent once is never repeated.
 */
async function connectionOf(pool: Pool): Promise<PoolClient> {
  for (let closed = 0; ; closed++) {
    const client = await connect(pool);
    const idleMs = performance.now() - (usedAt.get(client) ?? Number.POSITIVE_INFINITY);
    usedAt.set(client, performance.now());
    if (idleMs < IDLE_MS) return client;
    // The network is looked at between two turns.
    await othersTurn();
    await othersTurn();
    if (closed === CONNECTIONS || isOpen(client)) return client;
    client.release(true);
  }
}

/** The client says it in no public way; its pool reads the first of the two as well. */
function isOpen(client: PoolClient): boolean {
  const { _queryable, connection } = client as unknown as {
    _queryable: boolean;
    connection: { stream: { writable: boolean } };
  };
  return _queryable && connection.stream.writable;
}

const connect = (pool: Pool): Promise<PoolClient> =>
  pool.connect().catch((thrown: unknown) => {
    // Also one that is refused, for a wrong password or database: nothing can be asked until that is mended.
    const why = messageOf(thrown);
    if (isLate(thrown)) throw new Error(`no connection within ${CONNECT_MS} ms`);
    throw codeOf(thrown) === undefined
      ? thrown
      : new EngineAway('database', why === '' ? String(codeOf(thrown)) : why, { cause: thrown });
  });

const READ_ONLY = '25006';
/** The server ended a connection, since nothing came within a transaction (idle_in_transaction_session_timeout). */
const IDLE_TOO_LONG = '25P03';

/** Connections that the server ended, and what it said. */
const endedBy = new WeakMap<object, unknown>();

/** As the server says it when it is asked to write. */
class ReadsOnly extends Error {
  readonly code = READ_ONLY;
}

const codeOf = (thrown: unknown): unknown => (thrown as { code?: unknown } | null)?.code;

/** The client has its own words for its deadlines. */
const isLate = (thrown: unknown): boolean =>
  thrown instanceof Error &&
  /^(Query read timeout|Connection terminated due to connection timeout|timeout exceeded when trying to connect|timeout expired)$/.test(
    thrown.message,
  );

async function rowsOf<Row>(
  client: PoolClient,
  sql: string,
  values: readonly SqlValue[] | undefined,
  deadlineMs: number,
): Promise<readonly Row[]> {
  const config = {
    text: sql,
    query_timeout: deadlineMs,
    ...(values !== undefined && { values: [...values] }),
  };
  try {
    const { rows } = await client.query(config);
    return rows as readonly Row[];
  } catch (thrown) {
    throw isLate(thrown) ? new EngineAway('database', `no answer within ${deadlineMs} ms`) : thrown;
  }
}

const beginOf = (stopMs: number) => `BEGIN; SET LOCAL statement_timeout = ${Math.ceil(stopMs)}`;

/**
 * A transaction in one trip: nothing in it waits for an answer. PgBouncer gives connections away between transactions,
 * so a time to stop can be set in no other way.
 */
async function stoppedRowsOf<Row>(
  client: PoolClient,
  sql: string,
  values: readonly SqlValue[],
  deadlineMs: number,
  stopMs: number,
): Promise<readonly Row[]> {
  const sent = [
    rowsOf(client, beginOf(stopMs), undefined, deadlineMs),
    rowsOf<Row>(client, sql, values, deadlineMs),
    // After an error it undoes.
    rowsOf(client, 'COMMIT', undefined, deadlineMs),
  ] as const;
  // All answers are read before the connection is used again.
  await Promise.allSettled(sent);
  const [, rows] = await Promise.all(sent);
  return rows;
}

async function open({ url }: DatabaseAddress): Promise<Pool> {
  const { default: pg } = await import('pg');
  const types = {
    getTypeParser: (oid: number, format?: 'text' | 'binary') =>
      oid === INT8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format),
  };
  const pool = new pg.Pool({
    connectionString: url.reveal(),
    max: CONNECTIONS,
    // Queries that do not wait for each other go out together.
    pipeline: true,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    application_name: 'hopgate',
    types: types as never,
  });
  // A connection that breaks is replaced, idle or in use; without listeners it would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => {
    client.once('error', (first) => endedBy.set(client, first));
    client.on('error', () => {});
  });
  return pool;
}

// Connection exceptions, operator intervention, insufficient resources, a transaction that may not write.
const NOT_SERVING = /^(08|57P|53|25006)/;

/** An error of the server has a code of five characters; what has none is a broken or silent connection. */
function isAway(thrown: unknown): boolean {
  if (thrown instanceof EngineAway) return true;
  const code = codeOf(thrown);
  if (typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code)) {
    return !(thrown instanceof Error) || isConnection(thrown);
  }
  return NOT_SERVING.test(code);
}

/** Errors that the work of a transaction throws itself pass through. */
function isConnection(thrown: Error): boolean {
  const { code, errors } = thrown as { code?: unknown; errors?: unknown };
  if (typeof code === 'string' || Array.isArray(errors)) return true;
  return /timeout|timed out|terminated|connection|closed/i.test(thrown.message);
}

interface Facts {
  readonly version: string;
  readonly number: number;
  readonly standby: boolean;
  readonly readonly: boolean;
  readonly rights: boolean;
}

const FACTS = `SELECT current_setting('server_version') AS version,
  current_setting('server_version_num')::int AS number,
  pg_is_in_recovery() AS standby,
  current_setting('transaction_read_only') = 'on' AS readonly,
  CASE WHEN to_regnamespace('hopgate') IS NULL
    THEN has_database_privilege(current_database(), 'CREATE')
    ELSE has_schema_privilege('hopgate', 'CREATE, USAGE') END AS rights`;

const ONLY_READS = finding(
  'fail',
  'the server only reads',
  'Connect to the primary (target_session_attrs=read-write).',
);

const OLDEST = 130_000;

function versionFinding({ version, number }: Facts): EngineFinding {
  const message = `Postgres ${version}`;
  return number >= OLDEST
    ? finding('ok', message)
    : finding('fail', message, 'Use Postgres 13 or newer.');
}

function rightsFinding({ rights }: Facts): EngineFinding {
  return rights
    ? finding('ok', 'this user may make tables in the schema hopgate')
    : finding(
        'fail',
        'this user may not make tables in the schema hopgate',
        'As an administrator: CREATE SCHEMA hopgate AUTHORIZATION <user>;',
      );
}

/** Engines over TLS, on real servers: an authority of one's own is trusted where it is named, and nothing else is. */

import { afterAll, describe, expect, test } from 'bun:test';
import { Secret } from '../../../src/config/secret.ts';
import type { CacheAddress } from '../../../src/config/sections/engines.ts';
import type { EngineState } from '../../../src/state/engines/engine.ts';
import { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import { ValkeyCache } from '../../../src/state/engines/valkey.ts';
import { HAS_CACHE, startCache } from '../../support/engines/cache-servers.ts';
import { HAS_POSTGRES, startPostgres } from '../../support/engines/database-servers.ts';
import { certificateFiles } from '../../support/engines/processes.ts';

const LONG = 5000;
const { authority } = certificateFiles('localhost');
const ends: (() => Promise<unknown>)[] = [];
afterAll(() => Promise.all(ends.map((end) => end())));

/** What a call came to: `answered`, or why not, with what the engine says of itself. */
async function outcome(call: Promise<unknown>, state: () => EngineState): Promise<string> {
  try {
    await call;
    return 'answered';
  } catch (thrown) {
    return `${(thrown as Error).name}: ${state().message ?? (thrown as Error).message}`;
  }
}

describe.skipIf(!HAS_CACHE)('the cache', () => {
  const ask = async (certificate: string, address: Partial<CacheAddress>) => {
    const server = await startCache([], certificate);
    const nodes = [{ host: '127.0.0.1', port: server.port }];
    const whole: CacheAddress = { form: 'single', nodes, db: 0, tls: true, ...address };
    const cache = new ValkeyCache(whole, () => {});
    ends.push(() => cache.close().then(() => server.stop()));
    return outcome(cache.getMany(['{hopgate}:a'], LONG), () => cache.state);
  };

  test('a certificate of the named authority is accepted', async () => {
    expect(await ask('localhost', { caFile: authority })).toBe('answered');
  });

  test('a certificate of an authority that is not named is refused', async () => {
    expect(await ask('localhost', {})).toBe(
      'EngineAway: self signed certificate in certificate chain',
    );
  });

  test('a certificate of another name is refused', async () => {
    expect(await ask('elsewhere', { caFile: authority })).toStartWith(
      "EngineAway: Hostname/IP does not match certificate's altnames",
    );
  });

  test('a server that speaks TLS only is not asked in the clear', async () => {
    // How the end of the connection is seen depends on who is faster.
    expect(await ask('localhost', { tls: false })).toMatch(
      /^EngineAway: (?:read ECONNRESET|the server closes the connection before it answers)/,
    );
  });
});

describe.skipIf(!HAS_POSTGRES)('the database', () => {
  const ask = async (certificate: string | undefined, parameters: string) => {
    const server = await startPostgres(certificate);
    const url = new Secret(`${server.url}?${parameters}`);
    const database = new PostgresDatabase({ url }, () => {});
    ends.push(() => database.close().then(() => server.stop()));
    const sql = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
    let isEncrypted: boolean | undefined;
    const result = await outcome(
      database.query<{ ssl: boolean }>(sql, [], LONG).then(([row]) => {
        isEncrypted = row!.ssl;
      }),
      () => database.state,
    );
    return isEncrypted === undefined ? result : `${result}, encrypted: ${isEncrypted}`;
  };

  test('a certificate of the named authority is accepted', async () => {
    expect(await ask('localhost', `sslmode=verify-full&sslrootcert=${authority}`)).toBe(
      'answered, encrypted: true',
    );
  });

  test('a certificate of an authority that is not named is refused', async () => {
    expect(await ask('localhost', 'sslmode=verify-full')).toBe(
      'EngineAway: unable to verify the first certificate',
    );
  });

  test('a certificate of another name is refused', async () => {
    expect(await ask('elsewhere', `sslmode=verify-full&sslrootcert=${authority}`)).toStartWith(
      "EngineAway: Hostname/IP does not match certificate's altnames",
    );
  });

  test('a server without TLS gets no query where TLS is asked for', async () => {
    expect(await ask(undefined, `sslmode=verify-full&sslrootcert=${authority}`)).toBe(
      'EngineAway: The server does not support SSL connections',
    );
  });
});

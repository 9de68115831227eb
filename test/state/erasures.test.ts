/** Erasures: what recent ones cover, and that replicas follow those of others. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../src/config/secret.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import {
  ERASURES_KEPT_MS,
  nameHash,
  RecentErasures,
  ReplicaErasures,
} from '../../src/state/erasures.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { until } from '../support/until.ts';

test('an erasure covers work that began before it or at its time, of its own key alone', () => {
  const erasures = new RecentErasures();
  erasures.add('a', 1000);
  expect([999, 1000, 1001].map((began) => erasures.hasSince('a', began))).toEqual([
    true,
    true,
    false,
  ]);
  expect(erasures.hasSince('b', 1)).toBe(false);
});

test('erasures are forgotten after a while, when another one comes', () => {
  const erasures = new RecentErasures();
  erasures.add('a', 1000);
  erasures.add('b', 1000 + ERASURES_KEPT_MS);
  expect(erasures.hasSince('a', 1)).toBe(true);
  erasures.add('b', 1001 + ERASURES_KEPT_MS);
  expect(erasures.hasSince('a', 1)).toBe(false);
});

describe.skipIf(!HAS_POSTGRES)('a database that is restored from a backup', () => {
  let server: DatabaseServer;
  let database: PostgresDatabase;
  let folder: string;
  beforeAll(async () => {
    server = await startPostgres();
    database = new PostgresDatabase({ url: new Secret(server.url) }, () => {});
    folder = mkdtempSync(join(tmpdir(), 'hopgate-erasures-'));
  });
  afterAll(async () => {
    await database.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  const open = (name: string) =>
    new ReplicaErasures({
      database,
      cache: undefined,
      positionPath: join(folder, name),
      onProblem: (message) => expect.unreachable(message),
    });
  const run = (sql: string) => database.query(sql, [], 5000);

  test('replicas still follow erasures, whether the next ones have fewer or more numbers than they had followed', async () => {
    const [writer, follower] = [open('writer.json'), open('follower.json')];
    const seen: string[] = [];
    follower.listen(({ name }) => seen.push(name.hash));
    const followed = async (name: string) => {
      follower.follow();
      await until(() => seen.includes(nameHash(name)));
    };
    try {
      await writer.note('before');
      await followed('before');
      await run('CREATE TABLE backup AS SELECT * FROM hopgate.erasures');
      const restore = async () => {
        await run('DELETE FROM hopgate.erasures');
        await run('INSERT INTO hopgate.erasures SELECT * FROM backup');
        await run("SELECT setval('hopgate.erasures_seq', 1)");
      };
      for (const name of ['lost 1', 'lost 2']) await writer.note(name);
      await followed('lost 2');
      await restore();
      await writer.note('fewer');
      await followed('fewer');
      for (const name of ['lost 3', 'lost 4']) await writer.note(name);
      await followed('lost 4');
      await restore();
      const more = ['more 1', 'more 2', 'more 3', 'more 4', 'more 5'];
      for (const name of more) await writer.note(name);
      for (const name of more) await followed(name);
    } finally {
      await Promise.all([writer.close(), follower.close()]);
    }
  });
});

/** The list of the samples of all replicas: what one key makes does not push out the samples of another. */

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { SampleList } from '../../../src/samples/replicas/list.ts';
import type { Retention } from '../../../src/samples/store/retention.ts';
import { erasureTables } from '../../../src/state/erasures.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  newDatabase,
  startPostgres,
} from '../../support/engines/database-servers.ts';

setDefaultTimeout(60_000);

const NONE: Retention = { keepDays: 0, keepFailedDays: 0, maxBytes: 0, maxCount: 0 };

describe.skipIf(!HAS_POSTGRES)('limits over all replicas', () => {
  let server: DatabaseServer;
  const cleanups: (() => unknown)[] = [];
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterEach(async () => {
    for (const one of cleanups.splice(0)) await one();
  });
  afterAll(() => server.stop());

  /** Owners with their samples; those of the first are the oldest. */
  async function listWith(
    owners: readonly (readonly [owner: string, count: number, bytes: number])[],
    failed: boolean,
  ) {
    const { database } = await newDatabase(server);
    cleanups.push(() => database.close());
    const list = new SampleList(database, { prepared: erasureTables(database) });
    await list.ready();
    let n = 0;
    for (const [owner, count, bytes] of owners) {
      const made = Array.from({ length: count }, () => {
        const id = `${owner}-${n}`;
        return { id, key: id, time: ++n, failed, bytes, parts: 1, space: undefined, owner };
      });
      await list.reserve('replica', made);
      for (const { id } of made) await list.complete(id, new Uint8Array(1));
    }
    return { database, list };
  }
  async function leftOf(
    { database, list }: Awaited<ReturnType<typeof listWith>>,
    limits: Partial<Retention>,
  ) {
    for (;;) {
      const gone = await list.overdue({ ...NONE, ...limits });
      if (gone.length === 0) break;
      await list.remove(gone);
    }
    const rows = await database.query<{ owner: string; count: number }>(
      "SELECT split_part(id, '-', 1) AS owner, count(*) AS count FROM hopgate.samples WHERE state = 'done' GROUP BY 1",
      [],
      5000,
    );
    return Object.fromEntries(rows.map(({ owner, count }) => [owner, count]));
  }

  for (const failed of [false, true]) {
    const kind = failed ? 'failed' : 'successful';
    test(`of too many ${kind} ones those of the key with most go`, async () => {
      const made = await listWith(
        [
          ['quiet', 5, 1],
          ['other', 8, 1],
          ['loud', 60, 1],
        ],
        failed,
      );
      expect(await leftOf(made, { maxCount: 21 })).toEqual({ quiet: 5, other: 8, loud: 8 });
      expect(await leftOf(made, { maxCount: 6 })).toEqual({ quiet: 2, other: 2, loud: 2 });
    });

    test(`of too large ${kind} ones those of the key with most bytes go`, async () => {
      const made = await listWith(
        [
          ['quiet', 5, 100],
          ['loud', 20, 10_000],
        ],
        failed,
      );
      expect(await leftOf(made, { maxBytes: 40_500 })).toEqual({ quiet: 5, loud: 4 });
    });
  }

  test('samples of a version without owners count as those of one', async () => {
    const made = await listWith(
      [
        ['before', 10, 1],
        ['quiet', 3, 1],
      ],
      false,
    );
    await made.database.query(
      "UPDATE hopgate.samples SET owner = NULL WHERE owner = 'before'",
      [],
      5000,
    );
    expect(await leftOf(made, { maxCount: 7 })).toEqual({ before: 4, quiet: 3 });
  });
});

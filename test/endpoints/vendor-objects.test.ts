/** Whose files and batches are, in a file of this machine and in Postgres: owners apart, and settled once. */

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  setSystemTime,
  test,
} from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  VENDOR_OBJECTS_SCHEMA,
  type VendorObject,
  VendorObjects,
} from '../../src/endpoints/batches/vendor-objects.ts';
import { openPostgres } from '../../src/state/sql/postgres.ts';
import { openSqlite } from '../../src/state/sql/sqlite.ts';
import { textSeal } from '../../src/state/text-seal.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  newDatabase,
  startPostgres,
} from '../support/engines/database-servers.ts';

setDefaultTimeout(60_000);

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

let server: DatabaseServer | undefined;
beforeAll(async () => {
  if (HAS_POSTGRES) server = await startPostgres();
});
afterAll(() => server?.stop());

async function inPostgres(): Promise<VendorObjects> {
  const { database } = await newDatabase(server!);
  cleanups.push(() => database.close());
  return new VendorObjects(
    openPostgres(database, VENDOR_OBJECTS_SCHEMA),
    textSeal(['s'.repeat(32)]),
  );
}

async function inFile(): Promise<VendorObjects> {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-objects-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const store = new VendorObjects(
    openSqlite(VENDOR_OBJECTS_SCHEMA, { path: join(folder, 'objects.db') }),
    textSeal([]),
  );
  cleanups.push(() => store.close());
  return store;
}

const FORMS: readonly [string, () => Promise<VendorObjects>][] = [
  ['in a file', inFile],
  ...(HAS_POSTGRES ? [['in Postgres', inPostgres] as [string, typeof inPostgres]] : []),
];

const batch = (id: string, owner: string, made: number): VendorObject => ({
  owner,
  id,
  kind: 'batch',
  api: 'openai',
  provider: 'up',
  upstreamKey: 'key-123456',
  made,
  object: { id, status: 'in_progress' },
  due: [{ asked: 'm', model: 'm', requests: 1, bytes: 10, answers: 1, request: 'req_1' }],
});

describe.each(FORMS)('%s', (_, open) => {
  test('two owners may have the same id, and neither sees the other', async () => {
    const store = await open();
    await store.put(batch('same', 'alice', 1));
    await store.put({ ...batch('same', 'bob', 2), provider: 'other' });
    await store.remove('alice', 'same');
    expect(await store.get('alice', 'same')).toBeUndefined();
    expect(await store.get('bob', 'same')).toMatchObject({ provider: 'other', made: 2 });
    expect(await store.page('alice', 'batch', 'openai', { limit: 10 })).toEqual([]);
  });

  test('what is due is taken by one of many who ask at once, and can be given back', async () => {
    const store = await open();
    await store.put(batch('b', 'alice', 1));
    const all = await Promise.all(Array.from({ length: 5 }, () => store.takeDue('alice', 'b')));
    expect(all.filter((due) => due !== undefined)).toHaveLength(1);
    expect(await store.takeDue('bob', 'b')).toBeUndefined();
    await store.giveBackDue('alice', 'b');
    expect(await store.takeDue('alice', 'b')).toMatchObject([{ request: 'req_1' }]);
  });

  test('a later look changes the object alone', async () => {
    const store = await open();
    await store.put(batch('b', 'alice', 1));
    await store.takeDue('alice', 'b');
    await store.put({ ...batch('b', 'alice', 9), object: { id: 'b', status: 'completed' } });
    expect(await store.get('alice', 'b')).toMatchObject({
      made: 1,
      object: { status: 'completed' },
      due: undefined,
    });
  });

  test('an id that was given out stays with its first owner, is on no page, and is forgotten', async () => {
    const store = await open();
    await store.put(batch('b', 'bob', 1));
    await store.addIssued('alice', ['container_1', 'b'], 'up');
    await store.addIssued('bob', ['container_1'], 'up');
    expect(await store.foreign('bob', ['container_1', 'b'])).toEqual(['container_1']);
    expect(await store.foreign('alice', ['container_1', 'b'])).toEqual(['b']);
    for (const kind of ['file', 'batch'] as const) {
      expect(await store.page('alice', kind, 'openai', { limit: 9 })).toEqual([]);
    }
    await store.removeOldIssued();
    expect(await store.foreign('bob', ['container_1'])).toEqual(['container_1']);
    setSystemTime(Date.now() + 91 * 24 * 60 * 60 * 1000);
    try {
      await store.removeOldIssued();
    } finally {
      setSystemTime();
    }
    expect(await store.foreign('bob', ['container_1'])).toEqual([]);
    expect(await store.get('bob', 'b')).toMatchObject({ kind: 'batch' });
  });

  test('pages of objects of one moment are whole', async () => {
    const store = await open();
    for (const id of ['a', 'b', 'c', 'd']) await store.put(batch(id, 'alice', 5));
    const ids = async (page: object) =>
      (await store.page('alice', 'batch', 'openai', { limit: 2, ...page })).map(({ id }) => id);
    expect(await ids({})).toEqual(['d', 'c', 'b']);
    expect(await ids({ after: 'c' })).toEqual(['b', 'a']);
    expect(await ids({ before: 'b' })).toEqual(['c', 'd']);
    expect(await ids({ oldestFirst: true, after: 'b' })).toEqual(['c', 'd']);
    expect(await store.page('alice', 'file', 'openai', { limit: 2 })).toEqual([]);
  });
});

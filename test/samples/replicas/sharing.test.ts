/** Samples of several replicas over a real Postgres and a real object store: listed, read, limited, erased everywhere. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runAtOnce } from '../../../src/lib/loop/steps.ts';
import { STEPS } from '../../../src/samples/replicas/uploader.ts';
import type { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../../support/engines/database-servers.ts';
import {
  HAS_OBJECTS,
  type ObjectServer,
  startObjects,
} from '../../support/engines/object-servers.ts';
import { until } from '../../support/until.ts';
import {
  openDatabase,
  openObjects,
  Replica,
  type ReplicaOptions,
  type Servers,
} from './replica.ts';

const LONG = 20_000;

describe.skipIf(!HAS_POSTGRES || !HAS_OBJECTS)('samples of several replicas', () => {
  let database: DatabaseServer;
  let objects: ObjectServer;
  let servers: Servers;
  let reader: PostgresDatabase;
  let count = 0;
  const open: Replica[] = [];
  beforeAll(async () => {
    [database, objects] = await Promise.all([startPostgres(), startObjects()]);
  });
  afterAll(async () => {
    await Promise.all([database.stop(), objects.stop()]);
  });
  beforeEach(async () => {
    servers = { database, objects, prefix: `test-${++count}` };
    reader = openDatabase(servers);
    await reader.query('DROP SCHEMA IF EXISTS hopgate CASCADE', [], LONG);
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
    await reader.close();
  });

  function start(options?: ReplicaOptions): Replica {
    const made = new Replica(servers, options);
    open.push(made);
    return made;
  }
  const stored = async () => {
    const store = openObjects(servers);
    try {
      return (await store.list('', '', LONG)).map(({ key }) => key);
    } finally {
      await store.close();
    }
  };
  /** None before a replica has made the table. */
  const rows = async (where = 'true') => {
    const [made] = await reader.query<{ name: string | null }>(
      `SELECT to_regclass('hopgate.samples')::text AS name`,
      [],
      LONG,
    );
    if (made!.name === null) return [];
    return reader.query<{
      id: string;
      state: string;
      space: string | null;
      meta: Uint8Array | null;
    }>(`SELECT id, state, space, meta FROM hopgate.samples WHERE ${where}`, [], LONG);
  };

  test('what one replica recorded is listed by the other, and its bodies are read there byte for byte', async () => {
    const [a, b] = [start(), start()];
    const id = await a.record('apples and pears');
    await until(() => b.lists(id));
    const row = b.store.list().find((one) => one.id === id)!;
    expect(row).toEqual(a.store.list().find((one) => one.id === id)!);
    // The bodies are not there before they are opened.
    expect(b.traces('apples')).toEqual([]);
    for (const stage of [
      'client-request',
      'provider-request',
      'provider-response',
      'client-response',
    ]) {
      expect(await b.body(id, stage)).toBe(await a.body(id, stage));
    }
    expect(await b.body(id, 'client-request')).toContain('apples and pears');
    expect(runAtOnce(b.store.export(b.store.find(id)!, false))).toEqual(
      runAtOnce(a.store.export(a.store.find(id)!, false)),
    );
  });

  test('a store answers alike for what was recorded here and elsewhere', async () => {
    const [a, b] = [start(), start()];
    const ids = [await a.record('first words', 'ann'), await a.record('second words')];
    await until(() => ids.every((id) => b.lists(id)));
    const since = Date.now() - 3_600_000;
    const end = Date.now() + 3_600_000;
    const said = async ({ store }: Replica) => {
      for (const id of ids) await store.fetch(store.find(id)!);
      for (const id of ids) store.texts.put(id, [{ text: `the words of ${id}`, added: true }]);
      const metas = ids.map((id) => store.find(id)!);
      return {
        all: store.list(),
        some: store.list({ status: 'ok', model: 'm', sort: { by: 'total', up: true }, limit: 1 }),
        none: store.list({ status: 'failed' }),
        targets: store.targets(),
        matching: store.matching(ids[0]!.slice(0, -2), 5),
        pages: [...store.pages({ since, until: end })],
        rows: metas.map((meta) => store.row(meta)),
        bodies: metas.map((meta) =>
          meta.edges.map(({ stage }) => Buffer.from(store.read(meta, stage)!).toString()),
        ),
        missing: store.read(metas[0]!, 'hop2-provider-request'),
        found: [...runAtOnce(store.texts.find([ids[1]!])).by.keys()],
        exported: metas.map((meta) => runAtOnce(store.export(meta, true))),
      };
    };
    expect(await said(b)).toEqual(await said(a));
  });

  test('objects and tables show no word of a sample where a secret seals them', async () => {
    const a = start();
    const id = await a.record('a confidential plan', 'space-of-ann');
    await until(async () => (await rows("state = 'done'")).length === 1);
    const store = openObjects(servers);
    const keys = await stored();
    expect(keys).toHaveLength(1);
    const object = Buffer.from((await store.get(keys[0]!, undefined, LONG))!);
    await store.close();
    const [row] = await rows();
    for (const bytes of [object, Buffer.from(row!.meta!)]) {
      for (const word of ['confidential', 'space-of-ann', 'glm-4.7', 'client-request']) {
        expect(bytes.includes(word)).toBe(false);
      }
    }
    // Another secret opens nothing, and says why.
    const stranger = start({ seal: ['another secret, which is long enough as well'] });
    await until(() => stranger.warnings.some((one) => one.includes('engines.seal')));
    expect(stranger.lists(id)).toBe(false);
  });

  test('an erased space leaves no trace: not in the bucket, the tables, or the folder and index of any replica', async () => {
    const [a, b, c] = [start(), start(), start()];
    const ids = [await a.record('secret plums', 'ann'), await b.record('secret plums too', 'ann')];
    const other = await c.record('cherries', 'ben');
    for (const one of [a, b, c]) await until(() => [...ids, other].every((id) => one.lists(id)));
    for (const id of ids) await c.body(id, 'client-request');
    expect(c.traces('secret plums').length).toBeGreaterThan(0);
    const running = b.begin('secret plums on their way', 'ann');

    await a.erase('ann');
    const left = await stored();
    for (const id of ids) expect(left.filter((key) => key.includes(id))).toEqual([]);
    expect(left.filter((key) => key.includes(other))).toHaveLength(1);
    expect((await rows('meta IS NOT NULL OR space IS NOT NULL')).map(({ id }) => id)).toEqual([
      other,
    ]);
    running.end();
    for (const one of [a, b, c]) {
      await until(() => ids.every((id) => !one.lists(id)));
      await until(
        () => one.traces('secret plums').length === 0 && one.traces('"ann"').length === 0,
      );
      expect(one.lists(other)).toBe(true);
    }
    // What ran during the erasure comes back on no replica; what comes later does.
    await b.recorder.flush();
    const later = await b.record('new plums', 'ann');
    await until(() => a.lists(later));
    expect(a.lists(running.id) || b.lists(running.id)).toBe(false);
    expect((await rows("state <> 'gone'")).map(({ id }) => id).sort()).toEqual(
      [other, later].sort(),
    );
  });

  test('limits hold over all replicas together: the oldest of any of them goes, with its object', async () => {
    const limits = { retention: { maxCount: 3, keepDays: 0, keepFailedDays: 0, maxBytes: 0 } };
    const [a, b] = [start(limits), start(limits)];
    const ids: string[] = [];
    for (const [i, one] of [a, b, a, b, a].entries()) {
      ids.push(await one.record(`number ${i}`));
      await until(
        async () => (await rows(`id = '${ids.at(-1)}' AND state <> 'pending'`)).length > 0,
      );
      await Bun.sleep(3);
    }
    const newest = ids.slice(-3).sort();
    for (const one of [a, b]) {
      await until(() =>
        Bun.deepEquals(
          one.store
            .list()
            .map(({ id }) => id)
            .sort(),
          newest,
        ),
      );
    }
    await until(async () => (await rows("state = 'done'")).length === 3);
    await until(async () => (await stored()).length === 3);
  });

  for (const [name, step] of Object.entries(STEPS)) {
    test(`killed after the step "${name}" of an upload: nothing is lost, nothing is listed that cannot be opened`, async () => {
      const b = start();
      const root = mkdtempSync(join(tmpdir(), 'hopgate-replica-'));
      const child = Bun.spawn(
        [
          process.execPath,
          Bun.fileURLToPath(new URL('./killed-replica.ts', import.meta.url)),
          JSON.stringify({
            url: database.url,
            endpoint: objects.endpoint,
            prefix: servers.prefix,
            root,
            step,
          }),
        ],
        { stdout: 'pipe', stderr: 'inherit' },
      );
      const id = (await new Response(child.stdout).text()).trim();
      await child.exited;
      expect(child.signalCode).toBe('SIGKILL');
      const listed = await rows("state = 'done'");
      for (const row of listed) {
        await until(() => b.lists(row.id));
        expect(await b.body(row.id, 'client-request')).toContain('words of the dead');
      }
      const again = start({ root });
      await until(() => b.lists(id));
      expect(await b.body(id, 'client-response')).toBe(await again.body(id, 'client-response'));
      expect(await stored()).toHaveLength(1);
      expect((await rows()).map(({ state }) => state)).toEqual(['done']);
    });
  }

  test('an upload of a space that is erased meanwhile leaves nothing, whatever step it is at', async () => {
    const b = start();
    for (const step of [STEPS.found, STEPS.reserved, STEPS.stored]) {
      const space = `space-${step}`;
      const slow = start({
        onStep: async (at) => {
          if (at === step) await b.erase(space);
        },
      });
      const id = await slow.record('pears in between', space);
      await until(() => !slow.lists(id));
      await until(() => slow.traces('pears in between').length === 0);
      await until(async () => (await stored()).length === 0);
      expect(await rows("state <> 'gone'")).toEqual([]);
      expect(b.lists(id)).toBe(false);
    }
  });

  test('a replica that was away takes in what came and leaves what went, also when the list has forgotten it', async () => {
    const [a, first] = [start(), new Replica(servers)];
    const old = await a.record('of yesterday');
    await until(() => first.lists(old));
    await first.close(true);
    await a.erase('nobody');
    const came = await a.record('of today', 'ann');
    await until(async () => (await rows(`id = '${came}' AND state = 'done'`)).length === 1);
    await reader.query(`DELETE FROM hopgate.samples WHERE id = '${old}'`, [], LONG);
    await reader.query(
      `UPDATE hopgate.samples_state SET seq = (SELECT max(seq) FROM hopgate.samples) WHERE name = 'forgotten'`,
      [],
      LONG,
    );
    const again = start({ root: first.root });
    await until(() => again.lists(came) && !again.lists(old));
  });

  test('after a restored backup of the database, what is recorded next is listed everywhere, and what is here stays', async () => {
    const [a, b] = [start(), start()];
    const first = await a.record('in the backup');
    await until(() => b.lists(first));
    await reader.query('CREATE TABLE hopgate.backup AS SELECT * FROM hopgate.samples', [], LONG);
    const last = await reader.query<{ seq: number }>(
      'SELECT last_value AS seq FROM hopgate.samples_seq',
      [],
      LONG,
    );
    const lost = [await a.record('later'), await a.record('later still')];
    await until(() => lost.every((id) => b.lists(id)));
    await reader.query('DELETE FROM hopgate.samples', [], LONG);
    await reader.query('INSERT INTO hopgate.samples SELECT * FROM hopgate.backup', [], LONG);
    await reader.query("SELECT setval('hopgate.samples_seq', $1)", [last[0]!.seq], LONG);
    const next = await a.record('after the restore');
    await until(() => b.lists(next));
    expect([first, ...lost].map((id) => [a.lists(id), b.lists(id)])).toEqual(
      [first, ...lost].map(() => [true, true]),
    );
  });

  test('a folder that lost what it knew uploads nothing twice and lists everything', async () => {
    const a = new Replica(servers);
    const ids = [await a.record('one'), await a.record('two')];
    await until(async () => (await rows("state = 'done'")).length === 2);
    await a.close(true);
    for (const name of readdirSync(a.root)) {
      if (name.startsWith('shared.')) rmSync(join(a.root, name));
    }
    const before = await stored();
    const again = start({ root: a.root });
    const third = await again.record('three');
    await until(async () => (await rows("state = 'done'")).length === 3);
    expect([...ids, third].every((id) => again.lists(id))).toBe(true);
    const after = await stored();
    expect(after).toHaveLength(3);
    expect(before.every((key) => after.includes(key))).toBe(true);
  });

  test('while the object store is frozen samples wait in the folder, and are uploaded when it answers', async () => {
    const [a, b] = [start(), start()];
    const first = await a.record('before');
    await until(() => b.lists(first));
    objects.freeze();
    const waiting: string[] = [];
    try {
      for (let i = 0; i < 5; i++) waiting.push(await a.record(`while frozen ${i}`));
      expect(waiting.every((id) => a.lists(id))).toBe(true);
      expect(b.lists(waiting[0]!)).toBe(false);
      await until(() => a.pending === 5);
    } finally {
      objects.thaw();
    }
    await until(() => waiting.every((id) => b.lists(id)));
    await until(() => a.pending === 0);
    expect(await b.body(waiting[4]!, 'client-request')).toContain('while frozen 4');
  });

  test('what the limits of the folder remove before its upload is counted as lost', async () => {
    const a = start({ retention: { maxCount: 2, keepDays: 0, keepFailedDays: 0, maxBytes: 0 } });
    await until(() => a.database.state.status === 'up');
    database.freeze();
    try {
      for (let i = 0; i < 6; i++) await a.record(`waits ${i}`);
      await until(() => a.sharing.lost >= 1);
      expect(a.store.list().length).toBeLessThanOrEqual(3);
      expect(a.warnings.some((one) => one.includes('before they could be uploaded'))).toBe(true);
    } finally {
      database.thaw();
    }
  });
});

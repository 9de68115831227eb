/** Moving recorded exchanges between a folder and real engines, both ways: uploaded once, brought back whole, never what was erased. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Recorder } from '../../../src/samples/record/recorder.ts';
import { SharingStore } from '../../../src/samples/replicas/folder-store.ts';
import { samplesMove } from '../../../src/samples/replicas/move.ts';
import { DEFAULT_RETENTION } from '../../../src/samples/store/retention.ts';
import { openSampleStore } from '../../../src/samples/store/sample-store.ts';
import type { Objects } from '../../../src/state/engines/engine.ts';
import type { ObjectStore } from '../../../src/state/engines/objects.ts';
import type { PostgresDatabase } from '../../../src/state/engines/postgres.ts';
import type { MoveDirection } from '../../../src/state/move/paged-move.ts';
import { textSeal } from '../../../src/state/text-seal.ts';
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
import { countsOf, dumpOf, filesIn } from '../../support/moves.ts';
import { until } from '../../support/until.ts';
import { exchange, JSON_TYPE, play, told } from '../record/support.ts';
import { openDatabase, openObjects, Replica, SEAL, type Servers } from './replica.ts';

const LONG = 20_000;

describe.skipIf(!HAS_POSTGRES || !HAS_OBJECTS)('recorded exchanges that are moved', () => {
  let databaseServer: DatabaseServer;
  let objectServer: ObjectServer;
  let servers: Servers;
  let database: PostgresDatabase;
  let objects: ObjectStore;
  let root: string;
  let count = 0;
  const open: Replica[] = [];
  beforeAll(async () => {
    [databaseServer, objectServer] = await Promise.all([startPostgres(), startObjects()]);
  });
  afterAll(async () => {
    await Promise.all([databaseServer.stop(), objectServer.stop()]);
  });
  beforeEach(async () => {
    servers = { database: databaseServer, objects: objectServer, prefix: `move-${++count}` };
    database = openDatabase(servers);
    objects = openObjects(servers);
    root = join(mkdtempSync(join(tmpdir(), 'hopgate-move-')), 'samples');
    await database.query('DROP SCHEMA IF EXISTS hopgate CASCADE', [], LONG);
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
    await database.close();
    await objects.close();
    rmSync(join(root, '..'), { recursive: true, force: true });
  });

  const move = (to: MoveDirection, through: Objects = objects, at = root) =>
    samplesMove({ database, objects: through, seal: textSeal(SEAL), root: at, to });
  const copy = (to: MoveDirection, through?: Objects, at?: string) =>
    move(to, through, at).copy(() => {});
  const counts = (to: MoveDirection, at = root) => countsOf(move(to, objects, at));
  /** Records as a gateway without engines does. @returns the ids */
  async function record(...said: readonly (readonly [words: string, space?: string])[]) {
    const recorder = new Recorder({ root, mode: 'all', recent: {}, retention: DEFAULT_RETENTION });
    const ids: string[] = [];
    for (const [words, space] of said) {
      const request = exchange({
        body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: words }] }),
      });
      const recording = recorder.begin(request)!;
      if (space !== undefined) recording.space?.(space);
      play(recording, { answer: [`{"answer":"to ${words}"}`] });
      recording.clientStart(200, JSON_TYPE);
      recording.clientChunk(`{"answer":"to ${words}"}`);
      recording.end(told());
      ids.push(request.id);
    }
    await recorder.flush();
    await recorder.close();
    return ids;
  }
  function start(at?: string): Replica {
    const made = new Replica(servers, at === undefined ? {} : { root: at });
    open.push(made);
    return made;
  }
  async function stop(replica: Replica): Promise<void> {
    open.splice(open.indexOf(replica), 1);
    await replica.close(true);
  }
  /** What a gateway without engines lists, and what it reads of the first stage. */
  function listed(at = root) {
    const store = openSampleStore(at);
    try {
      return store
        .list()
        .map(({ id }) => {
          const body = store.read(store.find(id)!, 'client-request');
          return [id, body === undefined ? undefined : Buffer.from(body).toString()] as const;
        })
        .toSorted(([a], [b]) => (a < b ? -1 : 1));
    } finally {
      store.close();
    }
  }
  const stored = async () => (await objects.list('', '', LONG)).map(({ key }) => key);

  test('what a folder recorded is uploaded and opened by other replicas, and a second copy does nothing', async () => {
    const [first, second] = await record(['apples and pears'], ['cherries', 'ann']);
    expect(await counts('engines')).toEqual({ items: 2, missing: 2, conflicts: 0 });
    expect(await copy('engines')).toBe(2);
    expect(await counts('engines')).toEqual({ items: 2, missing: 0, conflicts: 0 });
    const before = [await stored(), await dumpOf(database)];
    expect(await copy('engines')).toBe(0);
    expect([await stored(), await dumpOf(database)]).toEqual(before);
    expect(before[1]).not.toContain('apples');
    const other = start();
    await until(() => other.lists(first!) && other.lists(second!));
    expect(await other.body(first!, 'client-request')).toContain('apples and pears');
    // The bodies are still in the folder.
    expect(listed().map(([, body]) => body?.includes('"role"'))).toEqual([true, true]);
  });

  test('what came in between is uploaded by the next copy, and what others recorded is not counted as of here', async () => {
    await record(['one']);
    await copy('engines');
    await record(['two']);
    await start().record('of another');
    expect(await counts('engines')).toEqual({ items: 2, missing: 1, conflicts: 0 });
    expect(await copy('engines')).toBe(1);
    // With the gateway of this folder, what others recorded comes into it.
    const own = start(root);
    await until(() => own.store.list().length === 3);
    await stop(own);
    expect(await counts('engines')).toEqual({ items: 2, missing: 0, conflicts: 0 });
  });

  test('a comparison makes no file and no table, and leaves all bytes as they are', async () => {
    const nothing = { items: 0, missing: 0, conflicts: 0 };
    expect(await counts('engines')).toEqual(nothing);
    expect(await counts('embedded')).toEqual(nothing);
    expect(await copy('engines')).toBe(0);
    expect(existsSync(root)).toBe(false);
    await record(['one'], ['two']);
    const before = filesIn(root);
    await counts('engines');
    await counts('embedded');
    expect(filesIn(root)).toEqual(before);
    expect(await dumpOf(database)).toBe('');
    expect(await stored()).toEqual([]);
  });

  test('an upload that is cut in the middle goes on where it was, and uploads none twice', async () => {
    await record(...Array.from({ length: 12 }, (_, at) => [`words ${at}`] as const));
    let puts = 0;
    const cut: Objects = {
      get state() {
        return objects.state;
      },
      open: () => objects.open(),
      examine: () => objects.examine(),
      close: () => objects.close(),
      get: (...given) => objects.get(...given),
      list: (...given) => objects.list(...given),
      remove: (...given) => objects.remove(...given),
      async put(...given) {
        if (++puts > 5) throw new Error('cut');
        await objects.put(...given);
      },
    };
    await expect(copy('engines', cut)).rejects.toThrow('cut');
    const { missing } = await counts('engines');
    expect(missing).toBe(12 - 5);
    expect(await copy('engines')).toBe(missing);
    expect(await stored()).toHaveLength(12);
    expect(await counts('engines')).toEqual({ items: 12, missing: 0, conflicts: 0 });
  });

  test('where a gateway of the folder uploads, the copy waits for it and does nothing itself', async () => {
    await record(['one'], ['two']);
    // It holds the folder, and begins later.
    const store = new SharingStore(root);
    expect(store.leads()).toBe(true);
    let done = false;
    const copying = copy('engines').then((written) => {
      done = true;
      return written;
    });
    await Bun.sleep(500);
    expect(done).toBe(false);
    expect(await stored()).toEqual([]);
    store.close();
    start(root);
    expect(await copying).toBe(2);
    expect(await stored()).toHaveLength(2);
    await Promise.all(open.splice(0).map((one) => one.close(true)));
  });

  test('the copy does not wait for what a busy gateway records meanwhile', async () => {
    await record(['one']);
    const started = move('engines');
    await Bun.sleep(5);
    await record(['recorded meanwhile']);
    expect(await started.copy(() => {})).toBe(1);
    expect((await started.compare()).missing).toBe(0);
    expect(await counts('engines')).toMatchObject({ items: 2, missing: 0 });
  });

  test('samples of a space that was erased in the engines are not uploaded', async () => {
    await record(['private words', 'ann'], ['other words', 'bob']);
    const other = start();
    await until(async () => (await dumpOf(database)).includes('erasures'));
    await other.erase('ann');
    const { items, missing, notes } = await move('engines').compare();
    expect([items, missing]).toEqual([2, 1]);
    expect(notes).toEqual(['1 are not copied: their memory space was erased there.']);
    expect(await copy('engines')).toBe(1);
    expect(await counts('engines')).toMatchObject({ missing: 0 });
    await until(() => other.store.list().length === 1);
    expect(await stored()).toHaveLength(1);
  });

  test('what was removed in the engines after an upload is not uploaded again', async () => {
    const [id] = await record(['one'], ['two']);
    await copy('engines');
    await database.query(
      "UPDATE hopgate.samples SET state = 'gone', meta = NULL WHERE id = $1",
      [id!],
      LONG,
    );
    const { missing, notes } = await move('engines').compare();
    expect(missing).toBe(0);
    expect(notes).toEqual(['1 were removed there, and are not copied again.']);
    expect(await copy('engines')).toBe(0);
    // Also when the list has forgotten that.
    await database.query('DELETE FROM hopgate.samples WHERE id = $1', [id!], LONG);
    expect(await copy('engines')).toBe(0);
    expect(await counts('engines')).toMatchObject({ missing: 0 });
  });

  test('the way back brings the exchanges of all replicas, with their bodies, once', async () => {
    const [a, b] = [start(), start()];
    const ids = [await a.record('of the first'), await b.record('of the second', 'ann')];
    await until(async () => (await stored()).length === 2);
    await until(async () => (await counts('embedded')).missing === 2);
    expect(existsSync(root)).toBe(false);
    expect(await copy('embedded')).toBe(2);
    expect(await counts('embedded')).toEqual({ items: 2, missing: 0, conflicts: 0 });
    expect(listed().map(([id]) => id)).toEqual(ids.toSorted());
    const said = listed().map(([, body]) => body);
    expect(said.some((body) => body?.includes('of the first'))).toBe(true);
    expect(said.some((body) => body?.includes('of the second'))).toBe(true);
    expect(await copy('embedded')).toBe(0);
    // None of them is of this machine: nothing goes back.
    expect(await counts('engines')).toEqual({ items: 0, missing: 0, conflicts: 0 });
  });

  test('the way back fetches bodies that this machine had given up, into its own folder', async () => {
    const [id] = await record(['one']);
    await copy('engines');
    const store = new SharingStore(root);
    store.close();
    rmSync(openSampleStore(root).path(openSampleStore(root).find(id!)!, 'client-request'));
    expect(await counts('embedded')).toEqual({ items: 1, missing: 1, conflicts: 0 });
    expect(await copy('embedded')).toBe(1);
    expect(listed()[0]![1]).toContain('one');
  });

  test('the way back never brings what was erased: in the engines, or on this machine after a copy', async () => {
    const a = start();
    await a.record('private words', 'ann');
    const kept = await a.record('of bob', 'bob');
    const other = await a.record('of nobody');
    await until(async () => (await counts('embedded')).missing === 3);
    await a.erase('ann');
    expect(await copy('embedded')).toBe(2);
    expect(listed().map(([id]) => id)).toEqual([kept, other].toSorted());
    const local = openSampleStore(root);
    expect(local.eraseSpace('bob')).toBe(1);
    local.close();
    expect(await copy('embedded')).toBe(0);
    expect(listed().map(([id]) => id)).toEqual([other]);
    const { missing, notes } = await move('embedded').compare();
    expect(missing).toBe(0);
    expect(notes).toEqual(['1 were removed on this machine, and are not copied again.']);
  });

  test('a space that was erased in the folder just before the way back stays erased', async () => {
    const a = start();
    await a.record('private words', 'ann');
    await until(async () => (await counts('embedded')).missing === 1);
    await record(['words of here']);
    const local = openSampleStore(root);
    local.eraseSpace('ann');
    local.close();
    expect(await copy('embedded')).toBe(0);
    expect(listed().map(([, body]) => body?.includes('words of here'))).toEqual([true]);
    expect(await counts('embedded')).toMatchObject({ missing: 0 });
  });

  test('bodies that are lost are told, and keep none of the others back', async () => {
    const a = start();
    const lost = await a.record('lost words');
    const kept = await a.record('kept words');
    await until(async () => (await counts('embedded')).missing === 2);
    for (const key of await stored()) if (key.includes(lost)) await objects.remove(key, LONG);
    await expect(copy('embedded')).rejects.toThrow('the bodies of 1 cannot be read');
    expect(listed().map(([id]) => id)).toEqual([kept]);
  });
});

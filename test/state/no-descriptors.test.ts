/** State that is first used while no file descriptor is free: it stays, and it is kept again once one is. */

import { afterEach, describe, expect, jest, test } from 'bun:test';
import { existsSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RESPONSES, ResponseStore } from '../../src/features/response-store/index.ts';
import { HOPS } from '../../src/features/server-tools/index.ts';
import { SHORT_RESULTS } from '../../src/features/tool-results/index.ts';
import { KeyChanges } from '../../src/keys/key-changes.ts';
import { KeySnapshotStore } from '../../src/keys/key-snapshot-store.ts';
import { type KeySource, openKeyFile, RunTimeKeys } from '../../src/keys/run-time-keys.ts';
import { KeeperThread } from '../../src/money/keeper-handle.ts';
import { fileFolder } from '../../src/money/open-spend.ts';
import { importSample } from '../../src/samples/store/export-import.ts';
import { openIndex } from '../../src/samples/store/index-store.ts';
import { StoreMaintenance } from '../../src/samples/store/maintenance.ts';
import { DEFAULT_RETENTION } from '../../src/samples/store/retention.ts';
import { openSqlite } from '../../src/state/sql/sqlite.ts';
import { fileAt, isPassing } from '../../src/state/versioned-store.ts';
import { HAS_LIMITS, withoutDescriptors } from '../support/descriptors.ts';
import { fileRoom } from '../support/entries.ts';
import { storedRow } from '../support/stored-rows.ts';
import { until } from '../support/until.ts';

const dirs: string[] = [];
const newFolder = () => {
  const dir = mkdtempSync(join(tmpdir(), 'hopgate-descriptors-'));
  dirs.push(dir);
  return dir;
};
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

describe.skipIf(!HAS_LIMITS)('without a free descriptor', () => {
  test('nothing can be opened, and that passes', () => {
    const open = () => openSync('/dev/null', 'r');
    const thrown = withoutDescriptors(() => {
      try {
        return open();
      } catch (error) {
        return error;
      }
    });
    expect(isPassing(thrown)).toBe(true);
    expect(open()).toBeGreaterThan(2);
  });

  test.each([
    ['newest', HOPS],
    ['first', SHORT_RESULTS],
  ] as const)(
    'a ledger that keeps the %s entry goes on in memory, and then in its file',
    async (_keep, kind) => {
      const path = join(newFolder(), 'room.db');
      const told: string[] = [];
      const warn = (message: string) => told.push(message);
      const room = withoutDescriptors(() => {
        const opened = fileRoom<unknown>(kind as never, path, { warn });
        opened.it.put(['early'], { n: 1 });
        expect(opened.it.find(['early'])).toEqual({ n: 1 });
        return opened;
      });
      expect(told).toEqual([expect.stringContaining('until it can be opened')]);
      await until(() => room.it.find(['early']) !== undefined && existsSync(path));
      room.it.put(['late'], { n: 2 });
      room.close();
      const next = fileRoom<unknown>(kind as never, path, { warn });
      expect([next.it.find(['early']), next.it.find(['late'])]).toEqual([{ n: 1 }, { n: 2 }]);
      next.close();
      expect(told).toHaveLength(1);
    },
  );

  test('stored responses are written once there is one', async () => {
    const path = join(newFolder(), 'responses.db');
    const open = () => {
      const database = () => openSqlite(RESPONSES, { path, shrinks: true });
      return new ResponseStore({ database, name: path, path, flushMs: 1 });
    };
    const store = withoutDescriptors(() => {
      const opened = open();
      opened.open();
      opened.put(storedRow('resp_1'));
      return opened;
    });
    await until(() => store.persistent);
    await store.close();
    const next = open();
    const found = await next.fetch({ responses: ['resp_1'] }, '');
    expect(found.known('resp_1', '')).toBeDefined();
    await next.close();
  });

  test('the snapshot of keys is written once there is one, although no key changes', async () => {
    const folder = newFolder();
    const store = openKeyFile(join(folder, 'keys.db'));
    const changes = new KeyChanges({ place: { store, changed() {} }, routes: () => [] });
    await changes.create({ name: 'one' }, { actor: 'test' });
    const source: KeySource = {
      ...{ form: 'database', lookMs: 0, isAway: false },
      ...{ found: () => store, opened: () => store, close: () => store.close() },
    };
    const snapshot = join(folder, 'snapshot.db');
    const told: string[] = [];
    const warn = (message: string) => told.push(message);
    const keys = new RunTimeKeys({ source, snapshot, warn, pollMs: 5 });
    withoutDescriptors(() => keys.follow());
    expect(told).toEqual([expect.stringContaining(snapshot)]);
    await until(() => existsSync(snapshot));
    await keys.close();
    const written = new KeySnapshotStore(snapshot);
    expect(written.read()).toBeDefined();
    written.close();
  });

  test('the index of samples is not taken for a damaged one and removed', () => {
    const root = newFolder();
    openIndex(root).close();
    const file = fileAt(join(root, 'index.db'));
    expect(() => withoutDescriptors(() => openIndex(root))).toThrow('EMFILE');
    expect(fileAt(join(root, 'index.db'))).toBe(file);
  });

  test('samples that the index could not take are found in their files later', async () => {
    const root = newFolder();
    const now = Date.now();
    const sample = importSample(root, {
      hopgate_sample: 1,
      meta: {
        ...{ id: `req_${now}_abc123`, entry: 'openai-chat', state: 'done', time: now },
        ...{ notes: [], masked: 0, edges: [] },
      },
      files: [],
    });
    const told: string[] = [];
    jest.useFakeTimers();
    const kept = new StoreMaintenance({
      ...{ root, own: 'own', retention: () => DEFAULT_RETENTION, now: Date.now },
      ...{ onRemoved() {}, onProblem: (what: string) => told.push(what) },
    });
    try {
      withoutDescriptors(() => kept.put([sample]));
      expect(told).toEqual(['the index cannot be written']);
      jest.advanceTimersByTime(60_000);
    } finally {
      jest.useRealTimers();
    }
    const index = await until(() => existsSync(join(root, 'index.db')) && openIndex(root));
    await until(() => index.list({}).some(({ id }) => id === sample.id));
    index.close();
    await kept.close();
  });

  test('the thread that keeps spend begins without another request', async () => {
    const path = join(newFolder(), 'spend.db');
    const told: string[] = [];
    const keeper = new KeeperThread({
      ...{ path, folder: fileFolder(path), writer: 'one', hasOthers: false },
      keep: () => ({ rows: 1, totals: 1 }),
      onProblem: (message) => told.push(message),
      onRecovered: () => told.push('recovered'),
      onRefused() {},
    });
    await withoutDescriptors(() => keeper.look());
    expect(told).toEqual([expect.stringContaining('EMFILE')]);
    await until(() => existsSync(path));
    expect(told.at(-1)).toBe('recovered');
    await keeper.close(1000);
  }, 30_000);
});

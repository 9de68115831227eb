/** Finding keys: configured and made at run time, ends, blocks, other processes, unreadable files, and how work grows. */

import { Database } from 'bun:sqlite';
import { afterEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../src/config/secret.ts';
import { KeyDirectory, type KeyLookup, sha256 } from '../../src/keys/directory.ts';
import { KeyChanges } from '../../src/keys/key-changes.ts';
import type { Principal } from '../../src/keys/principal.ts';
import { fileSource, RunTimeKeys } from '../../src/keys/run-time-keys.ts';
import { isKeyText, newKeyId, newKeyText } from '../../src/keys/secret-format.ts';
import { configWith } from '../support/access.ts';
import { type GrowthCase, growthOf } from '../support/growth.ts';
import { until } from '../support/until.ts';

const folders: string[] = [];
const opened: RunTimeKeys[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
  for (const one of folders.splice(0)) rmSync(one, { recursive: true, force: true });
});

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-keys-'));
  folders.push(folder);
  return join(folder, 'state', 'keys.db');
}

function keysAt(path: string, more: Record<string, unknown> = {}) {
  const warnings: string[] = [];
  const source = fileSource(path, (message) => warnings.push(message));
  const runTime = new RunTimeKeys({ source, warn: (message) => warnings.push(message) });
  opened.push(runTime);
  const config = configWith({ auth: { admin_keys: ['an-admin-key-1'] }, ...more });
  const directory = new KeyDirectory(config, runTime);
  const changes = new KeyChanges({
    place: runTime,
    routes: () => config.routes.map(({ name }) => name),
  });
  const find = async (key: string, now = Date.now()): Promise<KeyLookup> =>
    directory.find(key, sha256(key), now);
  return { source, runTime, changes, find, warnings };
}

const request = { actor: 'admin:test' };
const idOf = (found: unknown) => (found as Principal).id ?? found;

test('a file that is removed is told once; its keys work until one is made, which is kept', async () => {
  const path = newPath();
  const { changes, find, runTime, warnings } = keysAt(path);
  const { key, view } = await changes.create({ name: 'old' }, request);
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
  await runTime.refresh();
  await runTime.refresh();
  expect(warnings).toEqual([`${path}: the file was removed while it was in use`]);
  expect(await find(key)).toMatchObject({ id: view.id });
  const { key: made } = await changes.create({ name: 'new' }, request);
  const restarted = keysAt(path);
  expect(await restarted.find(made)).toMatchObject({ policy: expect.anything() });
  expect(await restarted.find(key)).toBe('unknown');
  expect(warnings).toHaveLength(1);
});

describe('a key made at run time', () => {
  test('is found at once where it was made, with what it may use', async () => {
    const { changes, find } = keysAt(newPath(), {
      budgets: [{ name: 'web', keys: { team: 'web' }, usd: 200, per: 'month' }],
    });
    const { key, view } = await changes.create(
      {
        name: 'ci',
        labels: { team: 'web' },
        models: ['glm/*'],
        limits: { requests_per_minute: 60 },
        budgets: [{ usd: 20, per: 'day' }],
      },
      request,
    );
    const found = (await find(key)) as Principal;
    expect(found).toMatchObject({
      id: view.id,
      name: 'ci',
      sees: 'own',
      labels: { team: 'web' },
      limits: { requestsPerMinute: 60 },
    });
    expect(found.budgets.map(({ id, nanoUsd }) => [id, nanoUsd])).toEqual([
      [`key:${view.id}/per day`, 20e9],
      ['budget:web', 200e9],
    ]);
    expect(found.policy.allowsModel('glm/glm-5')).toBe(true);
    expect(await find(key)).toBe(found);
  });

  test('a key of another process is found when it is first shown, and its block is seen', async () => {
    const path = newPath();
    const one = keysAt(path);
    const other = keysAt(path);
    const { key, view } = await one.changes.create({ name: 'a' }, request);
    expect(idOf(await other.find(key))).toBe(view.id);
    await one.changes.update(view.id, { blocked: true }, request);
    expect(await one.find(key)).toBe('blocked');
    await other.runTime.refresh();
    expect(await other.find(key)).toBe('blocked');
    await one.changes.revoke(view.id, request);
    expect(await one.find(key)).toBe('unknown');
    await other.runTime.refresh();
    expect(await other.find(key)).toBe('unknown');
  });

  test('the change of another process is seen without any request', async () => {
    const path = newPath();
    const one = keysAt(path);
    const other = keysAt(path);
    const { key, view } = await one.changes.create({ name: 'a' }, request);
    other.runTime.follow();
    expect(idOf(await other.find(key))).toBe(view.id);
    await one.changes.revoke(view.id, request);
    await until(async () => (await other.find(key)) === 'unknown');
  }, 60_000);

  test('rotation keeps the id; the old secret works until its grace is over', async () => {
    const { changes, find } = keysAt(newPath());
    const { key: old, view } = await changes.create({ name: 'a' }, request);
    const before = Date.now();
    const { key } = await changes.rotate(view.id, { grace: 60 }, request);
    expect([idOf(await find(old)), idOf(await find(key))]).toEqual([view.id, view.id]);
    expect(await find(old, before + 61_000)).toBe('expired');
    expect(idOf(await find(key, before + 61_000))).toBe(view.id);
    const again = await changes.rotate(view.id, { grace: 0 }, request);
    expect([await find(old), await find(key), idOf(await find(again.key))]).toEqual([
      'unknown',
      'unknown',
      view.id,
    ]);
  });

  test('ends by its own clock', async () => {
    const { changes, find } = keysAt(newPath());
    const { key, view } = await changes.create({ name: 'a', expires: '2030-01-02' }, request);
    expect(idOf(await find(key, Date.UTC(2030, 0, 1, 23, 59, 59)))).toBe(view.id);
    expect(await find(key, Date.UTC(2030, 0, 2))).toBe('expired');
  });

  test('a file that another process has locked refuses a change whole, and known keys go on', async () => {
    const path = newPath();
    const { changes, find, runTime } = keysAt(path);
    const { key, view } = await changes.create({ name: 'a' }, request);
    const other = new Database(path);
    other.run('BEGIN IMMEDIATE');
    const refused = async (work: () => Promise<unknown>) =>
      expect(await work().then(String, String)).toContain('cannot be used now');
    await refused(async () => await changes.create({ name: 'b' }, request));
    await refused(async () => await changes.rotate(view.id, {}, request));
    await runTime.refresh();
    expect(idOf(await find(key))).toBe(view.id);
    other.run('ROLLBACK');
    other.close();
    const { keys } = await changes.list({ limit: 10, revoked: true });
    expect(keys.map(({ name }) => name)).toEqual(['a']);
    expect(await changes.verifyAudit()).toMatchObject({ count: 1, fault: undefined });
    const { key: later } = await changes.create({ name: 'b' }, request);
    expect(idOf(await find(later))).toMatch(/^hk_/);
  });

  test('an unreadable file refuses what it may hold, and keeps what is known', async () => {
    const path = newPath();
    const { changes, find, runTime, source, warnings } = keysAt(path);
    const { key, view } = await changes.create({ name: 'a' }, request);
    // Opened again with the next look.
    source.close();
    await Bun.write(path, 'this is no database at all, but a text of some length'.repeat(100));
    expect(idOf(await find(key))).toBe(view.id);
    const other = newKeyText(newKeyId());
    await runTime.refresh();
    expect(await find(other)).toBe('unreadable');
    expect(await find('sk-not-ours')).toBe('unknown');
    expect(warnings).toHaveLength(1);
  });
});

test('a configured key has its end, and keys of one name may do what all of them may', async () => {
  const { find } = keysAt(newPath(), {
    auth: {
      keys: [
        { name: 'x', key: 'first-key-of-x', models: ['a*'], expires: '2030-01-01' },
        { name: 'x', key: 'second-key-of-x', models: ['*b'], limits: { concurrent: 3 } },
      ],
    },
  });
  const found = (await find('second-key-of-x', Date.UTC(2031, 0, 1))) as Principal;
  expect(await find('first-key-of-x', Date.UTC(2031, 0, 1))).toBe('expired');
  expect(['ab', 'a', 'b'].map((name) => found.policy.allowsModel(name))).toEqual([
    true,
    false,
    false,
  ]);
  expect(found.limits).toEqual({ concurrent: 3 });
});

test('a wrong character or two swapped ones are seen in the form alone', async () => {
  for (let i = 0; i < 200; i++) {
    const key = newKeyText(newKeyId());
    expect(isKeyText(key)).toBe(true);
    const at = 4 + (i % (key.length - 5));
    if (key[at] === '_') continue;
    const other = key[at] === 'a' ? 'b' : 'a';
    expect(isKeyText(key.slice(0, at) + other + key.slice(at + 1))).toBe(false);
  }
});

test('a lookup takes no longer with 20,000 keys than with a few', async () => {
  const made = new Map<number, ReturnType<typeof directoryOf>>();
  const lookups = {
    name: 'lookups',
    most: 20_000,
    input: (size) => {
      const known = made.get(size) ?? directoryOf(size);
      made.set(size, known);
      return known;
    },
    run: ({ directory, presented }) => {
      for (let i = 0; i < 2000; i++) {
        const [key, digest] = presented[i % presented.length]!;
        if (typeof directory.find(key, digest, 0) === 'string') throw new Error('not found');
      }
    },
  } satisfies GrowthCase<ReturnType<typeof directoryOf>>;
  expect((await growthOf(lookups, 0.5)).exponent).toBeLessThan(0.5);
}, 120_000);

function directoryOf(size: number) {
  const settings = { labels: {}, limits: {}, budgets: [] };
  const keys = Array.from({ length: size }, (_, n) => ({
    ...settings,
    name: `k${n}`,
    key: new Secret(`key-number-${n}-of-many`),
    sees: 'own' as const,
  }));
  const directory = new KeyDirectory({ auth: { keys }, budgets: [], routes: [] }, undefined);
  const some = keys.filter((_, n) => n % Math.ceil(size / 100) === 0);
  const presented = some.map(({ key }) => [key.reveal(), sha256(key.reveal())] as const);
  return { directory, presented };
}

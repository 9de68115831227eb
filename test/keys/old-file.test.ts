/** A file of keys of the first schema: nothing of it is lost when it is opened, or only looked at. */

import { afterEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BEGINNING, type KeyStore, RequestReused } from '../../src/keys/key-store.ts';
import { keyFileToRead } from '../../src/keys/move.ts';
import { openKeyFile } from '../../src/keys/run-time-keys.ts';
import { copyOldFile } from '../support/old-files.ts';

const folders: string[] = [];
afterEach(() => {
  for (const one of folders.splice(0)) rmSync(one, { recursive: true, force: true });
});
function oldPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-old-keys-'));
  folders.push(folder);
  const path = join(folder, 'keys.db');
  copyOldFile('keys-1', path);
  return path;
}

async function expectAll(store: KeyStore): Promise<void> {
  const keys = await store.list({ limit: 10, revoked: true });
  expect(keys.map(({ name, version, blocked }) => [name, version, blocked])).toEqual([
    ['ci', 3, false],
    ['blocked', 1, true],
    ['gone', 2, false],
  ]);
  const [ci, blocked, gone] = await Promise.all(keys.map(({ id }) => store.get(id)));
  expect(ci!.record.settings).toMatchObject({
    labels: { team: 'web' },
    models: ['glm/*'],
    limits: { requests_per_minute: 60 },
  });
  expect(ci!.secrets.map(({ key, until }) => [key, until !== undefined]).sort()).toEqual([
    [ci!.record.id, false],
    [ci!.record.id, true],
  ]);
  expect(blocked!.secrets).toHaveLength(1);
  expect([gone!.secrets, gone!.record.revoked]).toEqual([[], gone!.record.updated]);
  expect(await store.verifyAudit()).toMatchObject({ count: 7, fault: undefined });
  const news = (await store.news(BEGINNING, 1000))!;
  expect(news.keys.map(({ record }) => record.name)).toEqual(['blocked', 'gone', 'ci']);
  expect(await store.news(news.position, 1000)).toBeUndefined();
}

describe('a file of keys of the first schema', () => {
  test('has all its keys, secrets and entries, and takes changes', async () => {
    const path = oldPath();
    const store = openKeyFile(path);
    await expectAll(store);
    const known = (await store.news(BEGINNING, 1000))!.position;
    const [first] = await store.list({ limit: 1, revoked: false });
    const audit = { time: 1, actor: 'x', action: 'key.update', before: null, after: null };
    await store.change(first!.id, (now) => ({ record: { ...now!.record, name: 'new' }, audit }));
    const news = (await store.news(known, 1000))!;
    expect([news.whole, news.keys.map(({ record }) => record.name)]).toEqual([false, ['new']]);
    expect(news.keys[0]!.secrets).toHaveLength(2);
    store.close();
    const backup = keyFileToRead(`${path}.v1.backup`);
    expect(backup).toBeDefined();
    backup!.close();
  });

  test('knows the requests that were answered before', async () => {
    const store = openKeyFile(oldPath());
    const plan = () => {
      throw new Error('it is planned anew');
    };
    // The digests of the fixture's own request.
    const key = new Bun.CryptoHasher('sha256').update('["admin:fixture","once"]').digest('hex');
    const again = store.change('hk_other', plan, { key, body: 'another request' });
    await expect(again).rejects.toThrow(RequestReused);
    store.close();
  });

  test('stays as it is where it is only looked at', async () => {
    const path = oldPath();
    const bytes = readFileSync(path);
    const store = keyFileToRead(path)!;
    await expectAll(store);
    store.close();
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });
});

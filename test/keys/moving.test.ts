/** Keys and their audit between the file of a machine and a real Postgres: who wins, what is written, and what a cut leaves. */

import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hexOf, sha256 } from '../../src/keys/directory.ts';
import { KeyChanges } from '../../src/keys/key-changes.ts';
import type { KeyStore } from '../../src/keys/key-store.ts';
import { auditMove, keysMove } from '../../src/keys/move.ts';
import { keysInDatabase, openKeyFile } from '../../src/keys/run-time-keys.ts';
import type { Sql } from '../../src/state/engines/engine.ts';
import type { MoveDirection } from '../../src/state/move/paged-move.ts';
import { HAS_POSTGRES } from '../support/engines/database-servers.ts';
import { cutAt, dumpOf, filesIn, moveSetup } from '../support/moves.ts';

const actor = 'local:test';
const by = { actor };

describe.skipIf(!HAS_POSTGRES)('moving keys', () => {
  const { emptyDatabase, newFolder, afterTest } = moveSetup();

  /** A machine with its file; nothing is there before the first change. */
  function machine() {
    const folder = newFolder();
    const path = join(folder, 'keys.db');
    let store: KeyStore | undefined;
    const opened = () => {
      store ??= openKeyFile(path);
      return store;
    };
    const close = () => {
      store?.close();
      store = undefined;
    };
    afterTest(close);
    return { folder, path, close, opened };
  }
  const changesOf = (store: KeyStore) =>
    new KeyChanges({ place: { store, changed: () => {} }, routes: () => [] });
  const moves = (database: Sql, path: string, to: MoveDirection) => {
    const options = { database, cache: undefined, path, to, actor };
    return { keys: keysMove(options), audit: auditMove(options) };
  };
  async function run(database: Sql, path: string, to: MoveDirection) {
    const { keys, audit } = moves(database, path, to);
    return [await keys.copy(() => {}), await audit.copy(() => {})];
  }
  const all = async (store: KeyStore) =>
    (await store.page('', 1000)).map(({ record, secrets }) => ({
      record,
      secrets: secrets.toSorted((a, b) => (a.digest < b.digest ? -1 : 1)),
    }));
  const actionsOf = async (store: KeyStore) =>
    (await store.audit({ limit: 1000 })).map(({ action }) => action).reverse();

  test('keys come with their secrets, settings and ends, once, and the chain of the machine is vouched for', async () => {
    const database = await emptyDatabase();
    const { path, close, opened, folder } = machine();
    const here = changesOf(opened());
    const a = await here.create({ name: 'a', labels: { team: 'x' }, models: ['m'] }, by);
    await here.rotate(a.view.id, { grace: 3600 }, by);
    const b = await here.create({ name: 'b', blocked: true }, by);
    await here.revoke((await here.create({ name: 'c' }, by)).view.id, by);
    const before = await all(opened());
    const chain = await opened().verifyAudit();
    close();

    const { keys, audit } = moves(database, path, 'engines');
    const files = filesIn(folder);
    expect(await keys.compare()).toMatchObject({ items: 3, missing: 3, conflicts: 0 });
    expect(await audit.compare()).toMatchObject({ items: 5, missing: 5, conflicts: 0 });
    // A look writes nothing, not even a table.
    expect(await dumpOf(database)).toBe('');
    expect(filesIn(folder)).toEqual(files);

    expect(await run(database, path, 'engines')).toEqual([3, 5]);
    const shared = keysInDatabase(database);
    expect(await all(shared)).toEqual(before);
    const dump = await dumpOf(database);
    expect(await keys.compare()).toMatchObject({ items: 3, missing: 0, conflicts: 0 });
    expect(await audit.compare()).toMatchObject({ items: 5, missing: 0 });
    expect(await run(database, path, 'engines')).toEqual([0, 0]);
    expect(await dumpOf(database)).toBe(dump);
    expect(filesIn(folder)).toEqual(files);

    expect(await actionsOf(shared)).toEqual([
      ...['key.import', 'key.import', 'key.import'],
      'audit.import',
    ]);
    const [note] = await shared.audit({ limit: 1 });
    expect(note).toMatchObject({ actor, after: { from: 'file', entries: 5, head: chain.head } });
    expect((await shared.verifyAudit()).fault).toBeUndefined();
    // The secret works, and no text of one is anywhere.
    const news = await shared.news({ seq: 0, hash: '' }, 5000);
    const digests = news!.keys.flatMap(({ secrets }) => secrets.map(({ digest }) => digest));
    expect(digests).toContain(hexOf(sha256(b.key)));
    expect(dump).not.toContain(b.key);
    // An entry about no key is no news for ever.
    expect(await shared.news(news!.position, 5000)).toBeUndefined();
  });

  test('the newer one of a key wins, a revocation always, and what nobody can decide stays and is named', async () => {
    const database = await emptyDatabase();
    const { path, opened } = machine();
    const here = changesOf(opened());
    const names = ['same', 'newer here', 'newer there', 'revoked here', 'revoked there', 'both'];
    const ids: Record<string, string> = {};
    for (const name of names) ids[name] = (await here.create({ name }, by)).view.id;
    await run(database, path, 'engines');
    const shared = keysInDatabase(database);
    const there = changesOf(shared);
    const id = (name: string) => ids[name]!;

    await here.update(id('newer here'), { blocked: true }, by);
    const rotated = await here.rotate(id('newer here'), {}, by);
    await there.update(id('newer there'), { blocked: true }, by);
    await here.revoke(id('revoked here'), by);
    // The greater version on the other side does not bring it to life again.
    for (let i = 0; i < 3; i++)
      await there.update(id('revoked here'), { labels: { n: `${i}` } }, by);
    await there.revoke(id('revoked there'), by);
    for (let i = 0; i < 3; i++)
      await here.update(id('revoked there'), { labels: { n: `${i}` } }, by);
    await here.update(id('both'), { labels: { at: 'here' } }, by);
    await there.update(id('both'), { labels: { at: 'there' } }, by);

    const { keys } = moves(database, path, 'engines');
    const comparison = await keys.compare();
    expect(comparison).toMatchObject({ items: 6, missing: 2, conflicts: 1 });
    expect(comparison.notes!.join()).toContain(id('both'));
    expect(await keys.copy(() => {})).toBe(2);
    expect(await keys.compare()).toMatchObject({ missing: 0, conflicts: 1 });

    const newer = await shared.get(id('newer here'));
    expect(newer).toEqual(await opened().get(id('newer here')));
    expect(newer!.secrets.map(({ digest }) => digest)).toContain(hexOf(sha256(rotated.key)));
    expect((await shared.get(id('newer there')))!.record.blocked).toBe(true);
    const revoked = (await shared.get(id('revoked here')))!;
    expect(revoked.record.revoked).toBe((await opened().get(id('revoked here')))!.record.revoked!);
    expect(revoked.record.settings.labels).toEqual({ n: '2' });
    expect(revoked.secrets).toEqual([]);
    expect((await shared.get(id('revoked there')))!.record.revoked).toBeDefined();
    expect((await shared.get(id('both')))!.record.settings.labels).toEqual({ at: 'there' });
    const [entry] = await shared.audit({ target: id('newer here'), limit: 1 });
    expect(entry).toMatchObject({ before: { version: 1 }, after: { version: 3, blocked: true } });

    // The way back takes the rest.
    const back = moves(database, path, 'embedded').keys;
    expect(await back.copy(() => {})).toBe(3);
    expect((await opened().get(id('newer there')))!.record.blocked).toBe(true);
    expect((await opened().get(id('revoked there')))!.record.revoked).toBeDefined();
    expect(await back.compare()).toMatchObject({ missing: 0, conflicts: 1 });
    // What had been changed here beside the revocation there.
    expect(await keys.copy(() => {})).toBe(1);
    expect(await keys.compare()).toMatchObject({ missing: 0, conflicts: 1 });
    expect(await back.compare()).toMatchObject({ missing: 0, conflicts: 1 });
    expect((await opened().verifyAudit()).fault).toBeUndefined();
  });

  test('what a cut leaves is finished by the next copy, and nothing is written twice', async () => {
    for (const when of ['before', 'after'] as const) {
      const database = await emptyDatabase();
      const { path, opened } = machine();
      const here = changesOf(opened());
      for (let i = 0; i < 30; i++) await here.create({ name: `k${i}` }, by);
      // The first transaction makes the tables.
      for (const at of [1, 2, 9, 15]) {
        const cut = keysMove({
          ...{ database: cutAt(database, at, when), cache: undefined },
          path,
          to: 'engines',
          actor,
        });
        await expect(cut.copy(() => {})).rejects.toThrow('cut');
      }
      await run(database, path, 'engines');
      const shared = keysInDatabase(database);
      expect(await all(shared)).toEqual(await all(opened()));
      const actions = await actionsOf(shared);
      expect(actions.filter((one) => one === 'key.import')).toHaveLength(30);
      expect((await shared.verifyAudit()).fault).toBeUndefined();
    }
  });

  test('several machines bring their keys, all go back into a file that was not there, and the ways come to rest', async () => {
    const database = await emptyDatabase();
    const machines = [machine(), machine()];
    for (const [n, { path, opened }] of machines.entries()) {
      for (let i = 0; i < 3; i++) await changesOf(opened()).create({ name: `m${n}-${i}` }, by);
      expect(await run(database, path, 'engines')).toEqual([3, 3]);
    }
    const third = machine();
    const back = moves(database, third.path, 'embedded');
    expect(await back.keys.compare()).toMatchObject({ items: 6, missing: 6 });
    expect(await back.audit.compare()).toMatchObject({ items: 8, missing: 8 });
    expect(existsSync(third.path)).toBe(false);
    expect(await run(database, third.path, 'embedded')).toEqual([6, 8]);
    expect(await all(third.opened())).toEqual(await all(keysInDatabase(database)));
    expect(await run(database, third.path, 'embedded')).toEqual([0, 0]);
    // Its own changes go there once more; then there is nothing to tell on either way.
    await changesOf(third.opened()).create({ name: 'new' }, by);
    await run(database, third.path, 'engines');
    await run(database, third.path, 'embedded');
    await run(database, third.path, 'engines');
    expect(await run(database, third.path, 'embedded')).toEqual([0, 0]);
    expect(await run(database, third.path, 'engines')).toEqual([0, 0]);
    expect((await keysInDatabase(database).verifyAudit()).fault).toBeUndefined();
    expect((await third.opened().verifyAudit()).fault).toBeUndefined();
  });

  test('an audit that was changed, or is another one than before, is not vouched for', async () => {
    const database = await emptyDatabase();
    const first = machine();
    const here = changesOf(first.opened());
    for (let i = 0; i < 3; i++) await here.create({ name: `k${i}` }, by);
    await run(database, first.path, 'engines');
    first.close();
    const raw = new Database(first.path);
    afterTest(() => raw.close());
    raw.run('DROP TRIGGER audit_no_update');
    raw.run('DROP TRIGGER audit_no_delete');
    const audit = moves(database, first.path, 'engines').audit;
    // The last entry goes, and the note of the end with it: whole in itself.
    raw.run('DELETE FROM audit WHERE seq = 3');
    raw.run('DELETE FROM keys WHERE id NOT IN (SELECT target FROM audit)');
    raw.run('UPDATE audit_head SET seq = 2, hash = (SELECT hash FROM audit WHERE seq = 2)');
    await expect(audit.compare()).rejects.toThrow('not the one that the other side knows');
    raw.run("UPDATE audit SET actor = 'nobody' WHERE seq = 2");
    await expect(audit.compare()).rejects.toThrow('entry 2 was changed');
    await expect(audit.copy(() => {})).rejects.toThrow('entry 2 was changed');
  });

  test('changes while keys are copied are neither lost nor undone', async () => {
    const database = await emptyDatabase();
    const { path, opened } = machine();
    const here = changesOf(opened());
    const ids: string[] = [];
    for (let i = 0; i < 40; i++) ids.push((await here.create({ name: `k${i}` }, by)).view.id);
    const shared = keysInDatabase(database);
    const there = changesOf(shared);
    const copying = run(database, path, 'engines');
    for (const [i, id] of ids.entries()) {
      if (i % 4 === 0) await here.revoke(id, by);
      if (i % 4 === 1) await there.revoke(id, by).catch(() => here.revoke(id, by));
      if (i % 4 === 2) await here.update(id, { blocked: true }, by);
    }
    await copying;
    await run(database, path, 'engines');
    await run(database, path, 'embedded');
    const [ours, theirs] = [await all(opened()), await all(shared)];
    expect(ours).toEqual(theirs);
    const states = new Map(ours.map(({ record }) => [record.id, record]));
    ids.forEach((id, i) => {
      expect(states.get(id)!.revoked !== undefined).toBe(i % 4 < 2);
      expect(states.get(id)!.blocked).toBe(i % 4 === 2);
    });
    expect((await shared.verifyAudit()).fault).toBeUndefined();
  });

  test('a file that is broken or newer is told, and one that is missing or empty has no keys', async () => {
    const database = await emptyDatabase();
    const { folder, path } = machine();
    const compare = () => moves(database, path, 'engines').keys.compare();
    expect(await compare()).toEqual({ items: 0, missing: 0, conflicts: 0 });
    expect(await run(database, path, 'engines')).toEqual([0, 0]);
    mkdirSync(folder, { recursive: true });
    writeFileSync(path, '');
    expect(await compare()).toEqual({ items: 0, missing: 0, conflicts: 0 });
    writeFileSync(path, 'no database, but long enough to be looked at as one'.repeat(100));
    await expect(compare()).rejects.toThrow(`${path} cannot be read`);
    rmSync(path);
    const newer = new Database(path);
    newer.run('PRAGMA user_version = 99');
    newer.close();
    await expect(compare()).rejects.toThrow('a newer version of hopgate made it');
  });
});

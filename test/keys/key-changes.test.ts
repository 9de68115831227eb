/** Changes of keys: what is refused, versions, repeated requests, and an audit that shows every forgery. */

import { Database } from 'bun:sqlite';
import { afterEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GatewayError } from '../../src/conversation/errors.ts';
import { KeyChanges } from '../../src/keys/key-changes.ts';
import { KeyStore } from '../../src/keys/key-store.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const one of cleanups.splice(0).reverse()) one();
});

function setUp(now?: () => number) {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-changes-'));
  const path = join(folder, 'keys.db');
  const store = new KeyStore(path);
  cleanups.push(
    () => rmSync(folder, { recursive: true, force: true }),
    () => store.close(),
  );
  const changes = new KeyChanges({
    file: { store, changed: () => {} },
    routes: () => ['cheap'],
    ...(now !== undefined && { now }),
  });
  return { changes, path, store };
}

const request = { actor: 'admin:test' };

function refusal(work: () => unknown): GatewayError {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
    throw thrown;
  }
  throw new Error('nothing was refused');
}

describe('what is refused, by name', () => {
  test.each<[JsonObject, string]>([
    [{}, 'name'],
    [{ name: 'x', model: ['a'] }, 'model'],
    [{ name: 'x', limits: { rpm: 3 } }, 'limits.rpm'],
    [{ name: 'x', limits: { concurrent: 0 } }, 'limits.concurrent'],
    [{ name: 'x', labels: { team: 3 } }, 'labels.team'],
    [{ name: 'x', expires: '2027-02-31' }, 'expires'],
    [{ name: 'x', expires: '2027-01-01T10:00:00' }, 'expires'],
    [{ name: 'x', budgets: [{ usd: -1, per: 'day' }] }, 'budgets[0].usd'],
    [{ name: 'x', budgets: [{ usd: 1, per: 'decade' }] }, 'budgets[0].per'],
    [{ name: 'x', budgets: [{ usd: 1, per: 'day', over: 'dear' }] }, 'budgets[0].over'],
    [
      { name: 'x', budgets: [{ usd: 1, per: 'day', time_zone: 'Mars/Base' }] },
      'budgets[0].time_zone',
    ],
    [{ name: 'x\u0000' }, 'name'],
    [{ name: 'x', models: 'glm/*' }, 'models'],
    [{ name: 'x', id: 'hk_mine' }, 'id'],
  ])('%j: %s', (body, param) => {
    const { changes, store } = setUp();
    const error = refusal(() => changes.create(body, request));
    expect([error.status, error.message]).toEqual([400, expect.stringContaining(param)]);
    expect(store.changesSince(0).keys).toEqual([]);
    expect(changes.audit({ limit: 10 })).toEqual([]);
  });

  test('a route that there is may stand where a budget is spent', () => {
    const budgets = [{ usd: 1, per: 'day', over: 'cheap' }];
    expect(setUp().changes.create({ name: 'x', budgets }, request).view.name).toBe('x');
  });
});

test('a change takes the members that it names; null takes one away', () => {
  const { changes } = setUp();
  const { view } = changes.create({ name: 'x', models: ['a'], labels: { team: 'web' } }, request);
  const changed = changes.update(view.id, { models: null, blocked: true }, request);
  expect(changed).toMatchObject({ version: 2, name: 'x', blocked: true, labels: { team: 'web' } });
  expect(changed.models).toBeUndefined();
});

test('a version that is not the newest, a key that is gone and one that is revoked are refused', () => {
  const { changes } = setUp();
  const { view } = changes.create({ name: 'x' }, request);
  changes.update(view.id, { name: 'y' }, { ...request, version: 1 });
  const stale = { ...request, version: 1 };
  expect(refusal(() => changes.update(view.id, {}, stale)).status).toBe(412);
  expect(refusal(() => changes.revoke(view.id, stale)).status).toBe(412);
  expect(refusal(() => changes.rotate(view.id, {}, stale)).status).toBe(412);
  expect(refusal(() => changes.update('hk_none', {}, request)).status).toBe(404);
  changes.revoke(view.id, request);
  expect(refusal(() => changes.rotate(view.id, {}, request)).code).toBe('key_revoked');
  expect(changes.list({ limit: 10, revoked: false }).keys).toEqual([]);
  expect(changes.list({ limit: 10, revoked: true }).keys).toHaveLength(1);
});

test('pages follow each other without a gap, also within one millisecond', () => {
  const { changes } = setUp(() => 1000);
  const made = Array.from(
    { length: 7 },
    (_, n) => changes.create({ name: `k${n}` }, request).view.id,
  );
  const seen: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = changes.list({ after, limit: 3, revoked: false });
    seen.push(...page.keys.map(({ id }) => id));
    if (page.next === undefined) break;
    after = page.next;
  }
  expect(seen).toEqual(made.toSorted());
});

test('the same Idempotency-Key gives the same key, and no other request', () => {
  let now = 1_000_000;
  const { changes } = setUp(() => now);
  const marked = { ...request, idempotencyKey: 'one' };
  const first = changes.create({ name: 'x' }, marked);
  expect(changes.create({ name: 'x' }, marked)).toEqual(first);
  expect(changes.create({ name: 'x' }, { ...marked, actor: 'admin:other' }).view.id).not.toBe(
    first.view.id,
  );
  expect(refusal(() => changes.create({ name: 'y' }, marked)).code).toBe('idempotency_key_reused');
  now += 11 * 60_000;
  // The secret is in no memory and on no disk any more.
  expect(refusal(() => changes.create({ name: 'x' }, marked)).code).toBe('already_issued');
  expect(changes.list({ limit: 10, revoked: true }).keys).toHaveLength(2);
});

test('no secret is in the file', () => {
  const { changes, path, store } = setUp();
  const first = changes.create({ name: 'x' }, { ...request, idempotencyKey: 'k' });
  const second = changes.rotate(first.view.id, {}, request);
  store.close();
  const bytes = readFileSync(path, 'latin1');
  for (const { key } of [first, second]) {
    expect(bytes).toContain(first.view.id);
    expect(bytes).not.toContain(key.slice(-44));
  }
  cleanups.pop();
});

describe('the audit', () => {
  function written() {
    const { changes, path } = setUp();
    const { view } = changes.create({ name: 'a' }, request);
    changes.update(view.id, { name: 'b' }, request);
    changes.rotate(view.id, {}, request);
    changes.revoke(view.id, request);
    return { changes, path, id: view.id };
  }

  test('says who did what to which key, before and after', () => {
    const { changes, id } = written();
    const entries = changes.audit({ limit: 10 });
    expect(entries.map(({ seq, action }) => [seq, action])).toEqual([
      [4, 'key.revoke'],
      [3, 'key.rotate'],
      [2, 'key.update'],
      [1, 'key.create'],
    ]);
    expect(entries[2]).toMatchObject({
      actor: 'admin:test',
      target: id,
      before: { name: 'a' },
      after: { name: 'b' },
    });
    expect(changes.verifyAudit()).toMatchObject({ count: 4, fault: undefined });
    expect(changes.audit({ limit: 1, before: 3 }).map(({ seq }) => seq)).toEqual([2]);
  });

  const OPEN = 'DROP TRIGGER audit_no_update; DROP TRIGGER audit_no_delete;';

  test.each([
    ['a name after the change', `UPDATE audit SET after = '{"name":"c"}' WHERE seq = 2`, 2],
    ['who did it', `UPDATE audit SET actor = 'admin:other' WHERE seq = 3`, 3],
    ['when', 'UPDATE audit SET time = time + 1 WHERE seq = 1', 1],
    ['a hash', `UPDATE audit SET hash = 'x' WHERE seq = 2`, 2],
    ['an entry that is gone', 'DELETE FROM audit WHERE seq = 2', 2],
    ['the first that is gone', 'DELETE FROM audit WHERE seq = 1', 1],
    ['the last that is gone', 'DELETE FROM audit WHERE seq = 4', 4],
    [
      'two that changed places',
      'UPDATE audit SET seq = 99 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 99',
      2,
    ],
    ['all that are gone', 'DELETE FROM audit', 1],
  ])('finds %s', (_, forgery, seq) => {
    const { changes, path } = written();
    const forger = new Database(path);
    forger.run(OPEN);
    forger.run(forgery);
    forger.close();
    expect(changes.verifyAudit().fault?.seq).toBe(seq);
  });

  test('an entry cannot be changed or removed by mistake', () => {
    const { path } = written();
    const other = new Database(path);
    expect(() => other.run("UPDATE audit SET actor = 'x'")).toThrow('never changed');
    expect(() => other.run('DELETE FROM audit')).toThrow('never removed');
    other.close();
  });

  test('a change that cannot be written leaves no entry, and an entry that cannot be written no change', () => {
    const { changes, path } = setUp();
    const forger = new Database(path);
    forger.run(
      "CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'disk full'); END",
    );
    expect(refusal(() => changes.create({ name: 'x' }, request)).status).toBe(503);
    expect(changes.list({ limit: 10, revoked: true }).keys).toEqual([]);
    forger.run('DROP TRIGGER full');
    forger.close();
    changes.create({ name: 'x' }, request);
    expect(changes.verifyAudit()).toMatchObject({ count: 1, fault: undefined });
  });
});

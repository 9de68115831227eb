/** Changes of keys, in a file and in Postgres: what is refused, versions, repeated requests, and an audit that shows every forgery. */

import { Database } from 'bun:sqlite';
import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GatewayError } from '../../src/conversation/errors.ts';
import { KeyChanges } from '../../src/keys/key-changes.ts';
import type { KeyStore } from '../../src/keys/key-store.ts';
import { keysInDatabase, openKeyFile } from '../../src/keys/run-time-keys.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  newDatabase,
  startPostgres,
} from '../support/engines/database-servers.ts';

setDefaultTimeout(60_000);

/** A store of its own for one test, and a way around it. */
interface Place {
  readonly store: KeyStore;
  /** All that is kept, as text. */
  content(): Promise<string>;
  /** Statements on the table `audit`, which its guards do not keep. */
  forge(statements: readonly string[]): Promise<void>;
  /** Statements that the guards must refuse; the message of the error. */
  mistake(statement: string): Promise<string>;
  /** The statement that gives a key one more secret. */
  addSecret(id: string): string;
  /** From now on no audit entry can be written, until the result is called. */
  fill(): Promise<() => Promise<void>>;
}

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const one of cleanups.splice(0).reverse()) await one();
});

const messageOf = (thrown: unknown) => (thrown as Error).message;

const SECRET = 'a secret';

async function filePlace(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-changes-'));
  const path = join(folder, 'keys.db');
  const store = openKeyFile(path);
  const forger = new Database(path);
  cleanups.push(
    () => rmSync(folder, { recursive: true, force: true }),
    () => store.close(),
    () => forger.close(),
  );
  return {
    store,
    async content() {
      forger.run('PRAGMA wal_checkpoint(TRUNCATE)');
      return readFileSync(path, 'latin1');
    },
    async forge(statements) {
      forger.run('DROP TRIGGER audit_no_update; DROP TRIGGER audit_no_delete;');
      for (const one of statements) forger.run(one);
    },
    async mistake(statement) {
      try {
        forger.run(statement);
        return '';
      } catch (thrown) {
        return messageOf(thrown);
      }
    },
    addSecret: (id) =>
      `UPDATE keys SET secrets = '[{"digest":"${'a'.repeat(64)}","created":1,"until":null}]' WHERE id = '${id}'`,
    async fill() {
      forger.run(
        "CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'disk full'); END",
      );
      return async () => void forger.run('DROP TRIGGER full');
    },
  };
}

let server: DatabaseServer | undefined;
beforeAll(async () => {
  if (HAS_POSTGRES) server = await startPostgres();
});
afterAll(() => server?.stop());

async function sharedPlace(): Promise<Place> {
  const { database } = await newDatabase(server!);
  cleanups.push(() => database.close());
  const run = (sql: string) => database.query(sql, [], 10_000);
  const onTable = (sql: string) =>
    sql.replace(/\baudit\b/, 'hopgate.audit').replace(/(?<=FROM |UPDATE )keys\b/, 'hopgate.keys');
  return {
    store: keysInDatabase(database),
    async content() {
      const tables = ['keys', 'key_requests', 'audit', 'audit_head'];
      const rows = await Promise.all(tables.map((name) => run(`SELECT * FROM hopgate.${name}`)));
      return JSON.stringify(rows);
    },
    async forge(statements) {
      await run('DROP TRIGGER keep_audit ON hopgate.audit');
      for (const one of statements) await run(onTable(one));
    },
    mistake: (statement) => run(onTable(statement)).then(() => '', messageOf),
    addSecret: (id) =>
      `UPDATE hopgate.keys SET secrets = '[{"digest":"${'a'.repeat(64)}","created":1,"until":null}]' WHERE id = '${id}'`,
    async fill() {
      await run('ALTER TABLE hopgate.audit ADD CONSTRAINT full_disk CHECK (seq < 0) NOT VALID');
      return async () => void (await run('ALTER TABLE hopgate.audit DROP CONSTRAINT full_disk'));
    },
  };
}

const request = { actor: 'admin:test' };

async function refusal(work: () => Promise<unknown>): Promise<GatewayError> {
  try {
    await work();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
    throw thrown;
  }
  throw new Error('nothing was refused');
}

const FORMS: readonly [string, () => Promise<Place>][] = [
  ['in a file', filePlace],
  ...(HAS_POSTGRES ? [['in Postgres', sharedPlace] as [string, typeof sharedPlace]] : []),
];

describe.each(FORMS)('keys %s', (_, newPlace) => {
  async function setUp(now?: () => number) {
    const place = await newPlace();
    const changes = new KeyChanges({
      place: { store: place.store, changed: () => {} },
      routes: () => ['cheap'],
      ...(now !== undefined && { now }),
    });
    return { changes, ...place };
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
    ])('%j: %s', async (body, param) => {
      const { changes, store } = await setUp();
      const error = await refusal(() => changes.create(body, request));
      expect([error.status, error.message]).toEqual([400, expect.stringContaining(param)]);
      expect(await store.list({ limit: 10, revoked: true })).toEqual([]);
      expect(await changes.audit({ limit: 10 })).toEqual([]);
    });

    test('a route that there is may stand where a budget is spent', async () => {
      const budgets = [{ usd: 1, per: 'day', over: 'cheap' }];
      const { changes } = await setUp();
      const { view } = await changes.create({ name: 'x', budgets }, request);
      expect(view.name).toBe('x');
    });
  });

  test('a change takes the members that it names; null takes one away', async () => {
    const { changes } = await setUp();
    const { view } = await changes.create(
      { name: 'x', models: ['a'], labels: { team: 'web' } },
      request,
    );
    const changed = await changes.update(view.id, { models: null, blocked: true }, request);
    expect(changed).toMatchObject({
      version: 2,
      name: 'x',
      blocked: true,
      labels: { team: 'web' },
    });
    expect(changed.models).toBeUndefined();
  });

  test('a version that is not the newest, a key that is gone and one that is revoked are refused', async () => {
    const { changes } = await setUp();
    const { view } = await changes.create({ name: 'x' }, request);
    await changes.update(view.id, { name: 'y' }, { ...request, version: 1 });
    const stale = { ...request, version: 1 };
    expect((await refusal(() => changes.update(view.id, {}, stale))).status).toBe(412);
    expect((await refusal(() => changes.revoke(view.id, stale))).status).toBe(412);
    expect((await refusal(() => changes.rotate(view.id, {}, stale))).status).toBe(412);
    expect((await refusal(() => changes.update('hk_none', {}, request))).status).toBe(404);
    await changes.revoke(view.id, request);
    expect((await refusal(() => changes.rotate(view.id, {}, request))).code).toBe('key_revoked');
    expect((await changes.list({ limit: 10, revoked: false })).keys).toEqual([]);
    expect((await changes.list({ limit: 10, revoked: true })).keys).toHaveLength(1);
  });

  test('pages follow each other without a gap, also within one millisecond', async () => {
    const { changes } = await setUp(() => 1000);
    const made: string[] = [];
    for (let n = 0; n < 7; n++) {
      const { view } = await changes.create({ name: `k${n}` }, request);
      made.push(view.id);
    }
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await changes.list({ after, limit: 3, revoked: false });
      seen.push(...page.keys.map(({ id }) => id));
      if (page.next === undefined) break;
      after = page.next;
    }
    expect(seen).toEqual(made.toSorted());
  });

  test('the same Idempotency-Key gives the same key, and no other request', async () => {
    let now = 1_000_000;
    const { changes } = await setUp(() => now);
    const marked = { ...request, idempotencyKey: 'one' };
    const first = await changes.create({ name: 'x' }, marked);
    expect(await changes.create({ name: 'x' }, marked)).toEqual(first);
    const other = await changes.create({ name: 'x' }, { ...marked, actor: 'admin:other' });
    expect(other.view.id).not.toBe(first.view.id);
    expect((await refusal(() => changes.create({ name: 'y' }, marked))).code).toBe(
      'idempotency_key_reused',
    );
    now += 11 * 60_000;
    // The secret is in no memory and on no disk any more.
    expect((await refusal(() => changes.create({ name: 'x' }, marked))).code).toBe(
      'already_issued',
    );
    expect((await changes.list({ limit: 10, revoked: true })).keys).toHaveLength(2);
  });

  test('no secret is kept', async () => {
    const { changes, content } = await setUp();
    const first = await changes.create({ name: 'x' }, { ...request, idempotencyKey: 'k' });
    const second = await changes.rotate(first.view.id, {}, request);
    const kept = await content();
    for (const { key } of [first, second]) {
      expect(kept).toContain(first.view.id);
      expect(kept).not.toContain(key.slice(-44));
    }
  });

  describe('the audit', () => {
    async function written() {
      const place = await setUp();
      const { changes } = place;
      const { view } = await changes.create({ name: 'a' }, request);
      await changes.update(view.id, { name: 'b' }, request);
      await changes.rotate(view.id, {}, request);
      await changes.revoke(view.id, request);
      return { ...place, id: view.id };
    }

    test('says who did what to which key, before and after', async () => {
      const { changes, id } = await written();
      const entries = await changes.audit({ limit: 10 });
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
      expect(await changes.verifyAudit()).toMatchObject({ count: 4, fault: undefined });
      const before = await changes.audit({ limit: 1, before: 3 });
      expect(before.map(({ seq }) => seq)).toEqual([2]);
    });

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
    ])('finds %s', async (_, forgery, seq) => {
      const { changes, forge } = await written();
      await forge(forgery.split('; '));
      expect((await changes.verifyAudit()).fault?.seq).toBe(seq);
    });

    test.each([
      ['settings', `UPDATE keys SET settings = '{"labels":{"team":"b"}}'`, 'labels'],
      ['a limit that is gone', `UPDATE keys SET settings = '{}'`, 'limits'],
      ['a name', `UPDATE keys SET name = 'other'`, 'name'],
      ['a key that was revoked', 'UPDATE keys SET revoked = NULL', 'revoked'],
      ['a key that is gone', 'DELETE FROM keys', 'is gone'],
      ['a key that was put in', `UPDATE keys SET id = 'hk_other'`, 'is gone'],
      ['a secret that was put in', SECRET, 'secrets'],
    ])('finds %s without an entry', async (_, forgery, said) => {
      const { changes, forge, addSecret } = await setUp();
      const { view } = await changes.create(
        { name: 'a', limits: { requests_per_minute: 3 } },
        request,
      );
      if (said === 'revoked') await changes.revoke(view.id, request);
      expect((await changes.verifyAudit()).fault).toBeUndefined();
      await forge([forgery === SECRET ? addSecret(view.id) : forgery]);
      const { fault } = await changes.verifyAudit();
      expect(fault?.message).toContain(said);
      expect(fault?.message).toContain(view.id);
    });

    test('an entry cannot be changed or removed by mistake', async () => {
      const { mistake } = await written();
      expect(await mistake("UPDATE audit SET actor = 'x'")).toContain('never changed');
      expect(await mistake('DELETE FROM audit')).toMatch(/never (changed or )?removed/);
    });

    test('a change that cannot be written leaves no entry, and an entry that cannot be written no change', async () => {
      const { changes, fill } = await setUp();
      // Its tables are made with the first use.
      await changes.list({ limit: 1, revoked: true });
      const empty = await fill();
      expect((await refusal(() => changes.create({ name: 'x' }, request))).status).toBe(503);
      expect((await changes.list({ limit: 10, revoked: true })).keys).toEqual([]);
      await empty();
      await changes.create({ name: 'x' }, request);
      expect(await changes.verifyAudit()).toMatchObject({ count: 1, fault: undefined });
    });
  });
});

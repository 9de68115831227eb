/** Keys of several replicas on a real Postgres: changes at once, hints and polls, floods, frozen servers, and the snapshot. */

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../src/config/secret.ts';
import { GatewayError } from '../../src/conversation/errors.ts';
import { KeyDirectory, type KeyLookup, sha256 } from '../../src/keys/directory.ts';
import { KeyChanges } from '../../src/keys/key-changes.ts';
import { databaseSource, RunTimeKeys } from '../../src/keys/run-time-keys.ts';
import { isKeyText, newKeyId, newKeyText } from '../../src/keys/secret-format.ts';
import { EngineAway, type SqlTransaction } from '../../src/state/engines/engine.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { ValkeyCache } from '../../src/state/engines/valkey.ts';
import { configWith } from '../support/access.ts';
import { HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_BOUNCER,
  HAS_POSTGRES,
  newDatabase,
  startBouncer,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { startFaultProxy } from '../support/engines/fault-proxy.ts';
import { freePort, type Server } from '../support/engines/processes.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(120_000);

/** Does everything, but for the answer. */
class LossyDatabase extends PostgresDatabase {
  loses = false;

  override async transaction<T>(work: (inside: SqlTransaction) => Promise<T>, deadlineMs: number) {
    const result = await super.transaction(work, deadlineMs);
    if (this.loses) throw new EngineAway('database', 'no answer');
    return result;
  }
}

/** Longer than any test: only a hint, or a look that is asked for, tells of a change. */
const NEVER_MS = 3_600_000;
const admin = { actor: 'admin:test' };

describe.skipIf(!HAS_POSTGRES)('keys of several replicas', () => {
  let server: DatabaseServer;
  let cache: Server | undefined;
  const cleanups: (() => unknown)[] = [];
  beforeAll(async () => {
    [server, cache] = await Promise.all([
      startPostgres(),
      HAS_CACHE ? startCache() : Promise.resolve(undefined),
    ]);
  });
  afterEach(async () => {
    for (const one of cleanups.splice(0).reverse()) await one();
  });
  afterAll(() => Promise.all([server.stop(), cache?.stop()]));

  const onCleanup = <T>(value: T, work: (value: T) => unknown): T => {
    cleanups.push(() => work(value));
    return value;
  };
  async function emptyDatabase(on: DatabaseServer = server): Promise<string> {
    const { url, database } = await newDatabase(on);
    await database.close();
    return url;
  }
  const newFolder = () =>
    onCleanup(mkdtempSync(join(tmpdir(), 'hopgate-shared-keys-')), (path) =>
      rmSync(path, { recursive: true, force: true }),
    );

  interface ReplicaOptions {
    readonly home?: string;
    readonly pollMs?: number;
    readonly hints?: boolean;
  }

  function replica(url: string, options: ReplicaOptions = {}) {
    const { home = newFolder(), pollMs = NEVER_MS, hints = false } = options;
    const database = onCleanup(new LossyDatabase({ url: new Secret(url) }, () => {}), (one) =>
      one.close(),
    );
    const address = { form: 'single', db: 0, tls: false } as const;
    const nodes = [{ host: '127.0.0.1', port: cache?.port ?? 0 }];
    const own = hints
      ? onCleanup(new ValkeyCache({ ...address, nodes }, () => {}), (one) => one.close())
      : undefined;
    const warnings: string[] = [];
    const snapshots: number[] = [];
    const path = join(home, 'shared-keys.db');
    const keys = onCleanup(
      new RunTimeKeys({
        source: databaseSource(database),
        cache: own,
        snapshot: path,
        warn: (message) => warnings.push(message),
        onSnapshot: (told) => snapshots.push(told.keys),
        pollMs,
      }),
      (one) => one.close(),
    );
    keys.follow();
    const config = configWith({ auth: { admin_keys: ['an-admin-key-1'] } });
    const directory = new KeyDirectory(config, keys);
    const changes = new KeyChanges({ place: keys, routes: () => [] });
    const find = async (key: string): Promise<string> => {
      const found: KeyLookup = await directory.find(key, sha256(key), Date.now());
      return typeof found === 'string' ? found : found.id;
    };
    /** Without a look at the database. */
    const knows = (key: string) =>
      keys.loaded.find(Buffer.from(sha256(key)).toString('hex')) !== undefined;
    return { changes, database, directory, find, keys, knows, path, snapshots, warnings };
  }

  async function refusal(work: Promise<unknown>): Promise<GatewayError> {
    const thrown = await work.then(
      () => undefined,
      (error: unknown) => error,
    );
    if (thrown instanceof GatewayError) return thrown;
    throw new Error(`it was not refused: ${thrown}`);
  }

  test('many changes at once from three replicas make one whole chain, and none is lost or made twice', async () => {
    const url = await emptyDatabase();
    const bouncer = HAS_BOUNCER
      ? onCleanup(await startBouncer(server), (one) => one.stop())
      : server;
    const pooled = url.replace(`:${server.port}/`, `:${bouncer.port}/`);
    const replicas = [replica(pooled), replica(pooled), replica(url)];
    const first = replicas[0]!;
    const { view: hot } = await first.changes.create({ name: 'hot' }, admin);
    const made = await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        const { changes } = replicas[n % 3]!;
        const marked = { ...admin, idempotencyKey: `create-${n}` };
        const issued = await changes.create({ name: `k${n}` }, marked);
        // The client lost the answer, and asks the same replica and another one.
        expect(await changes.create({ name: `k${n}` }, marked)).toEqual(issued);
        const elsewhere = replicas[(n + 1) % 3]!.changes.create({ name: `k${n}` }, marked);
        expect((await refusal(elsewhere)).code).toBe('already_issued');
        await changes.update(hot.id, { labels: { last: `${n}` } }, admin);
        return issued;
      }),
    );
    // Of three who saw the same version, one wins.
    const seen = (await first.changes.get(hot.id)).version;
    expect(seen).toBe(61);
    const races = await Promise.allSettled(
      replicas.map(({ changes }) => changes.update(hot.id, {}, { ...admin, version: seen })),
    );
    expect(races.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const { changes, keys, find } of replicas) {
      expect(await changes.verifyAudit()).toMatchObject({ count: 122, fault: undefined });
      await keys.refresh();
      const found = await Promise.all(made.map(({ key }) => find(key)));
      expect(found).toEqual(made.map(({ view }) => view.id));
    }
  });

  test.skipIf(!HAS_CACHE)('a hint over the cache tells all replicas of a change', async () => {
    const url = await emptyDatabase();
    const replicas = [1, 2, 3].map(() => replica(url, { hints: true }));
    const [one, ...others] = replicas;
    const { key, view } = await one!.changes.create({ name: 'a' }, admin);
    expect(one!.knows(key)).toBe(true);
    await until(() => others.every(({ knows }) => knows(key)));
    await one!.changes.revoke(view.id, admin);
    expect(one!.knows(key)).toBe(false);
    await until(() => others.every(({ knows }) => !knows(key)));
    expect(await others[0]!.find(key)).toBe('unknown');
  });

  test('without a cache the poll tells of a change', async () => {
    const url = await emptyDatabase();
    const one = replica(url);
    const other = replica(url, { pollMs: 50 });
    const { key, view } = await one.changes.create({ name: 'a' }, admin);
    await until(() => other.knows(key));
    await one.changes.revoke(view.id, admin);
    await until(() => !other.knows(key));
  });

  test('a key of another replica is found when it is first shown', async () => {
    const url = await emptyDatabase();
    const [one, other] = [replica(url), replica(url)];
    await until(() => other.keys.unready === undefined);
    for (const pauseMs of [0, 300, 0, 300, 300]) {
      // Soon after the last look, and so long after it that the next one begins at once.
      await Bun.sleep(pauseMs);
      const { key, view } = await one.changes.create({ name: 'a' }, admin);
      expect(other.knows(key)).toBe(false);
      expect(await other.find(key)).toBe(view.id);
    }
  });

  test('a flood of unknown keys costs no query each, and keys of another form none', async () => {
    const { find, database, keys } = replica(await emptyDatabase());
    await until(() => keys.unready === undefined);
    const before = database.state.trips;
    const flood = Array.from({ length: 5000 }, () => find(newKeyText(newKeyId())));
    expect(new Set(await Promise.all(flood))).toEqual(new Set(['unknown']));
    expect(database.state.trips - before).toBeLessThanOrEqual(2);
    expect(await find('sk-not-one-of-ours')).toBe('unknown');
    expect(database.state.trips - before).toBeLessThanOrEqual(2);
  });

  test('a frozen database ends no key that is known, refuses changes, and heals', async () => {
    const own = onCleanup(await startPostgres(), (one) => one.stop());
    const { changes, find, keys } = replica(own.url, { pollMs: 100 });
    const { key, view } = await changes.create({ name: 'a' }, admin);
    own.freeze();
    expect(await find(key)).toBe(view.id);
    const error = await refusal(changes.revoke(view.id, admin));
    expect([error.status, error.code]).toEqual([503, 'keys_unreadable']);
    // It may be one that another replica has made meanwhile.
    expect(await find(newKeyText(newKeyId()))).toBe('unreadable');
    expect(await find(key)).toBe(view.id);
    expect(keys.unready).toBeUndefined();
    own.thaw();
    await until(async () => (await find(newKeyText(newKeyId()))) === 'unknown');
    // What was asked for while it was frozen may have been done or not, but the chain is whole.
    expect((await changes.verifyAudit()).fault).toBeUndefined();
    await own.restart();
    await until(async () => {
      const made = await changes.create({ name: 'b' }, admin).catch(() => undefined);
      return made !== undefined && (await find(made.key)) === made.view.id;
    });
    expect((await changes.verifyAudit()).fault).toBeUndefined();
  });

  test('a change whose answer was lost is not made twice, and its repeated request gets the key', async () => {
    const url = await emptyDatabase();
    const [one, other] = [replica(url), replica(url)];
    await one.changes.create({ name: 'first' }, admin);
    const marked = { ...admin, idempotencyKey: 'once' };
    one.database.loses = true;
    const lost = await refusal(one.changes.create({ name: 'second' }, marked));
    expect(lost.code).toBe('keys_unreadable');
    one.database.loses = false;
    const again = await one.changes.create({ name: 'second' }, marked);
    expect(await other.find(again.key)).toBe(again.view.id);
    const { keys } = await other.changes.list({ limit: 10, revoked: true });
    expect(keys.map(({ name }) => name).sort()).toEqual(['first', 'second']);
    expect(await other.changes.verifyAudit()).toMatchObject({ count: 2, fault: undefined });
  });

  test('a change that is cut in the middle leaves nothing', async () => {
    const url = await emptyDatabase();
    const proxy = onCleanup(await startFaultProxy(server.port), (one) => one.close());
    const one = replica(url.replace(`:${server.port}/`, `:${proxy.port}/`));
    const other = replica(url);
    const { view } = await one.changes.create({ name: 'a' }, admin);
    const { record } = (await other.keys.store.get(view.id))!;
    const audit = { time: 1, actor: 'test', action: 'key.update', before: null, after: null };
    const cut = one.keys.store.change(view.id, () => {
      // The write arrives, its answer does not.
      proxy.loseAnswers = true;
      return { record: { ...record, blocked: true, version: 2 }, audit };
    });
    await expect(cut).rejects.toThrow();
    proxy.loseAnswers = false;
    proxy.cut();
    expect((await other.changes.get(view.id)).blocked).toBe(false);
    await until(() => one.changes.update(view.id, {}, admin).catch(() => undefined));
    expect(await other.changes.verifyAudit()).toMatchObject({ count: 2, fault: undefined });
  });

  test('a replica that freezes in a change holds up the others for a while, not for ever', async () => {
    const url = await emptyDatabase();
    const proxy = onCleanup(await startFaultProxy(server.port), (one) => one.close());
    const frozen = replica(url.replace(`:${server.port}/`, `:${proxy.port}/`));
    const other = replica(url);
    const { view } = await other.changes.create({ name: 'a' }, admin);
    await frozen.keys.refresh();
    // The lock is taken, and what would be sent next never arrives.
    const stuck = frozen.keys.store.change(view.id, () => {
      proxy.silent = true;
      throw new Error('frozen');
    });
    await until(() => proxy.silent);
    const { key } = await other.changes.create({ name: 'b' }, admin);
    expect(await other.find(key)).toStartWith('hk_');
    proxy.cut();
    await expect(stuck).rejects.toThrow();
    expect(await other.changes.verifyAudit()).toMatchObject({ count: 2, fault: undefined });
  });

  test('a replica starts with its snapshot while the database is away, and says so once', async () => {
    const own = onCleanup(await startPostgres(), (one) => one.stop());
    const home = newFolder();
    const before = replica(own.url, { home });
    const kept = await before.changes.create({ name: 'kept' }, admin);
    const gone = await before.changes.create({ name: 'gone' }, admin);
    const blocked = await before.changes.create({ name: 'blocked', blocked: true }, admin);
    await before.changes.revoke(gone.view.id, admin);
    await before.keys.close();
    await before.database.close();
    await own.kill();

    const after = replica(own.url, { home, pollMs: 50 });
    expect(after.keys.unready).toBeUndefined();
    expect(await after.find(kept.key)).toBe(kept.view.id);
    expect(await after.find(blocked.key)).toBe('blocked');
    await until(() => after.snapshots.length > 0);
    expect(await after.find(gone.key)).toBe('unreadable');
    expect(after.keys.report).toMatchObject({ source: 'snapshot', keys: 3, entry: 4 });
    expect((await refusal(after.changes.create({ name: 'x' }, admin))).status).toBe(503);
    expect(await after.find(kept.key)).toBe(kept.view.id);

    await own.restart();
    await until(() => after.keys.report.source === 'database');
    const late = await until(() =>
      after.changes.create({ name: 'late' }, admin).catch(() => undefined),
    );
    expect(await after.find(late.key)).toBe(late.view.id);
    expect(await after.find(gone.key)).toBe('unknown');
    expect([after.snapshots, after.warnings]).toEqual([[3], []]);
  });

  test('the snapshot is private and holds no key', async () => {
    const { changes, keys, path } = replica(await emptyDatabase());
    const { key, view } = await changes.create({ name: 'a' }, admin);
    await keys.close();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const bytes = readFileSync(path, 'latin1');
    expect(bytes).toContain(view.id);
    expect(bytes).not.toContain(key.slice(-44));
    expect(isKeyText(key)).toBe(true);
  });

  test('without database and snapshot a replica is not ready, and is as soon as the database is there', async () => {
    const port = await freePort();
    const url = `postgres://hopgate@127.0.0.1:${port}/postgres`;
    const { find, keys } = replica(url, { pollMs: 50 });
    expect(keys.unready).toContain('no snapshot');
    expect(await find(newKeyText(newKeyId()))).toBe('unreadable');
    const proxy = await startFaultProxy(server.port, port);
    onCleanup(proxy, (one) => one.close());
    await until(() => keys.unready === undefined);
    expect(keys.report.source).toBe('database');
  });

  test('what was known of a database that was set back is void', async () => {
    const home = newFolder();
    const url = await emptyDatabase();
    const before = replica(url, { home });
    const old = await before.changes.create({ name: 'old' }, admin);
    await before.changes.create({ name: 'old too' }, admin);
    // The other one has a history of its own, which is longer.
    const other = replica(await emptyDatabase());
    const made = [];
    for (let n = 0; n < 4; n++) made.push(await other.changes.create({ name: `k${n}` }, admin));
    await before.keys.close();
    await before.database.query('DROP SCHEMA hopgate CASCADE', [], 10_000);
    const dump = await other.database.query<{ sql: string }>(TRANSFER, [], 10_000);

    const third = replica(url);
    await third.changes.verifyAudit();
    for (const { sql } of dump) await third.database.query(sql, [], 10_000);
    const after = replica(url, { home, pollMs: 50 });
    await until(() => after.keys.report.source === 'database');
    for (const { key, view } of made) expect(await after.find(key)).toBe(view.id);
    expect(await after.find(old.key)).toBe('unknown');
    expect(after.keys.report).toMatchObject({ keys: 4, entry: 4 });
    // Also in the file.
    await after.keys.close();
    await after.database.close();
    const again = replica(`postgres://hopgate@127.0.0.1:${await freePort()}/postgres`, { home });
    expect(again.keys.report).toMatchObject({ source: 'snapshot', keys: 4, entry: 4 });
  });
});

/** Statements that make the same keys and audit in other tables. */
const TRANSFER = `
SELECT format('INSERT INTO hopgate.keys SELECT * FROM json_populate_record(NULL::hopgate.keys, %L)', row_to_json(k)) AS sql
  FROM hopgate.keys k
UNION ALL
SELECT format('INSERT INTO hopgate.audit SELECT * FROM json_populate_record(NULL::hopgate.audit, %L)', row_to_json(a))
  FROM hopgate.audit a
UNION ALL
SELECT format('UPDATE hopgate.audit_head SET seq = %s, hash = %L', seq, hash) FROM hopgate.audit_head`;

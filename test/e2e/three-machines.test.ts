/** The example of three machines, on one: its own files, with other addresses, run by haproxy, Valkey, Sentinel and Postgres. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { binary, type Gateway, runBinary, startGateway } from '../support/binary.ts';
import { cacheCommand, HAS_SENTINEL } from '../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import {
  certificateFiles,
  freePort,
  have,
  program,
  type Server,
  scratchFolder,
  startServer,
} from '../support/engines/processes.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';

const FOLDER = join(import.meta.dir, '../../examples/three-machines');
const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
const PASSWORD = 'a-password-for-tests-0123456789abcdef';
const HAPROXY = program('haproxy');
const PSQL = program('psql');
const HAS_ALL = have('haproxy', HAPROXY) && have('psql', PSQL) && HAS_SENTINEL && HAS_POSTGRES;

test('every variable of the configuration is in the file of variables, and no other', () => {
  const asked = new Set(
    [...read('hopgate.yaml').matchAll(/\$\{([A-Z_]+)\}/g)].map(([, one]) => one!),
  );
  const given = [...read('hopgate.env.example').matchAll(/^([A-Z_]+)=$/gm)].map(([, one]) => one!);
  expect(given.toSorted()).toEqual([...asked].toSorted());
});

test('the README says where every file belongs', () => {
  const readme = read('README.md');
  const files = readdirSync(FOLDER, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(FOLDER.length + 1))
    .filter((name) => !['README.md', 'requests.json'].includes(name));
  for (const name of files) expect(readme).toContain(`\`${name}\``);
});

test('the unit stops no stream before the gateway itself does', () => {
  const unit = read('systemd/hopgate.conf');
  const drain = Number(/--drain (\d+)/.exec(unit)?.[1]);
  expect(parse(read('hopgate.yaml')).limits.drain).toBe(drain);
  expect(Number(/TimeoutStopSec=(\d+)/.exec(unit)?.[1])).toBeGreaterThan(drain);
});

describe.skipIf(!HAS_ALL)('the example of three machines', () => {
  const servers: Server[] = [];
  let database: DatabaseServer;
  let databaseUrl: string;
  let cachePorts: readonly number[];
  let sentinelPort: number;
  let vendors: Readonly<Record<'anthropic' | 'glm', FakeUpstream>>;
  let patroni: ReturnType<typeof Bun.serve>;
  let gateways: Gateway[] = [];
  let entry: string;
  let toDatabase: number;
  const variables = Object.fromEntries(
    [...read('hopgate.env.example').matchAll(/^([A-Z_]+)=$/gm)].map(([, name]) => [
      name!,
      name === 'CACHE_PASSWORD' || name === 'DATABASE_PASSWORD' ? PASSWORD : `${name}-${PASSWORD}`,
    ]),
  );

  const folders: string[] = [];
  async function ownFolder(): Promise<string> {
    const folder = await scratchFolder();
    folders.push(folder);
    return folder;
  }

  /** A file of the example with these replacements, each of which must occur; in a folder of its own. */
  async function written(name: string, changes: readonly (readonly [string | RegExp, string])[]) {
    let text = read(name);
    for (const [from, to] of changes) {
      const next = text.replaceAll(from, to);
      expect([name, from, next === text]).toEqual([name, from, false]);
      text = next;
    }
    const folder = await ownFolder();
    const path = join(folder, name.split('/').at(-1)!);
    await Bun.write(path, text);
    return { folder, path };
  }

  async function startCacheServer(primary?: number): Promise<number> {
    const port = await freePort();
    const { folder, path } = await written('valkey/valkey.conf', [
      ['bind 0.0.0.0', 'bind 127.0.0.1'],
      ['port 6379', `port ${port}`],
      [/(requirepass|masterauth) CACHE_PASSWORD/g, `$1 ${PASSWORD}`],
      ...(primary === undefined
        ? []
        : ([['#replicaof 10.0.0.1 6379', `replicaof 127.0.0.1 ${primary}`]] as const)),
    ]);
    const command = [program('valkey-server', 'redis-server')!, path];
    servers.push(await startServer({ port, folder, command }));
    return port;
  }

  async function startSentinels(primary: number): Promise<number> {
    const ports = [await freePort(), await freePort(), await freePort()];
    for (const port of ports) {
      const { folder, path } = await written('valkey/sentinel.conf', [
        ['bind 0.0.0.0', 'bind 127.0.0.1'],
        ['port 26379', `port ${port}`],
        [/CACHE_PASSWORD/g, PASSWORD],
        ['10.0.0.1 6379', `127.0.0.1 ${primary}`],
      ]);
      const command = [program('valkey-sentinel', 'redis-sentinel')!, path];
      servers.push(await startServer({ port, folder, command }));
    }
    return ports[0]!;
  }

  async function startDatabase(): Promise<string> {
    database = await startPostgres();
    const url = new URL(database.url);
    // The user who made this server has the name already.
    const { path } = await written('postgres/create.sql', [
      ['ROLE hopgate', 'ROLE gateway'],
      ['DATABASE hopgate OWNER hopgate', 'DATABASE gateway OWNER gateway'],
    ]);
    const made = Bun.spawnSync([
      PSQL!,
      database.url,
      '--quiet',
      '--set',
      'ON_ERROR_STOP=1',
      '--set',
      `password=${PASSWORD}`,
      '--file',
      path,
    ]);
    expect([made.exitCode, made.stderr.toString()]).toEqual([0, '']);
    url.port = String(toDatabase);
    url.username = 'gateway';
    url.password = PASSWORD;
    url.pathname = '/gateway';
    return url.href;
  }

  async function startProxy(): Promise<void> {
    const port = await freePort();
    const { cert, key } = certificateFiles('localhost');
    const tls = join(await ownFolder(), 'tls.pem');
    await Bun.write(tls, `${readFileSync(cert, 'utf8')}${readFileSync(key, 'utf8')}`);
    const addresses = gateways.map(({ url }) => new URL(url).host);
    const { folder, path } = await written('haproxy.cfg', [
      ['log /dev/log local0', 'log stderr local0'],
      // It wants two descriptors for each, and a test may have few.
      ['maxconn 20000', 'maxconn 200'],
      ['bind :443 ssl crt /etc/haproxy/tls.pem', `bind 127.0.0.1:${port} ssl crt ${tls}`],
      ['bind 127.0.0.1:5432', `bind 127.0.0.1:${toDatabase}`],
      ...addresses.map((address, i) => [`10.0.0.${i + 1}:5520`, address] as const),
      [/10\.0\.0\.\d:5433/g, `127.0.0.1:${database.port}`],
      ['port 8008', `port ${patroni.port}`],
    ]);
    servers.push(await startServer({ port, folder, command: [HAPROXY!, '-db', '-f', path] }));
    entry = `https://localhost:${port}`;
  }

  async function startOne(): Promise<Gateway> {
    const config = parse(read('hopgate.yaml'));
    config.listen = { address: '127.0.0.1:0', trusted_proxies: ['127.0.0.1'] };
    const { anthropic, glm } = config.providers;
    anthropic.base_url = vendors.anthropic.baseUrl('anthropic-messages');
    glm.base_url = vendors.glm.baseUrl('openai-chat');
    for (const [name, one] of Object.entries({ anthropic, glm })) one.preset = name;
    config.engines.cache = config.engines.cache.replace(
      /10\.0\.0\.1:26379,.*26379/,
      `127.0.0.1:${sentinelPort}`,
    );
    config.engines.database = databaseUrl;
    // The object store is another's service.
    delete config.engines.objects;
    return startGateway(config, { env: variables, patience: 60_000 });
  }

  const ask = (model = 'claude-sonnet-4-5') =>
    fetch(`${entry}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': variables.WEB_KEY!, connection: 'close' },
      body: JSON.stringify({
        model,
        max_tokens: 100,
        stream: true,
        messages: [{ role: 'user', content: 'Hello!' }],
      }),
      tls: { ca: readFileSync(certificateFiles('localhost').authority, 'utf8') },
    });

  beforeAll(async () => {
    vendors = { anthropic: await startFakeUpstream(), glm: await startFakeUpstream() };
    for (const vendor of Object.values(vendors)) vendor.answerWith(() => say('Fine.'));
    patroni = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) =>
        new Response(null, { status: request.url.endsWith('/primary') ? 200 : 404 }),
    });
    toDatabase = await freePort();
    const primary = await startCacheServer();
    cachePorts = [primary, await startCacheServer(primary), await startCacheServer(primary)];
    // It takes no writes before a replica follows.
    await until(() =>
      /min_slaves_good_slaves:2/.test(cacheCommand(primary, '-a', PASSWORD, 'info', 'replication')),
    );
    sentinelPort = await startSentinels(primary);
    [databaseUrl] = await Promise.all([startDatabase(), binary()]);
    gateways = await Promise.all([startOne(), startOne(), startOne()]);
    await startProxy();
  });
  afterAll(async () => {
    await Promise.all(gateways.map((one) => one.stop()));
    await Promise.all(servers.map((one) => one.stop()));
    for (const one of folders) await rm(one, { recursive: true, force: true });
    await database?.stop();
    await patroni?.stop(true);
    for (const vendor of Object.values(vendors ?? {})) await vendor.stop();
  });

  const health = async ({ url }: Gateway) => {
    const headers = { authorization: `Bearer ${variables.HOPGATE_ADMIN_KEY}` };
    const answer = (await (await fetch(`${url}/health/engines`, { headers })).json()) as {
      engines: Record<string, { state: string }>;
    };
    return Object.fromEntries(
      Object.entries(answer.engines).map(([name, { state }]) => [name, state]),
    );
  };

  test('streams go through haproxy by TLS, and both engines are up on every gateway', async () => {
    // Until its keys are read from the database a gateway is not ready, and haproxy leaves it out.
    for (const { url } of gateways) await until(async () => (await fetch(`${url}/readyz`)).ok);
    await until(async () => (await ask()).ok);
    for (let i = 0; i < 6; i++) {
      const answer = await ask();
      expect([answer.status, await answer.text()]).toEqual([
        200,
        expect.stringContaining('message_stop'),
      ]);
    }
    const up = { cache: 'up', database: 'up' };
    await until(async () => {
      for (const one of gateways) {
        if (!Bun.deepEquals(await health(one), up)) return false;
      }
      return true;
    });
  });

  test('doctor finds nothing wrong with the engines of these files', async () => {
    const folder = await ownFolder();
    const path = join(folder, 'hopgate.yaml');
    const cache = `redis+sentinel://:${PASSWORD}@127.0.0.1:${sentinelPort}/hopgate?sentinel_password=${PASSWORD}`;
    await Bun.write(path, JSON.stringify({ engines: { cache, database: databaseUrl } }));
    const { stdout } = await runBinary(['doctor', '--config', path, '--json'], { env: variables });
    const { findings } = JSON.parse(stdout) as {
      findings: readonly { about: string; status: string; message: string }[];
    };
    const engines = findings.filter(({ about }) => about.startsWith('engine'));
    expect(engines.length).toBeGreaterThan(6);
    expect(engines.filter(({ status }) => status !== 'ok')).toEqual([]);
  });

  test('metrics are not told to the outside', async () => {
    const ca = readFileSync(certificateFiles('localhost').authority, 'utf8');
    expect((await fetch(`${entry}/metrics`, { tls: { ca } })).status).toBe(404);
  });

  test('a gateway that is stopped finishes its streams, and no request fails meanwhile', async () => {
    const leaving = gateways.pop()!;
    const stopped = leaving.stop();
    const answers: number[] = [];
    for (let i = 0; i < 20; i++) {
      const answer = await ask();
      await answer.text();
      answers.push(answer.status);
      await Bun.sleep(50);
    }
    expect(answers).toEqual(answers.map(() => 200));
    await stopped;
  });

  test('the first primary of the cache dies, and limits go on with the next one', async () => {
    const primary = () =>
      cacheCommand(
        sentinelPort,
        '-a',
        PASSWORD,
        'sentinel',
        'get-master-addr-by-name',
        'hopgate',
      ).split('\n')[1];
    const before = primary();
    await servers.find(({ port }) => String(port) === before)!.kill();
    await until(() => primary() !== before);
    expect(cachePorts.map(String)).toContain(primary()!);
    await until(async () => (await health(gateways[0]!)).cache === 'up');
    expect((await ask()).status).toBe(200);
  });

  test('no database: requests are served from what is leased, and it is taken again', async () => {
    database.freeze();
    expect((await ask()).status).toBe(200);
    database.thaw();
    await until(async () => (await health(gateways[0]!)).database === 'up');
    expect((await ask()).status).toBe(200);
  });
});

/** The Dockerfile and the Compose file: what they name exists, and the image builds and answers where Docker is. */

import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { COMMANDS } from '../../src/cli/commands.ts';
import { parseLine } from '../../src/cli/parse.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { program } from '../support/engines/processes.ts';

const ROOT = join(import.meta.dir, '../..');
const FOLDER = join(ROOT, 'packaging/docker');
const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
const dockerfile = read('Dockerfile');

describe('Dockerfile', () => {
  test('copies only what is there, or what the build makes', () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from]) =>
      from!.split(' '),
    );
    expect(copied).toContain('packaging/docker/hopgate.yaml');
    for (const path of copied) expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
  });

  test('starts and checks the program with command lines that it takes', () => {
    const lines = [...dockerfile.matchAll(/(?:CMD|ENTRYPOINT) (\[.+\])$/gm)].map(
      ([, json]) => JSON.parse(json!) as string[],
    );
    const argv = lines.map(([first, ...rest]) =>
      first!.startsWith('/') ? rest : [first!, ...rest],
    );
    expect(argv).toEqual([['status'], [], ['serve']]);
    for (const words of argv) expect(parseLine(words, COMMANDS).command).toBeDefined();
  });

  test('the build sees no secrets and no modules of the machine', () => {
    const ignored = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n');
    expect(ignored).toEqual(
      expect.arrayContaining([
        'node_modules',
        'packaging/docker/hopgate.env',
        'packaging/docker/replicas/hopgate.env',
      ]),
    );
  });
});

describe('compose.yaml', () => {
  const { services } = parse(read('compose.yaml'));
  const { build, volumes, env_file, ports } = services.hopgate;

  test('builds with this Dockerfile and mounts files that are there', () => {
    expect(existsSync(join(FOLDER, build.context, build.dockerfile))).toBe(true);
    expect(existsSync(join(FOLDER, volumes[0].split(':')[0]))).toBe(true);
    expect(existsSync(join(FOLDER, `${env_file}.example`))).toBe(true);
  });

  test('publishes the port on this machine only', () => {
    expect(ports).toEqual(['127.0.0.1:5520:5520']);
  });
});

describe('the Compose file of several replicas', () => {
  const REPLICAS = join(FOLDER, 'replicas');
  const text = (name: string) => readFileSync(join(REPLICAS, name), 'utf8');
  const { services } = parse(text('compose.yaml'));
  const given = [...text('hopgate.env.example').matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name!);

  test('builds with this Dockerfile and mounts files that are there', () => {
    const { build, env_file } = services.hopgate;
    expect(existsSync(join(REPLICAS, build.context, build.dockerfile))).toBe(true);
    expect(existsSync(join(REPLICAS, `${env_file}.example`))).toBe(true);
    for (const { volumes } of Object.values<{ volumes?: readonly string[] }>(services)) {
      for (const one of volumes ?? []) {
        if (one.startsWith('./')) expect(existsSync(join(REPLICAS, one.split(':')[0]!))).toBe(true);
      }
    }
  });

  test('only haproxy is reached from outside, and from this machine only', () => {
    const published = Object.entries<{ ports?: readonly string[] }>(services).flatMap(
      ([name, { ports }]) => (ports ?? []).map((port) => [name, port]),
    );
    expect(published).toEqual([['haproxy', '127.0.0.1:5520:5520']]);
  });

  test('every variable that is asked for is in the example of variables', () => {
    const asked = [
      ...`${text('compose.yaml')}${text('hopgate.yaml')}`.matchAll(/\$\{?\$?([A-Z_]+)/g),
    ];
    expect(asked.length).toBeGreaterThan(8);
    for (const [, name] of asked) expect(given).toContain(name!);
  });

  test('the configuration loads, and its engines are the services of the Compose file', () => {
    const variables = Object.fromEntries(
      given.map((name) => [name, `${name}-0123456789abcdef-0123456789`]),
    );
    const loaded = parseConfig(
      text('hopgate.yaml'),
      '/etc/hopgate/hopgate.yaml',
      environmentFrom({ HOME: '/', ...variables, ANTHROPIC_API_KEY: 'sk-one' }),
    );
    if (!loaded.ok) throw new Error(JSON.stringify(loaded));
    const { cache, database, objects } = loaded.config.engines;
    const hosts = [
      cache!.nodes[0]!.host,
      new URL(database!.url.reveal()).hostname,
      new URL(objects!.endpoint).hostname,
    ];
    for (const host of hosts) expect(Object.keys(services)).toContain(host);
  });

  const haproxy = program('haproxy');
  test.skipIf(haproxy === undefined)(
    `haproxy takes its configuration${haproxy === undefined ? ' [SKIPPED: no haproxy]' : ''}`,
    () => {
      const checked = Bun.spawnSync([haproxy!, '-c', '-q', '-f', join(REPLICAS, 'haproxy.cfg')]);
      expect([checked.exitCode, checked.stderr.toString()]).toEqual([0, '']);
    },
  );
});

test('the configuration of the image loads, and without a client key it does not', () => {
  const load = (variables: Record<string, string>) =>
    parseConfig(
      read('hopgate.yaml'),
      '/etc/hopgate/hopgate.yaml',
      environmentFrom({ HOME: '/', ...variables }),
    );
  const loaded = load({ HOPGATE_CLIENT_KEY: 'a-key-of-the-client-0123456789' });
  expect(loaded.ok).toBe(true);
  expect(load({}).ok).toBe(false);
});

const docker = Bun.which('docker');
const works = docker !== null && Bun.spawnSync([docker, 'info']).exitCode === 0;
test.skipIf(!works)(
  `the image builds and reports its version${works ? '' : ' [SKIPPED: no Docker on this machine]'}`,
  () => {
    const tag = `hopgate-test-${process.pid}`;
    const build = ['build', '-q', '-f', join(FOLDER, 'Dockerfile'), '-t', tag, ROOT];
    const built = Bun.spawnSync([docker!, ...build]);
    expect([built.exitCode, built.stderr.toString()]).toEqual([0, expect.anything()]);
    const ran = Bun.spawnSync([docker!, 'run', '--rm', tag, 'version']);
    Bun.spawnSync([docker!, 'image', 'rm', '-f', tag]);
    expect(ran.stdout.toString()).toStartWith('hopgate ');
  },
  600_000,
);

/** The Dockerfile and the Compose file: what they name exists, and the image builds and answers where Docker is. */

import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { COMMANDS } from '../../src/cli/commands.ts';
import { parseLine } from '../../src/cli/parse.ts';
import { environmentFrom, parseConfig } from '../../src/config/index.ts';

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
      expect.arrayContaining(['node_modules', 'packaging/docker/hopgate.env']),
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

/** The release as a whole: its contents, its checksums, and that a second build gives the same bytes. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };
import { measure } from '../../scripts/release/measure.ts';
import { ar, file, gzip, tar, withFolders } from '../../scripts/release/tar.ts';
import { binary } from '../support/binary.ts';
import { type Release, ran, releaseOnce, removeScratch, scratchFolder } from './release-once.ts';

// These tests read, unpack and remove gigabytes.
setDefaultTimeout(120_000);
afterAll(removeScratch, 120_000);

let release: Release;
beforeAll(async () => {
  release = await releaseOnce();
}, 600_000);

const { version } = manifest;
const read = (folder: string, name: string) => readFileSync(join(folder, name), 'utf8');

describe('a release', () => {
  test('the same files built in two different folders give the same bytes', () => {
    const [first, second] = release.folders;
    expect(readdirSync(first).sort()).toEqual(readdirSync(second).sort());
    expect(read(first, 'SHA256SUMS')).toBe(read(second, 'SHA256SUMS'));
    for (const name of readdirSync(first)) {
      const same = readFileSync(join(first, name)).equals(readFileSync(join(second, name)));
      expect([name, same]).toEqual([name, true]);
      const megabytes = (readFileSync(join(first, name)).length / 1024 / 1024).toFixed(1);
      console.log(`${name}: ${megabytes} MB, the same twice`);
    }
  });

  test('SHA256SUMS lists every file with the right sum', async () => {
    const [folder] = release.folders;
    const { code, out } = await ran(['sha256sum', '-c', 'SHA256SUMS'], { cwd: folder });
    expect([code, out]).toEqual([0, expect.not.stringContaining('FAILED')]);
    const listed = read(folder, 'SHA256SUMS')
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(66));
    expect([...listed, 'SHA256SUMS'].sort()).toEqual(readdirSync(folder).sort());
  });

  test('the archive holds the documented files, and its program prints its version', async () => {
    const name = `hopgate-${version}-${release.target}`;
    const to = scratchFolder('archive');
    const archive = join(release.folders[0], `${name}.tar.gz`);
    expect((await ran(['tar', '-xzf', archive, '-C', to])).code).toBe(0);
    const { out: listing } = await ran(['tar', '-tzvf', archive]);
    const members = listing.split('\n').flatMap((line) => line.split(' ').at(-1) || []);
    expect(
      members.map((path) => path.slice(name.length + 1)).filter((path) => path !== ''),
    ).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'README.zh-CN.md',
      'THIRD-PARTY-NOTICES.txt',
      'completions/',
      'completions/_hopgate',
      'completions/hopgate.bash',
      'completions/hopgate.fish',
      'hopgate',
      'man/',
      'man/hopgate.1',
      'monitoring/',
      'monitoring/grafana-dashboard.json',
      'monitoring/prometheus-alerts.yml',
      'service/',
      'service/hopgate.env',
      process.platform === 'darwin' ? 'service/hopgate.plist' : 'service/hopgate.service',
    ]);
    const { code, out } = await ran([join(to, name, 'hopgate'), 'version', '--json']);
    expect([code, JSON.parse(out)]).toEqual([0, expect.objectContaining({ version })]);
    const head = readFileSync(join(release.folders[0], '../../.git/HEAD'), 'utf8').trim();
    expect(JSON.parse(out).commit).toBe(head);
  });

  test('the bill of materials names bundled packages and no development ones', () => {
    const bill = JSON.parse(read(release.folders[0], 'sbom.cdx.json')) as {
      bomFormat: string;
      metadata: { component: { version: string } };
      components: { name: string; version: string; purl: string; licenses: unknown[] }[];
      dependencies: { ref: string; dependsOn: string[] }[];
    };
    expect(bill.bomFormat).toBe('CycloneDX');
    expect(bill.metadata.component.version).toBe(version);
    const names = bill.components.map(({ name }) => name);
    for (const name of ['elysia', 'yaml', 'pino', 'bun']) expect(names).toContain(name);
    const lock = JSON.parse(
      readFileSync(join(import.meta.dir, '../../package-lock.json'), 'utf8'),
    ) as {
      packages: Record<string, { version: string; dev?: boolean }>;
    };
    const shipped = Object.entries(lock.packages)
      .filter(([path, { dev }]) => path !== '' && dev !== true)
      .map(([path, { version: of }]) => `${path.split('node_modules/').at(-1)}@${of}`);
    const unexpected = bill.components
      .filter(({ name }) => name !== 'bun')
      .map(({ name, version: of }) => `${name}@${of}`)
      .filter((one) => !shipped.includes(one));
    expect(unexpected).toEqual([]);
    expect(names.filter((name) => name === 'hopgate')).toEqual([]);
    for (const { name, version: of, licenses, purl } of bill.components) {
      expect(licenses).toHaveLength(1);
      expect(purl).toBe(`pkg:npm/${name.replace('@', '%40')}@${of}`);
    }
    expect(bill.dependencies[0]!.dependsOn).toHaveLength(bill.components.length);
  });

  test('every bundled package is in the notices with its own licence text', async () => {
    const [folder] = release.folders;
    const name = `hopgate-${version}-${release.target}`;
    const { out } = await ran([
      'tar',
      '-xzOf',
      join(folder, `${name}.tar.gz`),
      `${name}/THIRD-PARTY-NOTICES.txt`,
    ]);
    const bill = JSON.parse(read(folder, 'sbom.cdx.json')) as {
      components: { name: string; version: string; type: string }[];
    };
    const own = bill.components.filter(({ type }) => type === 'library');
    expect(own.length).toBeGreaterThan(20);
    for (const part of own) {
      const at = out.indexOf(`\n${part.name} ${part.version} (`);
      const text = out.slice(at, out.indexOf('-'.repeat(80), at));
      // Every licence states permissions, or disclaims a warranty.
      expect([part.name, at > 0, /permi|redistribut|warrant/i.test(text)]).toEqual([
        part.name,
        true,
        true,
      ]);
    }
  });
});

test('the executable stays below 140 MB and answers within a second', async () => {
  const { size, start } = await measure(await binary());
  console.log(`executable ${size.toFixed(1)} MB, first answer after ${start.toFixed(0)} ms`);
  expect(size).toBeLessThan(140);
  expect(start).toBeLessThan(1000);
}, 60_000);

describe('archives built by this repository', () => {
  const entries = withFolders([
    file('top/b.txt', 'b\n'),
    file('top/deep/run', '#!/bin/sh\necho hello\n', 0o755),
    file('top/a.bin', new Uint8Array(1025).fill(7)),
  ]);

  test('tar unpacks the archives with their modes, times and folders', async () => {
    const to = scratchFolder('tar');
    await Bun.write(join(to, 'x.tar.gz'), gzip(tar(entries, 1_700_000_000)));
    const { code, err } = await ran(['tar', '-xzf', 'x.tar.gz'], { cwd: to });
    expect([code, err]).toEqual([0, '']);
    expect((await ran([join(to, 'top/deep/run')])).out).toBe('hello\n');
    expect(readFileSync(join(to, 'top/a.bin'))).toHaveLength(1025);
    const { out } = await ran(['tar', '-tvzf', 'x.tar.gz', '--utc'], { cwd: to });
    expect(out.split('\n')[0]).toMatch(/^drwxr-xr-x root\/root +0 2023-11-14 22:13 top\/$/);
  });

  test('a path that ustar cannot hold is an error, not a cut name', () => {
    expect(() => tar([file('a'.repeat(101), '')], 0)).toThrow('too long');
  });

  test('ar pads odd members, so that the next one starts where readers expect it', () => {
    const bytes = ar(
      [
        ['odd', new TextEncoder().encode('123')],
        ['next', new Uint8Array(0)],
      ],
      5,
    );
    const text = new TextDecoder().decode(bytes);
    expect(text.indexOf('next') % 2).toBe(0);
    expect(text).toStartWith(
      '!<arch>\nodd             5           0     0     100644  3         `\n123\n',
    );
  });
});

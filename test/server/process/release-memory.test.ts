/** Releases the pages of the program that only its start needed, and no others. */

import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { bundleIn } from '../../../src/server/process/embedded-program.ts';
import {
  cleanMappings,
  mappedAt,
  releaseProgramPages,
} from '../../../src/server/process/release-memory.ts';
import { binary } from '../../support/binary.ts';

const LINUX = process.platform === 'linux';

const mapping = (
  range: string,
  mode: string,
  path: string,
  anonymous: number,
  offset = '00000000',
) =>
  [
    `${range} ${mode} ${offset} fe:00 10108974                           ${path}`,
    'Rss:                5920 kB',
    'Private_Dirty:         0 kB',
    `Anonymous:           ${anonymous} kB`,
    'AnonHugePages:         0 kB',
    'VmFlags: rd ex mr mw me sd',
  ].join('\n');

test('mappings that are writable, were written to, or belong to another file are kept', () => {
  const program = '/opt/my tools/hopgate';
  const smaps = [
    mapping('00200000-01a39000', 'r--p', program, 0),
    mapping('01a40000-0684a000', 'r-xp', program, 0),
    mapping('0684a000-0685f000', 'rw-p', program, 0),
    mapping('0685f000-06867000', 'r--p', program, 12),
    mapping('7f83a0000000-7f83a0100000', 'r-xp', '/usr/lib/libc.so.6', 0),
    mapping('7f83a0200000-7f83a0300000', 'r--p', '', 0),
    mapping('7f83a0400000-7f83a0500000', 'r-xp', `${program} (deleted)`, 0),
    mapping('7ffd00000000-7ffd00021000', 'rw-p', '[stack]', 0),
  ].join('\n');
  expect(cleanMappings(smaps, program)).toEqual([
    { from: 0x200000, to: 0x1a39000 },
    { from: 0x1a40000, to: 0x684a000 },
  ]);
  expect(cleanMappings('', program)).toEqual([]);
});

test.skipIf(!LINUX)('the resident part of the program shrinks, and the program goes on', () => {
  const resident = () =>
    Number(/RssFile:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]);
  const before = resident();
  releaseProgramPages();
  expect(resident()).toBeLessThan(before - 4096);
  expect(JSON.parse('{"still":["here"]}')).toEqual({ still: ['here'] });
});

test('bytes of a file are found where it is mapped in one piece, in whole pages', () => {
  const program = '/opt/hopgate';
  const smaps = [
    mapping('00200000-01a39000', 'r--p', program, 0),
    mapping('0684a000-0685f000', 'rw-p', program, 8, '06641000'),
    mapping('06867000-083c1000', 'rw-p', program, 40, '0665e000'),
  ].join('\n');
  const range = { from: 0x6819000, to: 0x81b4df1 };
  expect(mappedAt(smaps, program, range, 4096)).toEqual({ from: 0x6a22000, to: 0x83bd000 });
  expect(mappedAt(smaps, program, { from: 0x6819001, to: 0x681a001 }, 4096)).toEqual({
    from: 0x6a23000,
    to: 0x6a23000,
  });
  expect(mappedAt(smaps, program, { from: 0x6650000, to: 0x6660000 }, 4096)).toBeUndefined();
  expect(mappedAt(smaps, '/opt/other', range, 4096)).toBeUndefined();
});

test.skipIf(!LINUX)('the bundle is found in the executable, and in no other file', async () => {
  const program = await binary();
  const range = bundleIn(program);
  const bytes = await Bun.file(program).slice(range?.from, range?.to).bytes();
  expect(Buffer.from(bytes).includes('hopgate listening on')).toBe(true);
  expect(range!.to - range!.from).toBeLessThan(Bun.file(program).size);
  for (const path of [import.meta.path, '/no/such/file', '/dev/null']) {
    expect(bundleIn(path)).toBeUndefined();
  }
});

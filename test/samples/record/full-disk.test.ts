/** A disk that is nearly full: the last of its room is not for samples, but for what must not be lost. */

import { expect, test } from 'bun:test';
import type { StatsFs } from 'node:fs';
import { Recorder } from '../../../src/samples/record/recorder.ts';
import { exchange, JSON_TYPE, play, scratch, told } from './support.ts';

const MB = 2 ** 20;
const disk = (size: number, free: number, files = 1e6, ffree = files): StatsFs => ({
  type: 0,
  bsize: MB,
  frsize: MB,
  blocks: size,
  bfree: free,
  bavail: free,
  files,
  ffree,
});

/** @returns how many of these disks' exchanges were recorded, and the problems */
async function recorded(stats: () => StatsFs) {
  const { root, files, remove } = scratch();
  const problems: string[] = [];
  const recorder = new Recorder({
    root,
    mode: 'all',
    statfs: async () => stats(),
    warn: (message) => problems.push(message),
  });
  const given = exchange({ body: '{"model":"m"}' });
  const recording = recorder.begin(given)!;
  play(recording, { sent: '{"model":"m"}', answer: ['{"choices":[]}'] });
  recording.clientStart(200, JSON_TYPE);
  recording.clientChunk('{"choices":[]}');
  recording.end(told());
  await recorder.flush();
  const count = files().filter((file) => file.includes(given.id)).length;
  const { held, dropped } = recorder.counters();
  await recorder.close();
  remove();
  return { files: count, held, dropped, problems: problems.map((one) => one.replace(root, '')) };
}

const FULL = {
  files: 0,
  held: 0,
  dropped: 1,
  problems: ['samples: cannot write to  (the disk is nearly full)'],
};
const ROOM = { files: 5, held: 0, dropped: 0, problems: [] };

test.each([
  ['of 100 GB has 65 MB', disk(100_000, 65), ROOM],
  ['of 100 GB has 63 MB', disk(100_000, 63), FULL],
  ['of 100 MB has 6 MB', disk(100, 6), ROOM],
  ['of 100 MB has 4 MB', disk(100, 4), FULL],
  ['has 900 entries of a million', disk(100_000, 9000, 1e6, 900), FULL],
  ['counts no entries', disk(100_000, 9000, 0, 0), ROOM],
])('a disk that %s', async (_, stats, expected) => {
  expect(await recorded(() => stats)).toEqual(expected);
});

test('a disk that cannot be asked is written to', async () => {
  const fails = () => {
    throw new Error('no such file');
  };
  expect(await recorded(fails)).toEqual(ROOM);
});

/** What may be kept of bodies fits into the memory of the container, whatever the configuration says. */

import { expect, test } from 'bun:test';
import { keptBytes } from '../../src/app/configured.ts';

const MB = 2 ** 20;
const DEFAULTS = { unfinishedBytes: 256 * MB, runningBytes: 1024 * MB, historyBytes: 256 * MB };

test.each([
  ['a container of 512 MB', 512, 1, [64, 128, 64]],
  ['a container of 1 GB, as the chart makes it', 1024, 1, [128, 256, 128]],
  ['the same with four processes', 1024, 4, [32, 64, 32]],
  ['a machine of 64 GB', 65_536, 1, [256, 1024, 256]],
  ['a system that does not tell', 0, 1, [256, 1024, 256]],
])('%s', (_, memory, workers, expected) => {
  const kept = keptBytes({ limits: DEFAULTS, workers }, memory * MB);
  expect([kept.unfinishedBytes, kept.runningBytes, kept.historyBytes]).toEqual(
    expected.map((one) => one * MB),
  );
});

test('no limit stays none, and nothing stays nothing', () => {
  const limits = { unfinishedBytes: 0, runningBytes: 0, historyBytes: 0 };
  expect(keptBytes({ limits, workers: 1 }, 512 * MB)).toEqual(limits);
});

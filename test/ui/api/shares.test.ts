/** Live lists and jobs: one key does not take the places of all. */

import { expect, test } from 'bun:test';
import type { Viewer } from '../../../src/ui/api/guard.ts';
import { createJobs, type JobSpec } from '../../../src/ui/api/jobs/jobs.ts';
import { createLive, type LiveSources } from '../../../src/ui/api/live.ts';

const viewer = (owner: string) => ({ key: owner, owner }) as unknown as Viewer;

const opened = (open: () => unknown): boolean => {
  try {
    open();
    return true;
  } catch {
    return false;
  }
};

test('the live lists of one key leave room for those of others, and closed ones make room', () => {
  const sources = {
    options: { config: () => ({ workers: 1 }) },
    watch: () => () => {},
    store: { list: () => [] },
    prices: {},
  } as unknown as LiveSources;
  const live = createLive(sources);
  const aborts: AbortController[] = [];
  const follow = (owner: string) =>
    opened(() => {
      const abort = new AbortController();
      const request = new Request('http://x/ui/api/live', { signal: abort.signal });
      live.open(request, {}, viewer(owner));
      aborts.push(abort);
    });
  const got = Array.from({ length: 100 }, () => follow('greedy')).filter(Boolean).length;
  expect(got).toBeGreaterThan(1);
  expect(got).toBeLessThan(32);
  expect(follow('modest')).toBe(true);
  aborts[0]!.abort();
  expect(follow('greedy')).toBe(true);
  live.close();
});

test('the jobs of one key leave room for those of others', async () => {
  const jobs = createJobs();
  const spec = {
    kind: 'replay',
    sample: 'req_1',
    stage: 'client-request',
    total: 1,
    run: async (signal) => {
      while (!signal.aborted) await Bun.sleep(5);
      return {} as never;
    },
  } as JobSpec;
  const start = (owner: string) => opened(() => jobs.start(spec, viewer(owner)));
  expect(Array.from({ length: 10 }, () => start('greedy')).filter(Boolean)).toHaveLength(2);
  expect(start('modest')).toBe(true);
  await jobs.close();
});

/** Samples on disk and in memory as one store: what is on disk may come after the page. */

import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RECENT_LIMITS } from '../../../src/samples/record/recent.ts';
import type { Prices } from '../../../src/samples/replay/cost.ts';
import type { ExportedSample } from '../../../src/samples/sample.ts';
import { openSampleStore } from '../../../src/samples/store/sample-store.ts';
import { withRecent } from '../../../src/ui/api/recent-store.ts';

const SAMPLE: ExportedSample = {
  hopgate_sample: 1,
  meta: {
    id: 'req_1_one',
    entry: 'openai-chat',
    state: 'done',
    time: 1,
    status: 200,
    notes: [],
    masked: 0,
    edges: [],
  },
  files: [],
};

test('a folder that comes after the page is searched as any other', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-recent-'));
  const root = join(folder, 'samples');
  const disk = openSampleStore(root, true);
  const nothing = {
    limits: RECENT_LIMITS,
    rows: () => [],
    read: async () => {},
    find: () => undefined,
  };
  const store = withRecent(disk, nothing, () => ({ of: () => undefined }) as unknown as Prices);
  expect(store.texts.progress()).toEqual({ all: 0, unread: 0 });
  const { id } = disk.import(SAMPLE);
  expect(store.texts.unread(10)).toEqual([id]);
  disk.close();
  rmSync(folder, { recursive: true, force: true });
});

/** An erased space is removed in steps of a few events: each is overwritten, and that takes a while. */

import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_LIMITS } from '../../../../src/features/memory/event.ts';
import { openMemoryStore } from '../../../../src/features/memory/store/memory-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'hopgate-sweep-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('two hundred events are not removed in one go', () => {
  const store = openMemoryStore({ path: join(folder, 'm.db'), limits: () => DEFAULT_LIMITS });
  const tags = Array.from({ length: 32 }, (_, i) => `tag ${i}`);
  const event = { time: 0, text: 'words', source: '', tags, importance: 0.5 };
  store.add('s', Array(200).fill(event));
  expect(store.forget('s', 1)).toBe(200);
  let steps = 0;
  while (store.sweep()) steps++;
  expect(steps).toBeGreaterThanOrEqual(20);
  store.close();
});

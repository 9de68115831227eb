/** Locks of the shared database by number: one that two rooms take lets the work of one wait for the other's. */

import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const SRC = join(import.meta.dir, '../../src');

/**
 * Not the same lock: money names its spools by two numbers, which Postgres keeps apart from single ones; the memory
 * mixes the number into the hashes of names.
 */
const APART: ReadonlySet<string> = new Set(['money 7496232', 'features/memory 7496233']);

test('no two rooms take the same advisory lock', () => {
  const rooms = new Map<string, Set<string>>();
  for (const path of new Bun.Glob('**/*.ts').scanSync({ cwd: SRC })) {
    const text = readFileSync(join(SRC, path), 'utf8');
    if (!text.includes('advisory')) continue;
    const room = /^(?:features\/[^/]+|[^/]+)/.exec(path)![0];
    for (const [written] of text.matchAll(/\b7_?496_?\d{3}\b/g)) {
      const number = written.replaceAll('_', '');
      if (APART.has(`${room} ${number}`)) continue;
      rooms.set(number, (rooms.get(number) ?? new Set()).add(room));
    }
  }
  expect(rooms.size).toBeGreaterThan(5);
  const shared = [...rooms].filter(([, by]) => by.size > 1);
  expect(shared.map(([number, by]) => [number, ...by])).toEqual([]);
});

/** What one key makes does not push out the samples of another. */

import { expect, test } from 'bun:test';
import type { SampleRow } from '../../../src/samples/sample.ts';
import { memoryIndex } from '../../../src/samples/store/index-store.ts';
import { overdue, type Retention } from '../../../src/samples/store/retention.ts';

const NONE: Retention = { keepDays: 0, keepFailedDays: 0, maxBytes: 0, maxCount: 0 };
const NOW = 1_700_000_000_000;

const row = (n: number, owner: string, more: Partial<SampleRow>): SampleRow => ({
  id: `req_${NOW + n}_abc`,
  entry: 'openai-chat',
  state: 'done',
  time: NOW + n,
  model: 'm',
  target: 'p/m',
  status: 404,
  error: '',
  failed: true,
  stream: false,
  tries: 1,
  hops: 1,
  notes: '',
  input_tokens: 1,
  output_tokens: 1,
  cached_tokens: null,
  cache_write_tokens: null,
  cache_write_1h_tokens: null,
  reasoning_tokens: null,
  first_byte_ms: 1,
  total_ms: 2,
  session: '',
  owner,
  client: '',
  made_by: '',
  bytes: 100,
  ...more,
});

/** Removes step by step what is over the limits; how many each owner has left. */
function left(rows: readonly SampleRow[], limits: Partial<Retention>, step: number) {
  const index = memoryIndex();
  index.put(rows);
  for (;;) {
    const gone = overdue(index, { ...NONE, ...limits }, NOW, step).map(({ id }) => id);
    expect(new Set(gone).size).toBe(gone.length);
    if (gone.length === 0) break;
    index.remove(gone);
  }
  const owners = index.list({}).map(({ owner }) => owner);
  index.close();
  return Object.fromEntries(
    [...new Set(owners)].sort().map((one) => [one, owners.filter((o) => o === one).length]),
  );
}

const KINDS: readonly (readonly [string, Partial<SampleRow>])[] = [
  ['failed', { failed: true }],
  ['successful', { failed: false, status: 200 }],
];
for (const [kind, more] of KINDS) {
  // Those of the quiet keys are the oldest.
  const rows = [
    ...Array.from({ length: 5 }, (_, n) => row(n, 'quiet', more)),
    ...Array.from({ length: 8 }, (_, n) => row(10 + n, 'other', more)),
    ...Array.from({ length: 60 }, (_, n) => row(100 + n, 'loud', more)),
  ];
  test.each([1, 7, 200])(
    `of too many ${kind} ones those of the key with most go, %d in a step`,
    (step) => {
      expect(left(rows, { maxCount: 20 }, step)).toEqual({ loud: 7, other: 8, quiet: 5 });
      expect(left(rows, { maxCount: 6 }, step)).toEqual({ loud: 2, other: 2, quiet: 2 });
    },
  );

  test.each([1, 200])(
    `of too large ${kind} ones those of the key with most bytes go, %d in a step`,
    (step) => {
      const large = rows.map((one) => (one.owner === 'loud' ? { ...one, bytes: 10_000 } : one));
      expect(left(large, { maxBytes: 50_000 }, step)).toEqual({ loud: 4, other: 8, quiet: 5 });
    },
  );
}

test('among those of one key the oldest go first, and running ones stay', () => {
  const index = memoryIndex();
  index.put([row(0, 'a', { state: 'open' }), row(1, 'a', {}), row(2, 'a', {}), row(3, 'a', {})]);
  const gone = overdue(index, { ...NONE, maxCount: 2 }, NOW);
  expect(gone.map(({ time }) => time - NOW)).toEqual([1, 2]);
  expect(overdue(index, { ...NONE, maxBytes: 1 }, NOW)).toHaveLength(3);
  index.close();
});

/** Rows of the index are written once: what one of them could take back costs no file beside. */

import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SampleRow } from '../../../src/samples/sample.ts';
import { openIndex } from '../../../src/samples/store/index-store.ts';

const row = (n: number): SampleRow => ({
  id: `req_${1_700_000_000_000 + n}_abc`,
  entry: 'openai-chat',
  state: 'done',
  time: 1_700_000_000_000 + n,
  model: 'm',
  target: 'p/m',
  status: 200,
  error: '',
  failed: false,
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
  owner: '',
  client: '',
  made_by: '',
  bytes: 100,
});

const IO = '/proc/self/io';
const written = () => Number(/^wchar: (\d+)$/m.exec(readFileSync(IO, 'latin1'))?.[1]);

test.skipIf(!existsSync(IO))(
  'rows in one transaction are not copied page by page for each row',
  () => {
    const root = mkdtempSync(join(tmpdir(), 'hopgate-index-'));
    const index = openIndex(root);
    try {
      index.put(Array.from({ length: 1000 }, (_, n) => row(n)));
      const before = written();
      const many = Array.from({ length: 500 }, (_, n) => row(1000 + n));
      index.put(many);
      // About 300 bytes a row in the table and its indexes, in pages; ten pages for each row would be 20 MB.
      expect(written() - before).toBeLessThan(500 * 4096);
      expect(index.totals(false)).toEqual({ count: 1500, bytes: 150_000 });
    } finally {
      index.close();
      rmSync(root, { recursive: true, force: true });
    }
  },
);

test('totals and what texts have lost their sample are right without triggers', () => {
  const root = mkdtempSync(join(tmpdir(), 'hopgate-index-'));
  const index = openIndex(root);
  const db = new Database(join(root, 'index.db'));
  try {
    expect(db.query("SELECT 1 FROM sqlite_master WHERE type = 'trigger'").all()).toEqual([]);
    index.put([row(1), row(2), { ...row(3), failed: true, bytes: 7 }]);
    // One that is replaced: larger, and failed in the end.
    index.put([{ ...row(2), failed: true, bytes: 30 }, row(4), { ...row(4), bytes: 50 }]);
    index.remove([row(1).id, 'req_1_unknown']);
    expect(index.totals(false)).toEqual({ count: 1, bytes: 50 });
    expect(index.totals(true)).toEqual({ count: 2, bytes: 37 });
    expect(db.query('SELECT sample FROM unsaid ORDER BY sample').values()).toEqual([[1], [2], [5]]);
  } finally {
    db.close();
    index.close();
    rmSync(root, { recursive: true, force: true });
  }
});

/** The store on disk: chains, owners, bounds, crashes, damage, and two processes at once. */

import { Database } from 'bun:sqlite';
import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import type { StoredResponse, StoreOptions } from '../../../src/features/response-store/index.ts';
import {
  type LocalResponses,
  openResponseStore,
} from '../../../src/features/response-store/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { nameHash } from '../../../src/state/erasures.ts';

const dirs: string[] = [];
const open: LocalResponses[] = [];

function newPath(): string {
  const dir = mkdtempSync(join(tmpdir(), 'hopgate-responses-'));
  dirs.push(dir);
  return join(dir, 'state', 'responses.db');
}

function store(options: StoreOptions = {}): LocalResponses {
  const made = openResponseStore({ path: newPath(), ...options });
  open.push(made);
  return made;
}

afterEach(() => {
  for (const one of open.splice(0)) one.close();
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

const say = (text: string): JsonObject => ({ type: 'message', role: 'user', content: text });

function row(id: string, previous?: string, more: Partial<StoredResponse> = {}): StoredResponse {
  const output: JsonObject[] = [
    { type: 'message', id: `msg_${id}`, role: 'assistant', content: `to ${id}` },
  ];
  return {
    id,
    owner: '',
    created: 1_700_000_000,
    previous,
    model: 'm',
    input: [say(`in ${id}`)],
    output,
    response: { id, object: 'response', status: 'completed', output },
    ...more,
  };
}

const itemsOf = (s: LocalResponses, id: string, owner = '') => {
  const chain = s.chain(id, owner);
  return 'missing' in chain ? `missing ${chain.missing}` : chain.items;
};

describe('chains', () => {
  test('a chain equals its links put together, whether queued, written or both', () => {
    const link = fc.record({
      // The distance back to the link it continues, so that chains have branches.
      back: fc.nat(5),
      inputs: fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 3 }),
      outputs: fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 3 }),
      flush: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(link, { minLength: 1, maxLength: 40 }), (links) => {
        const s = store();
        const expected: JsonObject[][] = [];
        const wrap = (values: unknown[]): JsonObject[] =>
          values.map((value) => ({ type: 'x', value: JSON.parse(JSON.stringify(value)) as Json }));
        links.forEach(({ back, inputs, outputs, flush }, i) => {
          const parent = i - 1 - back;
          const input = wrap(inputs);
          const output = wrap(outputs);
          const previous = parent >= 0 ? `resp_${parent}` : undefined;
          s.put(row(`resp_${i}`, previous, { input, output }));
          expected.push([...(parent >= 0 ? expected[parent]! : []), ...input, ...output]);
          if (flush) s.flush();
        });
        for (let i = 0; i < links.length; i++) {
          expect(itemsOf(s, `resp_${i}`)).toEqual(expected[i]!);
        }
        s.flush();
        expect(itemsOf(s, `resp_${links.length - 1}`)).toEqual(expected.at(-1)!);
        s.close();
      }),
      { numRuns: 25 },
    );
  });

  test('a deleted link in the middle is named as missing, before and after the write', () => {
    const s = store();
    s.put(row('resp_a'));
    s.put(row('resp_b', 'resp_a'));
    s.put(row('resp_c', 'resp_b'));
    expect(s.delete('resp_b', '')).toBe(true);
    expect(itemsOf(s, 'resp_c')).toBe('missing resp_b');
    s.flush();
    expect(itemsOf(s, 'resp_c')).toBe('missing resp_b');
    expect(itemsOf(s, 'resp_a')).toHaveLength(2);
    expect(s.delete('resp_b', '')).toBe(false);
    expect(s.get('resp_b', '')).toBeUndefined();
  });

  test('a cycle ends as a missing link instead of hanging', () => {
    const s = store();
    s.put(row('resp_a', 'resp_b'));
    s.put(row('resp_b', 'resp_a'));
    expect(itemsOf(s, 'resp_b')).toBe('missing resp_b');
    s.flush();
    expect(itemsOf(s, 'resp_a')).toBe('missing resp_a');
  });

  test('a thousand links come back whole: no recursion limit, no quadratic file', () => {
    const path = newPath();
    const s = store({ path });
    for (let i = 0; i < 1000; i++) s.put(row(`resp_${i}`, i > 0 ? `resp_${i - 1}` : undefined));
    s.flush();
    expect(itemsOf(s, 'resp_999')).toHaveLength(2000);
    s.close();
    expect(statSync(path).size).toBeLessThan(2_000_000);
  });

  test('long numbers in items stay exact digit for digit', () => {
    const s = store();
    const exact = (JSON as unknown as { rawJSON(text: string): Json }).rawJSON(
      '1234567890123456789',
    );
    s.put(row('resp_n', undefined, { input: [{ type: 'x', n: exact }] }));
    s.flush();
    expect(JSON.stringify(itemsOf(s, 'resp_n'))).toContain('1234567890123456789');
  });
});

describe('owners', () => {
  test('another owner finds nothing, deletes nothing, and may use the same id', () => {
    for (const flush of [false, true]) {
      const s = store();
      s.put(row('resp_x', undefined, { owner: 'ann', model: 'ann-model' }));
      if (flush) s.flush();
      expect(s.get('resp_x', 'bob')).toBeUndefined();
      expect(s.get('resp_x', '')).toBeUndefined();
      expect(s.delete('resp_x', 'bob')).toBe(false);
      expect(itemsOf(s, 'resp_x', 'bob')).toBe('missing resp_x');
      s.put(row('resp_x', undefined, { owner: 'bob', model: 'bob-model' }));
      s.put(row('resp_y', 'resp_x', { owner: 'bob' }));
      if (flush) s.flush();
      expect(s.get('resp_x', 'ann')?.model).toBe('ann-model');
      expect(s.get('resp_x', 'bob')?.model).toBe('bob-model');
      expect(s.delete('resp_x', 'bob')).toBe(true);
      expect(s.get('resp_x', 'ann')?.model).toBe('ann-model');
    }
  });

  test('a link cannot reach into another owner’s chain', () => {
    const s = store();
    s.put(row('resp_a', undefined, { owner: 'ann' }));
    s.put(row('resp_b', 'resp_a', { owner: 'bob' }));
    s.flush();
    expect(itemsOf(s, 'resp_b', 'bob')).toBe('missing resp_a');
  });
});

describe('items', () => {
  test('an output item is found by its id, queued, written and after a restart, by its owner alone', () => {
    const path = newPath();
    const s = store({ path });
    s.put(row('resp_a', undefined, { owner: 'ann' }));
    s.put(row('resp_b', 'resp_a', { owner: 'ann' }));
    const item = row('resp_a').output[0]!;
    for (const one of [s, s]) {
      expect(one.items(['msg_resp_a'], 'ann').get('msg_resp_a')?.item).toEqual(item);
      expect(one.items(['msg_resp_a'], 'bob').get('msg_resp_a')?.item).toBeUndefined();
      expect(one.items(['msg_other'], 'ann').get('msg_other')?.item).toBeUndefined();
      s.flush();
    }
    s.close();
    const again = store({ path });
    expect(again.items(['msg_resp_a'], 'ann').get('msg_resp_a')?.item).toEqual(item);
    again.delete('resp_a', 'ann');
    expect(again.items(['msg_resp_a'], 'ann').get('msg_resp_a')?.item).toBeUndefined();
    again.flush();
    expect(again.items(['msg_resp_a'], 'ann').get('msg_resp_a')?.item).toBeUndefined();
    expect(again.items(['msg_resp_b'], 'ann').get('msg_resp_b')?.item).toBeDefined();
  });
});

describe('bounds', () => {
  test('idle conversations are pruned as a whole, so no chain within the limits is cut', () => {
    const step = fc.record({ thread: fc.nat(7), wait: fc.nat(20) });
    fc.assert(
      fc.property(fc.array(step, { minLength: 30, maxLength: 120 }), (steps) => {
        let now = 1_000_000;
        const s = store({ limits: { rows: 25, age: 100 }, now: () => now });
        const threads = new Map<number, string[]>();
        steps.forEach(({ thread, wait }, i) => {
          now += wait;
          const ids = threads.get(thread) ?? [];
          const previous = ids.at(-1);
          // A client starts a new thread after the error, and so does this test.
          const alive = previous !== undefined && !('missing' in s.chain(previous, ''));
          const next = alive ? [...ids, `resp_${i}`] : [`resp_${i}`];
          s.put(row(`resp_${i}`, alive ? previous : undefined));
          s.flush();
          threads.set(thread, next);
          let storedCount = 0;
          for (const list of threads.values()) {
            const chain = s.chain(list.at(-1)!, '');
            // The whole chain, or a clear answer that names the missing link.
            if ('missing' in chain) expect(list).toContain(chain.missing);
            else {
              expect(chain.items).toHaveLength(list.length * 2);
              storedCount += list.length;
            }
          }
          // A conversation larger than the limit loses its beginning.
          if (next.length <= 25) expect(itemsOf(s, `resp_${i}`)).toHaveLength(next.length * 2);
          expect(storedCount).toBeLessThanOrEqual(25);
        });
        s.close();
      }),
      { numRuns: 12 },
    );
  });

  test('bytes are limited, and the latest conversation survives', () => {
    const path = newPath();
    const s = store({ path, limits: { bytes: 200_000 } });
    const big = say('x'.repeat(10_000));
    for (let i = 0; i < 100; i++) s.put(row(`resp_${i}`, undefined, { input: [big] }));
    s.flush();
    expect(s.get('resp_99', '')).toBeDefined();
    expect(s.get('resp_0', '')).toBeUndefined();
    s.close();
    const db = new Database(path);
    const { bytes, rows } = db
      .query('SELECT total(bytes) AS bytes, count(*) AS rows FROM responses')
      .get() as { bytes: number; rows: number };
    const counted = db
      .query('SELECT total(bytes) AS bytes, total(rows) AS rows FROM threads')
      .get();
    db.close();
    expect(bytes).toBeLessThanOrEqual(200_000);
    expect(rows).toBeGreaterThan(10);
    expect(counted).toEqual({ bytes, rows });
  });

  test('continuing a conversation keeps it; an idle one expires', () => {
    let now = 0;
    const s = store({ limits: { age: 1000 }, now: () => now });
    s.put(row('resp_used'));
    s.put(row('resp_idle'));
    s.flush();
    now = 900;
    expect(itemsOf(s, 'resp_used')).toHaveLength(2);
    s.flush();
    now = 1500;
    s.flush();
    expect(s.get('resp_idle', '')).toBeUndefined();
    expect(s.get('resp_used', '')).toBeDefined();
  });

  test('a row replaced many times is counted once', () => {
    const path = newPath();
    const s = store({ path });
    for (let i = 0; i < 5; i++) {
      s.put(row('resp_same', undefined, { model: `m${i}` }));
      s.flush();
    }
    expect(s.get('resp_same', '')?.model).toBe('m4');
    s.close();
    const db = new Database(path);
    expect(db.query('SELECT count(*) AS n, total(rows) AS rows FROM threads').get()).toEqual({
      n: 1,
      rows: 1,
    });
    db.close();
  });
});

describe('the file', () => {
  test('rows survive closing and opening, and only the owner may read the file', () => {
    const path = newPath();
    const first = store({ path });
    first.put(row('resp_a'));
    first.put(row('resp_b', 'resp_a'));
    expect(first.persistent).toBe(true);
    for (const suffix of ['', '-wal', '-shm']) {
      expect(statSync(path + suffix).mode & 0o777).toBe(0o600);
    }
    first.close();
    const second = store({ path });
    expect(itemsOf(second, 'resp_b')).toHaveLength(4);
    expect(second.get('resp_a', '')).toEqual(row('resp_a'));
  });

  test('a write reaches the file by itself, without flush', async () => {
    const path = newPath();
    const s = store({ path, flushAfter: 10 });
    s.put(row('resp_a'));
    await Bun.sleep(150);
    const db = new Database(path, { readonly: true });
    expect(db.query('SELECT id FROM responses').all()).toEqual([{ id: 'resp_a' }]);
    db.close();
  });

  test('a process that is killed loses at most what was not flushed', async () => {
    const path = newPath();
    const module = new URL('../../../src/features/response-store/index.ts', import.meta.url).href;
    const script = `
      const { openResponseStore } = await import(${JSON.stringify(module)});
      const s = openResponseStore({ path: ${JSON.stringify(path)}, flushAfter: 60000 });
      const put = (id, previous) => s.put({ id, owner: '', created: 1, previous, model: 'm', input: [{ n: id }], output: [], response: { id } });
      put('resp_a'); put('resp_b', 'resp_a'); s.flush();
      put('resp_c', 'resp_b');
      process.kill(process.pid, 'SIGKILL');
      await new Promise(() => {});`;
    const child = Bun.spawn([process.execPath, '-e', script], {
      stdout: 'ignore',
      stderr: 'ignore',
    });
    await child.exited;
    expect(child.signalCode).toBe('SIGKILL');
    const s = store({ path });
    expect(s.persistent).toBe(true);
    expect(itemsOf(s, 'resp_b')).toEqual([{ n: 'resp_a' }, { n: 'resp_b' }]);
    expect(itemsOf(s, 'resp_c')).toBe('missing resp_c');
  });

  test('two processes write the same file and neither loses a row', async () => {
    const path = newPath();
    const module = new URL('../../../src/features/response-store/index.ts', import.meta.url).href;
    const script = (name: string) => `
      const { openResponseStore } = await import(${JSON.stringify(module)});
      const s = openResponseStore({ path: ${JSON.stringify(path)}, flushAfter: 1, warn: (m) => console.error(m) });
      for (let i = 0; i < 150; i++) {
        s.put({ id: 'resp_${name}' + i, owner: '', created: 1, previous: i ? 'resp_${name}' + (i - 1) : undefined, model: 'm', input: [{ n: i }], output: [], response: {} });
        if (i % 10 === 0) await Bun.sleep(1);
      }
      for (let i = 0; i < 100 && !s.persistent; i++) { await Bun.sleep(50); s.flush(); }
      s.close();`;
    const children = ['p', 'q'].map((name) =>
      Bun.spawn([process.execPath, '-e', script(name)], { stdout: 'ignore', stderr: 'pipe' }),
    );
    for (const child of children) expect(await child.exited).toBe(0);
    const s = store({ path });
    const expected = Array.from({ length: 150 }, (_, i) => ({ n: i }));
    expect(itemsOf(s, 'resp_p149')).toEqual(expected);
    expect(itemsOf(s, 'resp_q149')).toEqual(expected);
  });

  test('a file that is not a database: a warning, and memory is used instead', () => {
    const path = newPath();
    const first = store({ path });
    first.close();
    writeFileSync(path, 'this is not a database, whatever its name says. '.repeat(200));
    const warnings: string[] = [];
    const s = store({ path, warn: (message) => warnings.push(message) });
    s.put(row('resp_a'));
    s.flush();
    expect(s.persistent).toBe(false);
    expect(itemsOf(s, 'resp_a')).toHaveLength(2);
    expect(s.delete('resp_a', '')).toBe(true);
    expect(s.get('resp_a', '')).toBeUndefined();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(path);
  });

  test('a file that is damaged while in use is dropped without an exception', () => {
    const path = newPath();
    const first = store({ path });
    for (let i = 0; i < 200; i++) first.put(row(`resp_${i}`));
    first.close();
    const size = statSync(path).size;
    const db = new Database(path);
    db.run('PRAGMA journal_mode = DELETE');
    db.close();
    const bytes = new Uint8Array(size - 4096).fill(0x5a);
    const head = Bun.file(path).slice(0, 4096);
    return head.bytes().then((page) => {
      writeFileSync(path, Buffer.concat([page, bytes]));
      const warnings: string[] = [];
      const s = store({ path, warn: (message) => warnings.push(message) });
      expect(s.get('resp_7', '')).toBeUndefined();
      s.put(row('resp_new'));
      s.flush();
      expect(itemsOf(s, 'resp_new')).toHaveLength(2);
      expect(warnings.length).toBeGreaterThan(0);
      expect(s.persistent).toBe(false);
    });
  });

  test('a file locked by another process: rows wait in memory and are written once it is free', () => {
    const path = newPath();
    let now = 0;
    const warnings: string[] = [];
    const s = store({ path, now: () => now, warn: (message) => warnings.push(message) });
    const other = new Database(path);
    other.run('BEGIN IMMEDIATE');
    s.put(row('resp_a'));
    s.flush();
    expect(warnings).toHaveLength(1);
    expect(itemsOf(s, 'resp_a')).toHaveLength(2);
    other.run('COMMIT');
    other.close();
    now += 10_000;
    s.flush();
    const db = new Database(path, { readonly: true });
    expect(db.query('SELECT id FROM responses').all()).toEqual([{ id: 'resp_a' }]);
    db.close();
  });

  test('a file of a newer version is left unchanged', () => {
    const path = newPath();
    store({ path }).close();
    const db = new Database(path);
    db.run('PRAGMA user_version = 99');
    db.close();
    const warnings: string[] = [];
    const s = store({ path, warn: (message) => warnings.push(message) });
    expect(s.persistent).toBe(false);
    expect(warnings[0]).toContain('newer version');
  });

  test('memory without a file has limits too', () => {
    const s = openResponseStore({ limits: { memoryRows: 10 } });
    for (let i = 0; i < 50; i++) s.put(row(`resp_${i}`));
    s.flush();
    expect(s.get('resp_49', '')).toBeDefined();
    expect(s.get('resp_40', '')).toBeDefined();
    expect(s.get('resp_39', '')).toBeUndefined();
    s.close();
  });
});

describe('erasing a memory space', () => {
  const path = (file: string) => [file, `${file}-wal`];
  const holds = (file: string, message: string) =>
    path(file).some((one) => existsSync(one) && readFileSync(one).includes(message));

  test('erasing removes what the space made, written or queued, and nothing else', () => {
    const file = newPath();
    const stored = store({ path: file });
    stored.put(row('a1', undefined, { space: nameHash('alice'), input: [say('the zebra')] }));
    stored.put(row('b1', undefined, { space: nameHash('bob') }));
    stored.put(row('c1'));
    stored.flush();
    stored.put(row('a2', 'a1', { space: nameHash('alice') }));
    expect(holds(file, 'the zebra')).toBe(true);
    stored.eraseSpace('alice');
    stored.flush();
    expect(['a1', 'a2', 'b1', 'c1'].map((id) => stored.get(id, '')?.id)).toEqual([
      undefined,
      undefined,
      'b1',
      'c1',
    ]);
    expect(holds(file, 'the zebra')).toBe(false);
    expect(holds(file, 'alice')).toBe(false);
  });

  test('a row that another process wrote late is removed a moment later', async () => {
    const file = newPath();
    const [one, other] = [store({ path: file }), store({ path: file, flushAfter: 300 })];
    other.put(row('a1', undefined, { space: nameHash('alice') }));
    one.eraseSpace('alice');
    await Bun.sleep(2_500);
    expect([one.get('a1', ''), other.get('a1', '')]).toEqual([undefined, undefined]);
  });
});

test('a file of the version without spaces is migrated and loses nothing', () => {
  const file = newPath();
  const first = openResponseStore({ path: file });
  first.put(row('old'));
  first.close();
  const db = new Database(file);
  db.run('DROP INDEX responses_space');
  db.run('ALTER TABLE responses DROP COLUMN space');
  db.run('ALTER TABLE responses DROP COLUMN keeper');
  db.run('PRAGMA user_version = 1');
  db.close();
  const after = store({ path: file });
  after.put(row('new', 'old', { space: nameHash('alice') }));
  after.flush();
  expect(after.get('old', '')).toEqual(row('old'));
  expect(itemsOf(after, 'new')).toHaveLength(4);
  after.eraseSpace('alice');
  expect(after.get('new', '')).toBeUndefined();
});

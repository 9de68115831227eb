/** The file of stored responses: crashes, damage, other processes, files of older and newer versions, erasing. */

import { Database } from 'bun:sqlite';
import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClientContext } from '../../../src/codecs/codec.ts';
import { responseIdentity } from '../../../src/codecs/openai-responses/reply/response-object.ts';
import type {
  ResponseStore,
  ResponseStoreOptions,
  StoredResponse,
} from '../../../src/features/response-store/index.ts';
import { parseJson } from '../../../src/lib/json/json.ts';
import { requestId } from '../../../src/lib/text/ids.ts';
import { nameHash } from '../../../src/state/erasures.ts';
import { oldFile } from '../../support/old-responses.ts';
import { conversation, fileStore, itemText, say, storedRow } from '../../support/stored-rows.ts';
import { until } from '../../support/until.ts';

const dirs: string[] = [];
const opened: ResponseStore[] = [];

function newPath(): string {
  const dir = mkdtempSync(join(tmpdir(), 'hopgate-responses-'));
  dirs.push(dir);
  return join(dir, 'state', 'responses.db');
}

function open(path: string, options: ResponseStoreOptions = {}): ResponseStore {
  const made = fileStore(path, options);
  made.open();
  opened.push(made);
  return made;
}

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

const get = async (store: ResponseStore, id: string, owner = '') =>
  (await store.fetch({ responses: [id] }, owner)).get(id, owner);
const idsIn = (path: string): unknown[] => {
  const db = new Database(path, { readonly: true });
  const rows = db.query('SELECT id FROM responses').all() as { id: string }[];
  db.close();
  return rows.map(({ id }) => id);
};

/** As the codec makes it where the vendor gives none. */
function ownId(): string {
  const context = { requestId: requestId(), request: { model: 'm' } };
  return responseIdentity(undefined, context as unknown as ClientContext).id;
}

/** A program that uses the store in the file as a gateway does. */
function program(path: string, options: string, body: string) {
  const module = new URL('../../support/stored-rows.ts', import.meta.url).href;
  const script = `
    const { fileStore, storedRow } = await import(${JSON.stringify(module)});
    const s = fileStore(${JSON.stringify(path)}, ${options});
    ${body}`;
  return Bun.spawn([process.execPath, '-e', script], { stdout: 'ignore', stderr: 'inherit' });
}

test('rows survive closing and opening, and only the owner may read the file', async () => {
  const path = newPath();
  const first = open(path);
  first.put(storedRow('resp_a', undefined, { began: 1 }));
  first.put(storedRow('resp_b', 'resp_a'));
  expect(first.persistent).toBe(true);
  for (const suffix of ['', '-wal', '-shm']) {
    expect(statSync(path + suffix).mode & 0o777).toBe(0o600);
  }
  await first.close();
  const second = open(path);
  expect(await conversation(second, 'resp_b')).toHaveLength(4);
  expect(await get(second, 'resp_a')).toEqual(
    storedRow('resp_a', undefined, { began: 1 }) as StoredResponse,
  );
  expect(await itemText(second, 'msg_resp_a')).toBe('to resp_a');
});

test('a file that is removed is told, and what comes is in a new one', async () => {
  const path = newPath();
  const warnings: string[] = [];
  const store = open(path, { path, warn: (message) => warnings.push(message) });
  store.put(storedRow('resp_a'));
  await store.flush();
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
  store.put(storedRow('resp_b'));
  await store.flush();
  expect(warnings).toEqual([`response store: ${path}: the file was removed while it was in use`]);
  expect(idsIn(path)).toEqual(['resp_b']);
  store.put(storedRow('resp_c'));
  await store.flush();
  expect(warnings).toHaveLength(1);
});

test('a write reaches the file by itself, without flush', async () => {
  const path = newPath();
  open(path, { flushMs: 10 }).put(storedRow('resp_a'));
  await until(() => idsIn(path).length === 1);
});

test('long numbers in items stay exact digit for digit, and a thousand links take little room', async () => {
  const path = newPath();
  const store = open(path);
  const value = parseJson('{"type":"x","n":1234567890123456789}') as never;
  store.put(storedRow('resp_n', undefined, { input: [value] }));
  for (let i = 0; i < 1000; i++) store.put(storedRow(`resp_${i}`, `resp_${i - 1}`));
  await store.close();
  expect(JSON.stringify((await get(open(path), 'resp_n'))?.input)).toContain('1234567890123456789');
  expect(statSync(path).size).toBeLessThan(2_000_000);
});

test('an id of any form is kept in a file', async () => {
  const path = newPath();
  const ids = ['x'.repeat(600), 'nul\0', 'half \ud800'];
  const first = open(path);
  for (const [i, id] of ids.entries()) first.put(storedRow(id, ids[i - 1]));
  await first.close();
  expect(await conversation(open(path), ids[1]!)).toHaveLength(4);
});

test('a process that is killed loses at most what was not flushed', async () => {
  const path = newPath();
  const child = program(
    path,
    '{ flushMs: 60000 }',
    `s.put(storedRow('resp_a')); s.put(storedRow('resp_b', 'resp_a')); await s.flush();
     s.put(storedRow('resp_c', 'resp_b'));
     process.kill(process.pid, 'SIGKILL');
     await new Promise(() => {});`,
  );
  await child.exited;
  expect(child.signalCode).toBe('SIGKILL');
  const store = open(path);
  expect(store.persistent).toBe(true);
  expect(await conversation(store, 'resp_b')).toHaveLength(4);
  expect(await conversation(store, 'resp_c')).toBe('missing resp_c');
});

test('beside other processes, what was sent survives a kill, and they find it', async () => {
  const path = newPath();
  const other = open(path, { others: true });
  const child = program(
    path,
    '{ others: true }',
    `s.put(storedRow('resp_a')); s.put(storedRow('resp_b', 'resp_a')); await s.sent();
     process.kill(process.pid, 'SIGKILL');
     await new Promise(() => {});`,
  );
  await child.exited;
  expect(await conversation(other, 'resp_b')).toHaveLength(4);
});

test.each([
  ['of this gateway without keys', ownId(), ''],
  ['of any form with a key', 'resp_a', 'ci'],
])(
  'an id %s, which the process before has still to write, is found by its successor',
  async (_, id, owner) => {
    const path = newPath();
    const [before, successor] = [open(path), open(path)];
    before.put(storedRow(id, undefined, { owner }));
    expect(await get(successor, id, owner)).toMatchObject({ id });
  },
);

test('two processes write the same file and neither loses a row', async () => {
  const path = newPath();
  const body = (name: string) => `
    for (let i = 0; i < 150; i++) {
      s.put(storedRow('resp_${name}' + i, i ? 'resp_${name}' + (i - 1) : undefined));
      if (i % 10 === 0) await Bun.sleep(1);
    }
    for (let i = 0; i < 100 && !s.persistent; i++) { await Bun.sleep(50); await s.flush(); }
    await s.close();`;
  const children = ['p', 'q'].map((name) => program(path, '{ flushMs: 1 }', body(name)));
  for (const child of children) expect(await child.exited).toBe(0);
  const store = open(path);
  for (const name of ['p', 'q']) {
    expect(await conversation(store, `resp_${name}149`)).toHaveLength(300);
  }
});

test('a file that is not a database: a warning, and memory is used instead', async () => {
  const path = newPath();
  await open(path).close();
  writeFileSync(path, 'this is not a database, whatever its name says. '.repeat(200));
  const warnings: string[] = [];
  const store = open(path, { warn: (message) => warnings.push(message) });
  store.put(storedRow('resp_a'));
  await store.flush();
  expect(store.persistent).toBe(false);
  expect(await conversation(store, 'resp_a')).toHaveLength(2);
  expect(await store.change('resp_a', '', (row) => ({ ...row, model: 'changed' }))).toBe(true);
  expect((await get(store, 'resp_a'))?.model).toBe('changed');
  expect(await store.delete('resp_a', '')).toBe(true);
  expect(await get(store, 'resp_a')).toBeUndefined();
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain(path);
});

test('a file that is damaged while in use is dropped without an exception', async () => {
  const path = newPath();
  const first = open(path);
  for (let i = 0; i < 200; i++) first.put(storedRow(`resp_${i}`));
  await first.close();
  const { size } = statSync(path);
  const db = new Database(path);
  db.run('PRAGMA journal_mode = DELETE');
  db.close();
  const page = await Bun.file(path).slice(0, 4096).bytes();
  writeFileSync(path, Buffer.concat([page, new Uint8Array(size - 4096).fill(0x5a)]));
  const warnings: string[] = [];
  const store = open(path, { warn: (message) => warnings.push(message) });
  const found = await get(store, 'resp_7').catch(({ code }) => code);
  expect([undefined, 'stored_responses_unavailable']).toContain(found as never);
  store.put(storedRow('resp_new'));
  await store.flush();
  expect(await conversation(store, 'resp_new')).toHaveLength(2);
  expect(warnings.length).toBeGreaterThan(0);
  expect(store.persistent).toBe(false);
});

test('a file locked by another process: rows wait in memory and are written once it is free', async () => {
  const path = newPath();
  const warnings: string[] = [];
  const store = open(path, { warn: (message) => warnings.push(message) });
  const other = new Database(path);
  other.run('BEGIN IMMEDIATE');
  store.put(storedRow('resp_a'));
  await store.flush();
  expect(warnings).toHaveLength(1);
  expect(await conversation(store, 'resp_a')).toHaveLength(2);
  other.run('COMMIT');
  other.close();
  await until(() => idsIn(path).length === 1);
});

test('a deletion and an erasure wait for another process that writes', async () => {
  const path = newPath();
  const store = open(path);
  store.put(storedRow('resp_a'));
  store.put(storedRow('resp_b', undefined, { space: nameHash('alice') }));
  await store.flush();
  const other = new Database(path);
  other.run('BEGIN IMMEDIATE');
  const gone = Promise.all([store.delete('resp_a', ''), store.eraseSpace('alice')]);
  await Bun.sleep(50);
  other.run('COMMIT');
  other.close();
  await gone;
  expect(idsIn(path)).toEqual([]);
});

test('a file of a newer version is left unchanged', async () => {
  const path = newPath();
  await open(path).close();
  const db = new Database(path);
  db.run('PRAGMA user_version = 99');
  db.close();
  const warnings: string[] = [];
  const store = open(path, { warn: (message) => warnings.push(message) });
  expect(store.persistent).toBe(false);
  expect(warnings[0]).toContain('newer version');
});

const holds = (file: string, text: string) =>
  [file, `${file}-wal`].some((one) => existsSync(one) && readFileSync(one).includes(text));

describe('erasing a memory space', () => {
  test('erasing removes what the space made, written or queued, and nothing else', async () => {
    const path = newPath();
    const store = open(path, { flushMs: 1e6 });
    const input = [say('the zebra')];
    store.put(storedRow('a1', undefined, { space: nameHash('alice'), input }));
    store.put(storedRow('b1', undefined, { space: nameHash('bob') }));
    store.put(storedRow('c1'));
    await store.flush();
    store.put(storedRow('a2', 'a1', { space: nameHash('alice') }));
    expect(holds(path, 'the zebra')).toBe(true);
    await store.eraseSpace('alice');
    await store.flush();
    const left = await Promise.all(['a1', 'a2', 'b1', 'c1'].map((id) => get(store, id)));
    expect(left.map((row) => row?.id)).toEqual([undefined, undefined, 'b1', 'c1']);
    expect(holds(path, 'the zebra')).toBe(false);
    expect(holds(path, 'msg_a1')).toBe(false);
    expect(holds(path, 'alice')).toBe(false);
  });

  test('a row that another process had still to write does not come', async () => {
    const path = newPath();
    const [one, other] = [open(path), open(path, { flushMs: 1e6 })];
    other.put(storedRow('a1', undefined, { space: nameHash('alice') }));
    await one.eraseSpace('alice');
    await other.flush();
    expect([await get(one, 'a1'), await get(other, 'a1')]).toEqual([undefined, undefined]);
  });
});

describe('a file of version 3, as it was made then', () => {
  test('is migrated and loses nothing', async () => {
    const path = newPath();
    oldFile(path);
    const store = open(path);
    expect(await conversation(store, 'resp_b')).toEqual([
      'in resp_a',
      'to resp_a',
      'in resp_b',
      'to resp_b',
    ]);
    expect(await conversation(store, 'resp_a', 'ann')).toEqual([
      '奥斯陆 \u0000 "quoted"',
      'to resp_a',
    ]);
    expect(await itemText(store, 'msg_resp_b')).toBe('to resp_b');
    expect(await get(store, 'resp_a')).toMatchObject({
      ...storedRow('resp_a', undefined, { created: 1_790_000_000 }),
    } as object);
    expect((await get(store, 'resp_b'))?.keeper).toBe('vendor');
    const erasedBefore = { space: nameHash('bob'), began: 1_790_000_040_000 };
    store.put(storedRow('resp_late', undefined, erasedBefore));
    store.put(storedRow('resp_next', 'resp_b', { space: nameHash('alice') }));
    await store.flush();
    expect(await conversation(store, 'resp_next')).toHaveLength(6);
    expect(await get(store, 'resp_late')).toBeUndefined();
    const db = new Database(path, { readonly: true });
    const threads = db
      .query('SELECT count(DISTINCT thread) AS n FROM responses WHERE owner = ? AND id <> ?')
      .get('', 'resp_late');
    db.close();
    // That of the chain, of the one with a space, and of the one that was moved here.
    expect(threads).toEqual({ n: 3 });
    await store.eraseSpace('alice');
    expect(await get(store, 'resp_next')).toBeUndefined();
    expect(await get(store, 'resp_s')).toBeUndefined();
    expect(holds(path, 'in resp_s')).toBe(false);
    expect(holds(path, 'in resp_a')).toBe(true);
    expect(existsSync(`${path}.v3.backup`)).toBe(true);
  });
});

/** The file of a room: what is pending is found, bounds hold over processes, a file that fails loses nothing it need not. */

import { Database } from 'bun:sqlite';
import { afterAll, describe, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ANSWERS, type LedgerEntry } from '../../../src/features/reasoning-memory/index.ts';
import { HOPS, type HopEntry } from '../../../src/features/server-tools/index.ts';
import { SHORT_RESULTS } from '../../../src/features/tool-results/index.ts';
import { DESCRIPTIONS } from '../../../src/features/vision/index.ts';
import { nameHash } from '../../../src/state/erasures.ts';
import type { Room, RoomFileKind, RoomKind } from '../../../src/state/key-value/room.ts';
import { fileRoom } from '../../support/entries.ts';
import { writesElsewhere } from '../../support/other-writer.ts';
import { until } from '../../support/until.ts';
import { OLDER_FILES } from './older-files.ts';

const dir = mkdtempSync(join(tmpdir(), 'hopgate-rooms-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
let files = 0;
const place = () => join(dir, `${files++}`, 'room.db');

interface Words {
  readonly said: string;
}

const WORDS: RoomKind<Words> = {
  name: 'words',
  title: 'ledger',
  keep: 'newest',
  hasGroups: true,
  ttlMs: 1e9,
  memory: { entries: 100, bytes: 1e6 },
  file: {
    name: 'room.db',
    version: 3,
    upgrades: {},
    entries: 100,
    bytes: 1e6,
    ageMs: 1e9,
    flushAfterMs: 1e6,
  },
};

function open(
  path: string,
  {
    keep = 'newest',
    warn,
    now,
    ...file
  }: Partial<RoomFileKind> & {
    readonly keep?: 'first' | 'newest';
    readonly warn?: (message: string) => void;
    readonly now?: () => number;
  } = {},
) {
  const room = fileRoom({ ...WORDS, keep }, path, {
    file,
    ...(warn && { warn }),
    ...(now && { now }),
  });
  const { it } = room;
  return {
    ...room,
    get empty() {
      return it.empty;
    },
    get: (key: string) => it.find([key]),
    put: (keys: readonly string[], entry: Words) => it.put(keys, entry),
  };
}

/** What the file has counted beside what is there. */
function counted(path: string) {
  const db = new Database(path);
  const totals = db.query('SELECT entries, bytes FROM totals').get();
  const real = db
    .query('SELECT count(*) AS entries, coalesce(sum(bytes), 0) AS bytes FROM entries')
    .get();
  const keys = db.query<{ n: number }, []>('SELECT count(*) AS n FROM keys').get()!.n;
  db.close();
  return { totals, real, keys };
}

describe('the file of a room', () => {
  test('what is not written yet is found, and what a closed one had is found by the next', () => {
    const path = place();
    const one = open(path);
    expect(one.empty).toBe(true);
    one.put(['a', 'b'], { said: 'x' });
    expect(one.empty).toBe(false);
    expect(one.get('b')).toEqual({ said: 'x' });
    one.close();
    const two = open(path);
    expect(two.empty).toBe(false);
    expect(two.get('a')).toEqual({ said: 'x' });
    two.close();
    expect(two.get('a')).toBeUndefined();
  });

  test('which of two entries a key leads to: before the write as after it', () => {
    for (const keep of ['first', 'newest'] as const) {
      const ledger = open(place(), { keep });
      ledger.put(['k'], { said: 'one' });
      ledger.put(['k'], { said: 'two' });
      const wanted = { said: keep === 'first' ? 'one' : 'two' };
      expect(ledger.get('k')).toEqual(wanted);
      ledger.flush();
      expect(ledger.get('k')).toEqual(wanted);
      ledger.close();
    }
  });

  test('bytes are a bound too, and the counts are right with several writers', () => {
    const path = place();
    const limits = { entries: 1000, bytes: 2000 };
    const ledgers = [open(path, limits), open(path, limits)];
    for (let i = 0; i < 40; i++) {
      const said = Array.from({ length: 20 }, () => Math.random().toString(36)).join('');
      ledgers[i % 2]!.put([`k${i}`, `q${i}`], { said });
      ledgers[i % 2]!.flush();
    }
    expect(ledgers[0]!.get('k39')).toBeDefined();
    expect(ledgers[0]!.get('k0')).toBeUndefined();
    for (const ledger of ledgers) ledger.close();
    const { totals, real, keys } = counted(path);
    expect(totals).toEqual(real);
    expect((real as { bytes: number }).bytes).toBeLessThanOrEqual(2000);
    expect(keys).toBe((real as { entries: number }).entries * 2);
  });

  test('one entry larger than all room is not kept, and ends nothing', () => {
    const path = place();
    const ledger = open(path, { entries: 10, bytes: 10 });
    ledger.put(['k'], { said: 'far more than ten bytes of words' });
    ledger.flush();
    expect(ledger.get('k')).toBeUndefined();
    ledger.close();
    expect(counted(path).totals).toEqual({ entries: 0, bytes: 0 });
  });

  test('while the file cannot be written the latest wait, and get there afterwards', () => {
    const path = place();
    const told: string[] = [];
    const ledger = open(path, {
      entries: 5000,
      bytes: 1e8,
      warn: (message) => told.push(message),
    });
    const other = new Database(path);
    other.run('BEGIN IMMEDIATE');
    ledger.put(['shared'], { said: 'old' });
    for (let i = 0; i < 600; i++) ledger.put([`k${i}`], { said: `${i}` });
    ledger.put(['shared'], { said: 'new' });
    ledger.flush();
    expect(told).toHaveLength(1);
    expect(told[0]).toStartWith('ledger: cannot write');
    // The oldest have gone, and with them nothing that a newer one says.
    expect(ledger.get('k0')).toBeUndefined();
    expect(ledger.get('shared')).toEqual({ said: 'new' });
    other.run('ROLLBACK');
    other.close();
    ledger.close();
    const after = open(path);
    expect(after.get('k599')).toEqual({ said: '599' });
    expect(after.get('shared')).toEqual({ said: 'new' });
    after.close();
  });

  test('a file that is removed is told, and what comes next is in a new one', () => {
    const path = place();
    const told: string[] = [];
    const ledger = open(path, { warn: (message) => told.push(message) });
    ledger.put(['before'], { said: 'old' });
    ledger.flush();
    rmSync(dirname(path), { recursive: true });
    ledger.put(['after'], { said: 'new' });
    ledger.flush();
    expect(told).toEqual([`ledger: ${path}: the file was removed while it was in use`]);
    ledger.close();
    const next = open(path);
    expect(next.get('after')).toEqual({ said: 'new' });
    next.close();
  });

  test('what waits at the end is written although another process writes', async () => {
    const path = place();
    const ledger = open(path);
    ledger.put(['last'], { said: 'goodbye' });
    const { over } = await writesElsewhere(path, 600);
    ledger.close();
    await over;
    const after = open(path);
    expect(after.get('last')).toEqual({ said: 'goodbye' });
    after.close();
  });

  test('an entry that cannot be read is a miss, logged once', () => {
    const path = place();
    const ledger = open(path);
    ledger.put(['k'], { said: 'x' });
    ledger.close();
    const db = new Database(path);
    db.run("UPDATE entries SET body = x'00'");
    db.close();
    const told: string[] = [];
    const again = open(path, { warn: (message) => told.push(message) });
    expect(again.get('k')).toBeUndefined();
    expect(again.get('k')).toBeUndefined();
    expect(told).toHaveLength(1);
    again.close();
  });

  test('what was used last stays longest, and what was not used for its age goes', () => {
    const path = place();
    let time = 1_000_000_000;
    const now = () => time;
    const hour = 3_600_000;
    const ledger = open(path, { entries: 3, ageMs: 10 * hour, now });
    for (const key of ['a', 'b', 'c']) {
      ledger.put([key], { said: key });
      ledger.flush();
      time += 2 * hour;
    }
    expect(ledger.get('a')).toBeDefined();
    ledger.put(['d'], { said: 'd' });
    ledger.flush();
    const there = ['a', 'b', 'c', 'd'].filter((key) => ledger.get(key) !== undefined);
    expect(there).toEqual(['a', 'c', 'd']);
    time += 11 * hour;
    ledger.put(['e'], { said: 'e' });
    ledger.flush();
    expect(ledger.get('c')).toBeUndefined();
    ledger.close();
    expect(counted(path)).toMatchObject({ totals: { entries: 1 }, keys: 1 });
  });

  test('a timer writes what was put, and only the owner can read the file', async () => {
    const path = place();
    const ledger = open(path, { flushAfterMs: 1 });
    ledger.put(['k'], { said: 'x' });
    const other = open(path);
    await until(() => other.get('k'));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    other.close();
    ledger.close();
  });

  test.each(['no database', 'no folder'])('%s: one warning, and memory is used', (what) => {
    const path = what === 'no folder' ? '/proc/nowhere/room.db' : place();
    if (what === 'no database') {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, 'this is no database, and long enough to be told apart '.repeat(20));
    }
    const told: string[] = [];
    const ledger = open(path, { warn: (message) => told.push(message) });
    expect(ledger.empty).toBe(true);
    ledger.put(['k', 'l'], { said: 'x' });
    ledger.flush();
    expect(ledger.get('l')).toEqual({ said: 'x' });
    const view = ledger.it.of('group');
    view.put(['k'], { said: 'of the group' });
    expect(view.find(['k'])).toEqual({ said: 'of the group' });
    ledger.store.eraseGroup('group');
    expect(view.find(['k'])).toBeUndefined();
    view.put(['k'], { said: 'too late' });
    expect(view.find(['k'])).toBeUndefined();
    expect(ledger.get('k')).toEqual({ said: 'x' });
    expect(told).toEqual([expect.stringContaining('keeping it in memory only')]);
    ledger.close();
    if (what === 'no database') expect(existsSync(`${path}-wal`)).toBe(false);
  });

  test('an erased group leaves no byte in the file, and waits for a file that another process writes', () => {
    const path = place();
    const ledger = open(path);
    const view = ledger.it.of('group');
    view.put(['k'], { said: 'a secret of the group' });
    ledger.put(['k'], { said: 'of all' });
    ledger.flush();
    const bytes = () =>
      ['', '-wal']
        .map((end) => path + end)
        .map((one) => (existsSync(one) ? readFileSync(one) : ''));
    expect(bytes().some((some) => some.includes('a secret of the group'))).toBe(true);
    view.put(['pending'], { said: 'another secret' });
    const other = new Database(path);
    other.run('BEGIN IMMEDIATE');
    ledger.store.eraseGroup('group');
    // A reader of this process sees nothing of it from now on.
    expect(ledger.it.of('group').find(['k', 'pending'])).toBeUndefined();
    other.run('ROLLBACK');
    other.close();
    view.put(['late'], { said: 'a late secret' });
    ledger.flush();
    expect(ledger.get('k')).toEqual({ said: 'of all' });
    expect(ledger.it.of('group').find(['k', 'pending', 'late'])).toBeUndefined();
    expect(bytes().some((some) => some.includes('secret'))).toBe(false);
    ledger.close();
    const { totals, real, keys } = counted(path);
    expect([totals, keys]).toEqual([real, 1]);
    const db = new Database(path);
    const bodies = db.query<{ body: Uint8Array }, []>('SELECT body FROM entries').all();
    db.close();
    expect(bodies.map(({ body }) => Buffer.from(Bun.zstdDecompressSync(body)).toString())).toEqual([
      '{"said":"of all"}',
    ]);
  });

  test('no trigger is left: what one write counts, it counts itself', () => {
    const path = place();
    open(path).it.put(['k'], { said: 'x' });
    const ledger = open(path);
    expect(ledger.empty).toBe(true);
    ledger.close();
    const db = new Database(path);
    expect(db.query("SELECT name FROM sqlite_master WHERE type = 'trigger'").all()).toEqual([]);
    db.close();
  });
});

describe('files of the version before', () => {
  const older = (name: keyof typeof OLDER_FILES): string => {
    const path = join(dirname(place()), name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, Bun.zstdDecompressSync(Buffer.from(OLDER_FILES[name].join(''), 'base64')));
    return path;
  };
  /** Reads with the first process, adds an entry, and reads both with the next. */
  function opened<Entry>(
    of: RoomKind<Entry>,
    path: string,
    look: (room: Room<Entry>) => void,
    added: Entry,
  ) {
    const warned: string[] = [];
    for (const process of ['first', 'next']) {
      const room = fileRoom(of, path, { warn: (message) => warned.push(message) });
      look(room.it);
      if (process === 'first') room.it.put(['added'], added);
      else expect(room.it.find(['added'])).toEqual(added);
      room.close();
    }
    expect(warned).toEqual([]);
    const db = new Database(path);
    expect(db.query("SELECT name FROM sqlite_master WHERE type = 'trigger'").all()).toEqual([]);
    const counts = db.query('SELECT entries, bytes FROM totals').get();
    const real = db.query('SELECT count(*) AS entries, sum(bytes) AS bytes FROM entries').get();
    db.close();
    expect(counts).toEqual(real);
    expect([...new Bun.Glob('*.backup').scanSync({ cwd: dirname(path) })]).toHaveLength(1);
  }
  const hop = (text: string): HopEntry => ({
    turns: [{ role: 'assistant', blocks: [{ type: 'text', text }] }],
    sources: [],
    clientCalls: [],
  });
  const answer = (text: string): LedgerEntry => ({
    id: text,
    provider: 'p',
    protocol: 'openai-chat',
    model: 'm',
    pieces: [{ type: 'reasoning', block: { type: 'reasoning', text } }],
  });

  test('hops', () => {
    const path = older('hops.db');
    opened(
      HOPS,
      path,
      (room) => {
        expect(room.find(['one'])).toEqual(hop('both'));
        expect(room.find(['two'])).toEqual(hop('newer'));
      },
      hop('added'),
    );
  });

  test('answers', () => {
    const path = older('session.db');
    opened(
      ANSWERS,
      path,
      (room) => {
        expect([room.find(['one']), room.find(['two'])]).toEqual([answer('both'), answer('both')]);
        expect(room.find(['three'])).toEqual(answer('third'));
      },
      answer('added'),
    );
  });

  test('short results', () => {
    const path = older('sent-short.db');
    opened(
      SHORT_RESULTS,
      path,
      (room) => {
        expect([room.find(['call_1 abc 2s']), room.find(['call:2 abc 2s'])]).toEqual([8192, 0]);
      },
      5,
    );
  });

  test('descriptions: those of a space stay its own, and what was erased stays so', () => {
    const path = older('descriptions.db');
    opened(
      DESCRIPTIONS,
      path,
      (room) => {
        expect(room.find(['image'])).toBe('a cat for all');
        expect(room.of(nameHash('kept')).find(['image'])).toBe('a cat of the kept space');
        expect(room.of(nameHash('gone')).find(['image'])).toBeUndefined();
      },
      'added',
    );
    const room = fileRoom(DESCRIPTIONS, path);
    room.store.eraseGroup(nameHash('kept'));
    expect(room.it.of(nameHash('kept')).find(['image'])).toBeUndefined();
    expect(room.it.find(['image'])).toBe('a cat for all');
    room.close();
  });

  test('a process of that version that still runs can write beside this one, and neither loses an entry', () => {
    const path = older('hops.db');
    // Its statements, as it has them prepared.
    const old = new Database(path);
    old.run('PRAGMA journal_mode = WAL');
    const insert = old.query<{ id: number }, [number, number, Uint8Array]>(
      'INSERT INTO entries (used, bytes, body) VALUES (?, ?, ?) RETURNING id',
    );
    const link = old.query('INSERT OR REPLACE INTO keys (key, entry) VALUES (?, ?)');
    const get = old.query<{ body: Uint8Array }, [string]>(
      'SELECT id, used, body FROM entries WHERE id = (SELECT entry FROM keys WHERE key = ?)',
    );
    const room = fileRoom(HOPS, path);
    room.it.put(['new'], hop('of the new one'));
    room.flush();
    const body = Bun.zstdCompressSync(Buffer.from(JSON.stringify(hop('of the old one'))));
    link.run('old', insert.get(Date.now(), body.length, body)!.id);
    expect(room.it.find(['old'])).toEqual(hop('of the old one'));
    expect(Buffer.from(Bun.zstdDecompressSync(get.get('new')!.body)).toString()).toBe(
      JSON.stringify(hop('of the new one')),
    );
    old.close();
    room.it.put(['last'], hop('last'));
    room.close();
    const again = fileRoom(HOPS, path, { file: { entries: 2 } });
    again.it.put(['only'], hop('only'));
    again.flush();
    expect(again.it.find(['only'])).toEqual(hop('only'));
    again.close();
  });
});

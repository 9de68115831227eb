/** The file behind the ledgers: what waits is found, bounds hold over processes, a file that fails loses nothing it need not. */

import { Database } from 'bun:sqlite';
import { afterAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ENTRIES,
  type LedgerFile,
  type LedgerKind,
  type LedgerOptions,
  openLedgerFile,
  TOTALS,
} from '../../src/state/ledger-store.ts';
import { writesElsewhere } from '../support/other-writer.ts';

const dir = mkdtempSync(join(tmpdir(), 'hopgate-ledger-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
let files = 0;
const place = () => join(dir, `${files++}.db`);

interface Words {
  readonly said: string;
}

function open(
  path: string,
  { warn, ...more }: Partial<LedgerKind> & Pick<LedgerOptions, 'warn'> = {},
): LedgerFile<Words> {
  const kind: LedgerKind = {
    name: 'ledger',
    migrations: [ENTRIES, TOTALS],
    keep: 'newest',
    limits: { entries: 100, bytes: 1e6, age: 1e9 },
    flushAfter: 1e6,
    ...more,
  };
  const ledger = openLedgerFile<Words>(kind, { path, warn });
  if (ledger === undefined) throw new Error('not opened');
  return ledger;
}

/** What the counting triggers say beside what is there. */
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

describe('a ledger file', () => {
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
    const limits = { entries: 1000, bytes: 2000, age: 1e9 };
    const ledgers = [open(path, { limits }), open(path, { limits })];
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
    const ledger = open(path, { limits: { entries: 10, bytes: 10, age: 1e9 } });
    ledger.put(['k'], { said: 'far more than ten bytes of words' });
    ledger.flush();
    expect(ledger.get('k')).toBeUndefined();
    ledger.close();
    expect(counted(path).totals).toEqual({ entries: 0, bytes: 0 });
  });

  test('a file of the version without counts is counted when it is opened', () => {
    const path = place();
    const old = open(path, { migrations: [`${ENTRIES}${TOTALS}`] });
    old.put(['a'], { said: 'x' });
    old.close();
    const db = new Database(path);
    db.run(
      'DROP TRIGGER entry_counted; DROP TRIGGER entry_uncounted; DROP TABLE totals; PRAGMA user_version = 1',
    );
    db.close();
    const now = open(path);
    expect(now.get('a')).toEqual({ said: 'x' });
    now.put(['b'], { said: 'y' });
    now.close();
    const { totals, real } = counted(path);
    expect(totals).toEqual(real);
    expect(totals).toMatchObject({ entries: 2 });
  });

  test('while the file cannot be written the latest wait, and get there afterwards', () => {
    const path = place();
    const told: string[] = [];
    const ledger = open(path, {
      limits: { entries: 5000, bytes: 1e8, age: 1e9 },
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
});

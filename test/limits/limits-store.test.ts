/** Limits with their file: restarts, kills, two generations at once, a locked database, a full disk, a damaged file. */

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Charge, Limit, Ticket, WindowLimit } from '../../src/limits/limits.ts';
import type { Reached } from '../../src/limits/notices.ts';
import { LocalKeptLimits as KeptLimits } from '../support/local-limits.ts';

let folder: string;
let path: string;
const clock = { now: 0, ticks: 0, wall: () => clock.now, monotonic: () => clock.ticks };
const open: KeptLimits[] = [];
const problems: string[] = [];
const reached: Reached[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hopgate-limits-'));
  path = join(folder, 'state', 'limits.db');
  clock.now = Date.parse('2026-06-10T10:00:00Z');
  clock.ticks = 1000;
  problems.length = 0;
  reached.length = 0;
});

afterEach(() => {
  for (const one of open.splice(0)) one.close();
  rmSync(folder, { recursive: true, force: true });
});

function start(): KeptLimits {
  const limits = new KeptLimits({
    path,
    clock,
    onProblem: (message) => problems.push(message),
    onReached: (one) => reached.push(one),
  });
  open.push(limits);
  return limits;
}

function pass(ms: number): void {
  clock.now += ms;
  clock.ticks += ms;
}

const window = (amount: number, more: Partial<WindowLimit> = {}): WindowLimit => ({
  kind: 'window',
  id: 'w',
  unit: 'nano_usd',
  amount,
  per: 'day',
  timeZone: 'UTC',
  ...more,
});
const rate = (amount: number): Limit => ({
  kind: 'rate',
  id: 'r',
  unit: 'requests',
  amount,
  periodMs: 60_000,
});
const slots = (amount: number): Limit => ({ kind: 'slots', id: 's', unit: 'exchanges', amount });

function admit(limits: KeptLimits, ...charges: Charge[]): Ticket {
  const admission = limits.admit(charges);
  if (!admission.admitted) throw new Error(`refused by ${admission.limit.id}`);
  return admission;
}
const admits = (limits: KeptLimits, ...charges: Charge[]) => limits.admit(charges).admitted;

describe('a restart', () => {
  test('keeps what windows have spent and how rates stand, exactly', () => {
    const first = start();
    admit(first, { limit: window(1000), amount: 300 }, { limit: rate(10), amount: 9 }).settle([
      250, 9,
    ]);
    first.close();
    pass(6000);
    const second = start();
    expect(second.usage([window(1000), rate(10)]).map(({ used }) => used)).toEqual([250, 8]);
    expect(admits(second, { limit: rate(10), amount: 3 })).toBe(false);
    expect(admits(second, { limit: window(1000), amount: 751 })).toBe(false);
    expect(admits(second, { limit: window(1000), amount: 750 })).toBe(true);
  });

  test('a killed process makes nothing free: what was in flight or drawn counts', () => {
    const killed = start();
    for (let i = 0; i < 20; i++)
      admit(killed, { limit: window(10_000), amount: 100 }).settle([100]);
    admit(killed, { limit: window(10_000), amount: 400 });
    // Its memory is gone, and nothing was written at an end.
    const next = start();
    const [{ used } = { used: 0 }] = next.usage([window(10_000)]);
    expect(used).toBeGreaterThanOrEqual(2400);
    expect(used).toBeLessThanOrEqual(2400 + 8 * 400);
    expect(admits(next, { limit: window(10_000), amount: 10_001 - used })).toBe(false);
  });

  test('the next period begins at nothing, and the last one is forgotten some time later', () => {
    const first = start();
    admit(first, { limit: window(100), amount: 100 }).settle([100]);
    first.close();
    pass(14 * 3_600_000);
    const second = start();
    expect(admits(second, { limit: window(100), amount: 100 })).toBe(true);
    second.close();
    const rows = () => {
      const db = new Database(path, { readonly: true });
      const { n } = db.query<{ n: number }, []>('SELECT count(*) AS n FROM windows').get()!;
      db.close();
      return n;
    };
    expect(rows()).toBe(2);
  });

  test('a clock that was set back finds the period as it was', async () => {
    const limits = start();
    admit(limits, { limit: window(100), amount: 90 }).settle([90]);
    clock.now += 40 * 24 * 3_600_000;
    admit(limits, { limit: window(100), amount: 30 }).settle([30]);
    clock.now += 40 * 24 * 3_600_000;
    admit(limits, { limit: window(100), amount: 20 }).settle([20]);
    clock.now -= 80 * 24 * 3_600_000;
    expect(admits(limits, { limit: window(100), amount: 11 })).toBe(false);
    clock.now += 40 * 24 * 3_600_000;
    // What was drawn and not used is given back by the timer.
    clock.ticks += 11_000;
    await Bun.sleep(1100);
    expect(limits.usage([window(100)])[0]!.used).toBe(30);
  });
});

describe('two generations at once', () => {
  test('never let more through than the amount, and the new one gets what the old one gives back', () => {
    const old = start();
    const limit = window(1000);
    const running = admit(old, { limit, amount: 600 });
    const next = start();
    old.handOver();
    expect(next.usage([limit])[0]!.used).toBe(600);
    expect(admits(next, { limit, amount: 401 })).toBe(false);
    admit(next, { limit, amount: 100 }).settle([100]);
    running.settle([200]);
    old.close();
    pass(200);
    expect(next.usage([limit])[0]!.used).toBe(300);
    expect(admits(next, { limit, amount: 701 })).toBe(false);
    expect(admits(next, { limit, amount: 700 })).toBe(true);
  });

  test('the slots of the old one count until they are free', async () => {
    const old = start();
    const ticket = admit(old, { limit: slots(2), amount: 1 });
    const next = start();
    old.handOver();
    admit(next, { limit: slots(2), amount: 1 });
    expect(admits(next, { limit: slots(2), amount: 1 })).toBe(false);
    ticket.settle([1]);
    old.close();
    pass(1000);
    // The timer of the new one.
    await Bun.sleep(1100);
    expect(admits(next, { limit: slots(2), amount: 1 })).toBe(true);
  });
});

describe('a file that cannot be used', () => {
  test('a locked database: limits hold in memory, one line is logged, and later it has all', async () => {
    const limits = start();
    admit(limits, { limit: window(1000), amount: 10 }).settle([10]);
    const other = new Database(path);
    other.run('BEGIN IMMEDIATE');
    for (let i = 0; i < 9; i++) {
      admit(limits, { limit: window(1000), amount: 100 }).settle([100]);
      pass(1500);
    }
    expect(admits(limits, { limit: window(1000), amount: 100 })).toBe(false);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain('locked');
    other.run('ROLLBACK');
    other.close();
    pass(1500);
    limits.close();
    expect(start().usage([window(1000)])[0]!.used).toBe(910);
  });

  test('a folder that cannot be made: the gateway goes on', () => {
    writeFileSync(join(folder, 'state'), 'not a folder');
    const limits = start();
    admit(limits, { limit: window(10), amount: 10 });
    expect(admits(limits, { limit: window(10), amount: 1 })).toBe(false);
    expect(problems).toHaveLength(1);
  });

  test.skipIf(process.platform !== 'linux')('a full disk: the same', async () => {
    // The shell's limit on the size of files stands for the disk: SQLite fails in the same place.
    const script = Bun.fileURLToPath(new URL('./full-disk-script.ts', import.meta.url));
    const shell = `trap '' XFSZ; ulimit -f 300; exec "$0" "$@"`;
    const child = Bun.spawn(['sh', '-c', shell, process.execPath, script, path], {
      stdout: 'pipe',
      stderr: 'inherit',
    });
    const text = await new Response(child.stdout).text();
    expect(await child.exited).toBe(0);
    const { admitted, refused, problems } = JSON.parse(text) as {
      admitted: number;
      refused: number;
      problems: string[];
    };
    expect({ admitted, refused }).toEqual({ admitted: 1500, refused: 1500 });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/full|I\/O/);
  });

  test('a damaged file is set aside, and this process writes its own counts anew', () => {
    const limits = start();
    admit(limits, { limit: window(1000), amount: 10 }).settle([10]);
    limits.close();
    // The first page, which says what tables there are, stays.
    writeFileSync(path, readFileSync(path).fill(7, 4096));
    const next = start();
    admit(next, { limit: window(1000), amount: 500 }).settle([500]);
    pass(1500);
    admit(next, { limit: window(1000), amount: 400 }).settle([400]);
    next.close();
    const files = readdirSync(join(folder, 'state'));
    expect(files.some((name) => name.includes('damaged'))).toBe(true);
    expect(start().usage([window(1000)])[0]!.used).toBe(900);
  });

  test('a file that is removed is told, and this process writes its own counts anew', () => {
    const limits = start();
    admit(limits, { limit: window(1000), amount: 500 }).settle([500]);
    pass(1500);
    rmSync(path);
    admit(limits, { limit: window(1000), amount: 400 }).settle([400]);
    limits.close();
    expect(problems).toEqual(['the file was removed while it was in use']);
    expect(start().usage([window(1000)])[0]!.used).toBe(900);
  });

  test('without any limit there is no file', () => {
    mkdirSync(join(folder, 'state'));
    start().close();
    expect(readdirSync(join(folder, 'state'))).toEqual([]);
  });
});

describe('marks', () => {
  test('each is reported once a period, also by the process after the next', () => {
    const limit = window(100, { marks: [50], name: 'team' });
    const first = start();
    admit(first, { limit, amount: 60 }).settle([60]);
    expect(reached.map(({ mark }) => mark)).toEqual([50]);
    first.close();
    const second = start();
    admit(second, { limit, amount: 10 }).settle([10]);
    expect(reached.map(({ mark }) => mark)).toEqual([50]);
    admit(second, { limit, amount: 30 }).settle([30]);
    expect(reached.map(({ mark }) => mark)).toEqual([50, 100]);
    clock.now += 24 * 3_600_000;
    admit(second, { limit, amount: 60 }).settle([60]);
    expect(reached.map(({ mark }) => mark)).toEqual([50, 100, 50]);
  });
});

test('the file is private', () => {
  const limits = start();
  admit(limits, { limit: window(10), amount: 1 });
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

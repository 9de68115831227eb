/** A kill: what was answered is in the ledger, once, whatever was in the database by then. */

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SpendJournal } from '../../src/money/journal.ts';
import { HOUR } from '../../src/money/schema.ts';
import { NO_TOKENS, type SpendRow } from '../../src/money/spend.ts';

let dir: string;
const open: SpendJournal[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hopgate-tail-'));
});
afterEach(() => {
  for (const journal of open.splice(0)) journal.close();
  rmSync(dir, { recursive: true, force: true });
});

const rowOf = (request: string): SpendRow => ({
  request,
  time: Date.now(),
  key: 'ci',
  labels: {},
  session: undefined,
  client: 'test',
  model: 'm',
  target: 'up/m',
  upstreamKey: undefined,
  hop: 1,
  attempt: 1,
  status: 200,
  ended: 'done',
  tokens: { ...NO_TOKENS, input: 10, output: 5 },
  estimated: false,
  cost: 1000,
  price: '{}',
  trace: undefined,
});

function journalIn(folder: string, flushAfterMs = 1e9): SpendJournal {
  const journal = new SpendJournal({
    path: join(folder, 'spend.db'),
    keepDays: () => 0,
    flushAfterMs,
    onProblem: () => {},
    onRecovered: () => {},
  });
  open.push(journal);
  return journal;
}

const NO_PROCESS = 2 ** 22 + 1;

/** The files as they are when the process is killed now. */
function killed(folder: string): string {
  const copy = join(dir, `copy-${readdirSync(dir).length}`);
  cpSync(folder, copy, { recursive: true });
  for (const name of readdirSync(copy).filter((one) => one.includes('.tail-'))) {
    const text = readFileSync(join(copy, name), 'utf8');
    const ofDead = text.replaceAll(`${process.pid}-`, `${NO_PROCESS}-`);
    rmSync(join(copy, name));
    writeFileSync(
      join(copy, name.replace(`${process.pid}-`, `${NO_PROCESS}-`)),
      ofDead.replace(`"pid":${process.pid}`, `"pid":${NO_PROCESS}`),
    );
  }
  if (existsSync(join(copy, 'spend.db'))) {
    const db = new Database(join(copy, 'spend.db'));
    db.run('UPDATE tails SET writer = replace(writer, ?, ?)', [
      `${process.pid}-`,
      `${NO_PROCESS}-`,
    ]);
    db.close();
  }
  return copy;
}

async function requestsIn(folder: string): Promise<readonly string[]> {
  const journal = journalIn(folder, 0);
  const rows = await journal.read((reader) =>
    reader.all<{ request: string }>('SELECT request FROM spend ORDER BY id'),
  );
  const [sum] = await journal.read((reader) =>
    reader.all<{ tries: number }>(`SELECT sum(tries) AS tries FROM totals WHERE span = ${HOUR}`),
  );
  expect(rows.length === 0 ? 0 : sum!.tries).toBe(rows.length);
  return rows.map(({ request }) => request).toSorted();
}

const tick = () => new Promise((resolve) => setImmediate(resolve));
const tails = (folder: string) => readdirSync(folder).filter((name) => name.includes('.tail-'));
const reserved = { reservedRow: () => rowOf('reserved') };

describe('a process that is killed', () => {
  test('after the tick in which its tries ended leaves their rows', async () => {
    const home = join(dir, 'home');
    const journal = journalIn(home);
    for (let i = 0; i < 20; i++) journal.end(journal.begin(reserved), rowOf(`req_${i}`));
    await tick();
    const copy = killed(home);
    expect(await requestsIn(copy)).toHaveLength(20);
    expect(tails(copy)).toEqual([]);
    // The next start finds nothing new.
    expect(await requestsIn(copy)).toHaveLength(20);
  });

  test('after the database has some of the rows counts none of them twice', async () => {
    const home = join(dir, 'home');
    const journal = journalIn(home);
    for (let i = 0; i < 5; i++) journal.end(journal.begin(reserved), rowOf(`req_${i}`));
    await tick();
    const before = tails(home).map((name) => [name, readFileSync(join(home, name))] as const);
    await journal.flush();
    // Killed between the write to the database and the emptying of the file.
    for (const [name, bytes] of before) writeFileSync(join(home, name), bytes);
    expect(await requestsIn(killed(home))).toHaveLength(5);
  });

  test('in the middle of a line loses that line alone', async () => {
    const home = join(dir, 'home');
    const journal = journalIn(home);
    for (let i = 0; i < 3; i++) journal.end(journal.begin(reserved), rowOf(`req_${i}`));
    await tick();
    const copy = killed(home);
    appendFileSync(join(copy, tails(copy)[0]!), '{"line":4,"row":{"requ');
    expect(await requestsIn(copy)).toEqual(['req_0', 'req_1', 'req_2']);
  });
});

test('an end in order leaves no file', async () => {
  const home = join(dir, 'home');
  const journal = journalIn(home);
  journal.end(journal.begin(reserved), rowOf('req_1'));
  await tick();
  expect(tails(home)).toHaveLength(1);
  open.pop()!.close();
  expect(tails(home)).toEqual([]);
  expect(await requestsIn(home)).toEqual(['req_1']);
});

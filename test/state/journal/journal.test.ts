/** The journal and its keeper: nothing is missing and nothing counts twice, whatever is killed when. */

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  CLOSED,
  Journal,
  type JournalOptions,
  segmentName,
} from '../../../src/state/journal/journal.ts';
import {
  type Entry,
  type JournalTables,
  Keeper,
  type KeeperOptions,
} from '../../../src/state/journal/keeper.ts';

let dir: string;
let folder: string;
const open: Journal[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hopgate-segments-'));
  folder = join(dir, 'journal');
});
afterEach(() => {
  for (const journal of open.splice(0)) journal.close();
  rmSync(dir, { recursive: true, force: true });
});

function journalIn(more: Partial<JournalOptions> = {}) {
  const events: string[] = [];
  const journal = new Journal({
    folder,
    onProblem: (message) => events.push(message),
    onRecovered: () => events.push('recovered'),
    ...more,
  });
  open.push(journal);
  return { journal, events };
}

/** Tables as a room has them: texts, in the order in which they came in. */
class Tables implements JournalTables {
  readonly db: Database;
  readonly ends: string[] = [];
  /** Thrown after the commit: its answer is lost. */
  loses = false;

  constructor(path = join(dir, 'tables.db')) {
    this.db = new Database(path, { create: true });
    this.db.run('PRAGMA busy_timeout = 5000');
    this.db.run('CREATE TABLE IF NOT EXISTS marks (writer TEXT PRIMARY KEY, n INTEGER NOT NULL)');
    this.db.run('CREATE TABLE IF NOT EXISTS texts (writer TEXT NOT NULL, text TEXT NOT NULL)');
  }

  async through(writer: string): Promise<number> {
    const row = this.db
      .query<{ n: number }, [string]>('SELECT n FROM marks WHERE writer = ?')
      .get(writer);
    return row?.n ?? 0;
  }

  async fold(
    writer: string,
    from: number,
    to: number,
    entries: readonly Entry[],
  ): Promise<boolean> {
    const done = this.db
      .transaction(() => {
        const sql =
          from === 0
            ? 'INSERT INTO marks VALUES (?1, ?2) ON CONFLICT DO NOTHING RETURNING n'
            : `UPDATE marks SET n = ?2 WHERE writer = ?1 AND n = ${from} RETURNING n`;
        if (this.db.query(sql).all(writer, to).length === 0) return false;
        for (const { value, common } of entries) {
          if (value === 'refused') throw new TypeError('no such value');
          const text = common === undefined ? String(value) : JSON.stringify([value, common]);
          this.db.query('INSERT INTO texts VALUES (?, ?)').run(writer, text);
        }
        return true;
      })
      .immediate();
    if (this.loses) throw new Error('the answer is lost');
    return done;
  }

  async ended(writer: string): Promise<void> {
    this.ends.push(writer);
  }

  async gone(): Promise<void> {}

  refuses(thrown: unknown): boolean {
    return thrown instanceof TypeError;
  }

  get texts(): readonly string[] {
    return this.db
      .query<{ text: string }, []>('SELECT text FROM texts ORDER BY rowid')
      .all()
      .map(({ text }) => text);
  }
}

function keeperOf(tables: Tables, more: Partial<KeeperOptions> = {}) {
  const refused: string[] = [];
  const keeper = new Keeper({
    folder,
    tables,
    onRefused: (message) => refused.push(message),
    ...more,
  });
  return { keeper, refused };
}

const say = (journal: Journal, ...texts: readonly string[]) => {
  for (const text of texts) journal.append(JSON.stringify(text));
};
const microtasks = async () => {
  for (let i = 0; i < 3; i++) await undefined;
};
const NO_PROCESS = 2 ** 22 + 1;
const segments = () => readdirSync(folder).filter((name) => name.endsWith('.journal'));

/** Makes its writer one of a process that is gone; the text may break off anywhere. */
function left(writer: string, text: string, number = 1): string {
  mkdirSync(folder, { recursive: true });
  const head = `0\t${JSON.stringify({ pid: NO_PROCESS, started: null })}\n`;
  const path = join(folder, segmentName(writer, number));
  writeFileSync(path, head + text);
  return path;
}
const before = (path: string, ms: number) => {
  const time = (Date.now() - ms) / 1000;
  utimesSync(path, time, time);
};

describe('entries', () => {
  test('are with the operating system before the promise that is resolved behind them', async () => {
    const { journal } = journalIn();
    say(journal, 'one', 'two', 'three');
    const answer = Promise.resolve('answer').then((text) => text);
    await answer;
    const [name] = segments();
    const lines = readFileSync(join(folder, name!), 'utf8').split('\n');
    expect(lines.slice(1)).toEqual(['1\t"one"', '2\t"two"', '3\t"three"', '']);
  });

  test('come with what they have in common, and that is one object', async () => {
    const { journal } = journalIn();
    const common = { text: 'a,\tb]\n' };
    for (const value of [['a,\tb'], { c: 1 }]) {
      journal.append(JSON.stringify(value), JSON.stringify(common));
    }
    say(journal, 'alone');
    journal.flush();
    const tables = new Tables();
    const given: unknown[] = [];
    const fold = tables.fold.bind(tables);
    tables.fold = (writer, from, to, entries) => {
      given.push(...entries.map((entry) => entry.common));
      return fold(writer, from, to, entries);
    };
    await keeperOf(tables).keeper.look();
    expect(tables.texts).toEqual([
      JSON.stringify([['a,\tb'], common]),
      JSON.stringify([{ c: 1 }, common]),
      'alone',
    ]);
    expect(given[0]).toBe(given[1]);
  });

  test('of a process that exits in the same turn are there', async () => {
    const script = join(dir, 'exits.ts');
    writeFileSync(
      script,
      `import { Journal } from ${JSON.stringify(join(import.meta.dir, '../../../src/state/journal/journal.ts'))};
const journal = new Journal({ folder: ${JSON.stringify(folder)}, onProblem: console.error, onRecovered: () => {} });
journal.append('"last"');
process.exit(0);`,
    );
    await Bun.spawn([process.execPath, script], { stderr: 'inherit' }).exited;
    const tables = new Tables();
    await keeperOf(tables).keeper.look();
    expect(tables.texts).toEqual(['last']);
  });

  test('come in their order, once, over many segments, and whole segments go', async () => {
    const { journal } = journalIn({ segmentBytes: 100 });
    const tables = new Tables();
    const { keeper } = keeperOf(tables);
    const all = Array.from({ length: 100 }, (_, i) => `entry ${i}`);
    for (const text of all) {
      say(journal, text);
      journal.flush();
    }
    expect(segments().length).toBeGreaterThan(10);
    await keeper.look();
    expect(tables.texts).toEqual(all);
    expect(segments().length).toBeLessThanOrEqual(1);
    expect(keeper.through(journal.writer)).toBe(100);
    await keeper.look();
    expect(tables.texts).toEqual(all);
  });

  test('that are longer than what is read at once are whole', async () => {
    const { journal } = journalIn();
    const long = 'é'.repeat(3_000_000);
    say(journal, 'before', long, 'behind');
    journal.flush();
    const tables = new Tables();
    await keeperOf(tables).keeper.look();
    expect(tables.texts).toEqual(['before', long, 'behind']);
  });
});

describe('a writer', () => {
  test('that ends in order leaves no file', async () => {
    const { journal } = journalIn();
    say(journal, 'one');
    journal.close();
    const tables = new Tables();
    const { keeper } = keeperOf(tables);
    await keeper.look();
    expect(tables.texts).toEqual(['one']);
    expect(tables.ends).toEqual([journal.writer]);
    expect(segments()).toEqual([]);
  });

  test('that was killed in the middle of a line loses that line alone, and its end is told once', async () => {
    const path = left('1-dead', '1\t"one"\n2\t"two"\n3\t"thr');
    const tables = new Tables();
    const { keeper } = keeperOf(tables);
    for (let i = 0; i < 3; i++) await keeper.look();
    expect(tables.texts).toEqual(['one', 'two']);
    expect(tables.ends).toEqual(['1-dead']);
    // It goes when it is certain that nobody writes it.
    expect(existsSync(path)).toBe(true);
    before(path, 120_000);
    await keeper.look();
    expect(existsSync(path)).toBe(false);
  });

  test('that was killed before its first line, or whose line the disk has damaged, holds up no other', async () => {
    const empty = left('1-empty', '');
    writeFileSync(empty, '');
    left('2-damaged', '1\t"one"\n\u0000\u0001�\tx\n2\t{"torn\n3\t"three"\n');
    const tables = new Tables();
    await keeperOf(tables).keeper.look();
    expect(tables.texts).toEqual(['one', 'three']);
  });

  test('that lives is not taken for dead by a clock that jumps, either way', async () => {
    const { journal } = journalIn();
    say(journal, 'one');
    journal.flush();
    const tables = new Tables();
    const { keeper } = keeperOf(tables, { own: new Set([journal.writer]) });
    for (const ms of [3_600_000, -3_600_000]) {
      before(join(folder, segments()[0]!), ms);
      await keeper.look();
    }
    expect(tables.ends).toEqual([]);
    say(journal, 'two');
    journal.flush();
    await keeper.look();
    expect(tables.texts).toEqual(['one', 'two']);
  });

  test('that seems dead and goes on: its entries count all the same, and its file stays', async () => {
    const { journal } = journalIn();
    say(journal, 'one');
    journal.flush();
    // Another process has stood still for two minutes.
    const path = join(folder, segments()[0]!);
    before(path, 120_000);
    const tables = new Tables();
    const { keeper } = keeperOf(tables);
    await keeper.look();
    expect(tables.ends).toEqual([journal.writer]);
    say(journal, 'two');
    journal.touch();
    journal.flush();
    await keeper.look();
    expect(tables.texts).toEqual(['one', 'two']);
    expect(existsSync(path)).toBe(true);
  });
});

describe('a folder that is removed while a journal is written', () => {
  test.each(['append', 'close'] as const)(
    'its entries are written again, once, and it is told (seen at the next %s)',
    async (next) => {
      const { journal, events } = journalIn();
      say(journal, 'one', 'two');
      await microtasks();
      const tables = new Tables();
      const { keeper } = keeperOf(tables);
      await keeper.look();
      say(journal, 'three');
      await microtasks();
      rmSync(folder, { recursive: true });
      say(journal, 'four');
      await microtasks();
      if (next === 'close') journal.close();
      else journal.rewriteIfRemoved();
      expect(events).toEqual([expect.stringContaining('removed'), 'recovered']);
      await keeper.look();
      expect(tables.texts).toEqual(['one', 'two', 'three', 'four']);
      if (next === 'append') say(journal, 'five');
      journal.close();
      await keeper.look();
      expect(tables.texts.slice(4)).toEqual(next === 'append' ? ['five'] : []);
      expect(events).toHaveLength(2);
    },
  );
});

describe('a full disk', () => {
  test('entries wait in memory, are told once, and come in their order when there is room', async () => {
    mkdirSync(dir, { recursive: true });
    writeFileSync(folder, 'in the way');
    const { journal, events } = journalIn();
    say(journal, 'one');
    await microtasks();
    say(journal, 'two');
    await microtasks();
    expect(events).toHaveLength(1);
    expect(journal.isWell).toBe(false);
    rmSync(folder);
    journal.close();
    expect(events.slice(1)).toEqual(['recovered']);
    const tables = new Tables();
    await keeperOf(tables).keeper.look();
    expect(tables.texts).toEqual(['one', 'two']);
  });

  test('more than the memory holds is refused, and so is known', () => {
    writeFileSync(folder, 'in the way');
    const { journal } = journalIn({ maxWaiting: 100 });
    const numbers = Array.from({ length: 20 }, () => journal.append('"ten bytes"'));
    expect(numbers.filter((n) => n > 0).length).toBeGreaterThan(5);
    expect(numbers.at(-1)).toBe(0);
    rmSync(folder);
  });

  test('segments that no table takes are bounded, and it is told', async () => {
    const { journal, events } = journalIn({ segmentBytes: 200, maxBytes: 1000 });
    for (let i = 0; i < 200; i++) {
      say(journal, `entry ${i}`);
      journal.flush();
    }
    expect(events).toHaveLength(1);
    expect(events[0]).toContain('wait for the database');
    const tables = new Tables();
    await keeperOf(tables).keeper.look();
    journal.close();
    await keeperOf(tables).keeper.look();
    expect(tables.texts).toEqual(Array.from({ length: 200 }, (_, i) => `entry ${i}`));
  });

  test('what is written twice, behind a line that broke off, counts once', async () => {
    left('1-torn', '1\t"one"\n2\t"tw\n1\t"one"\n2\t"two"\n3\t"three"\n');
    const tables = new Tables();
    await keeperOf(tables).keeper.look();
    expect(tables.texts).toEqual(['one', 'two', 'three']);
  });

  const LINE = '1\t[{"own":[1,2]},\t{"in":["common"]}]';
  test.each(Array.from(LINE, (_, at) => LINE.slice(0, at)))(
    'a line that broke off (%j) is no entry, and the one behind it is',
    async (torn) => {
      left('1-torn', `${torn}\n${LINE}\n2\t"two"\n`);
      const tables = new Tables();
      await keeperOf(tables).keeper.look();
      expect(tables.texts).toEqual(['[{"own":[1,2]},{"in":["common"]}]', 'two']);
    },
  );
});

describe('tables', () => {
  test('that do not take an entry: it is told and kept, and holds up no other', async () => {
    const { journal } = journalIn();
    const all = Array.from({ length: 300 }, (_, i) => (i === 77 ? 'refused' : `entry ${i}`));
    say(journal, ...all);
    journal.flush();
    const tables = new Tables();
    const { keeper, refused } = keeperOf(tables);
    await keeper.look();
    expect(tables.texts).toEqual(all.filter((text) => text !== 'refused'));
    expect(refused).toEqual(['no such value']);
    expect(readFileSync(join(folder, 'refused'), 'utf8')).toContain('\t78\t"refused"');
    journal.append('"refused"', '{"in":"common"}');
    journal.flush();
    await keeper.look();
    expect(readFileSync(join(folder, 'refused'), 'utf8')).toEndWith(
      '\t301\t"refused"\t{"in":"common"}\n',
    );
  });

  test('whose answer to a commit is lost have the entries once', async () => {
    const { journal } = journalIn();
    say(journal, 'one', 'two');
    journal.flush();
    const tables = new Tables();
    const { keeper } = keeperOf(tables);
    tables.loses = true;
    await expect(keeper.look()).rejects.toThrow('lost');
    tables.loses = false;
    say(journal, 'three');
    journal.flush();
    await keeper.look();
    expect(tables.texts).toEqual(['one', 'two', 'three']);
  });
});

test('keepers that run beside each other and are killed anywhere, and writers that end anyhow: each entry once, in order', async () => {
  const step = fc.oneof(
    fc.record({ say: fc.integer({ min: 1, max: 40 }), writer: fc.nat({ max: 2 }) }),
    fc.record({
      look: fc.nat({ max: 1 }),
      dies: fc.option(fc.nat({ max: 12 }), { nil: undefined }),
    }),
    fc.record({ both: fc.constant(true) }),
    fc.record({ closes: fc.nat({ max: 2 }) }),
  );
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      folder = join(dir, `run-${++run}`);
      const path = join(dir, `run-${run}.db`);
      const tables = [new Tables(path), new Tables(path)];
      let left = Number.POSITIVE_INFINITY;
      const at = async () => {
        await undefined;
        if (left-- <= 0) throw new Error('killed');
      };
      const keepers = tables.map((one) => keeperOf(one, { at }).keeper);
      const writers: (Journal | undefined)[] = [];
      const said = new Map<string, string[]>();
      let count = 0;
      for (const one of steps) {
        if ('say' in one) {
          const journal = writers[one.writer] ?? journalIn({ segmentBytes: 300 }).journal;
          writers[one.writer] = journal;
          const texts = Array.from({ length: one.say }, () => `entry ${++count}`);
          say(journal, ...texts);
          journal.flush();
          const known = said.get(journal.writer) ?? [];
          said.set(journal.writer, [...known, ...texts]);
        } else if ('look' in one) {
          left = one.dies ?? Number.POSITIVE_INFINITY;
          await keepers[one.look]!.look().catch(() => {});
          // The next one knows nothing of it.
          if (left <= 0) keepers[one.look] = keeperOf(tables[one.look]!, { at }).keeper;
          left = Number.POSITIVE_INFINITY;
        } else if ('both' in one) {
          await Promise.all(keepers.map((keeper) => keeper.look()));
        } else {
          writers[one.closes]?.close();
          writers[one.closes] = undefined;
        }
      }
      await keepers[0]!.look();
      for (const [writer, texts] of said) {
        const rows = tables[0]!.db
          .query<{ text: string }, [string]>(
            'SELECT text FROM texts WHERE writer = ? ORDER BY rowid',
          )
          .all(writer);
        expect(rows.map(({ text }) => text)).toEqual(texts);
      }
      for (const { db } of tables) db.close();
    }),
    { numRuns: 60 },
  );
});

/** A process that says numbers until it is killed, each acknowledged after its entry. */
test('a process that is killed at any moment has left what it acknowledged', async () => {
  const script = join(dir, 'writer.ts');
  writeFileSync(
    script,
    `import { Journal } from ${JSON.stringify(join(import.meta.dir, '../../../src/state/journal/journal.ts'))};
import { writeSync } from 'node:fs';
const journal = new Journal({ folder: ${JSON.stringify(folder)}, segmentBytes: 2000, onProblem: console.error, onRecovered: () => {} });
let n = 0;
const next = async () => {
  for (;;) {
    const text = String(++n);
    journal.append(JSON.stringify(text));
    await undefined;
    writeSync(1, text + '\\n');
    if (n % 50 === 0) await new Promise((done) => setImmediate(done));
  }
};
void next();
`,
  );
  for (let round = 0; round < 4; round++) {
    const child = Bun.spawn([process.execPath, script], { stdout: 'pipe', stderr: 'inherit' });
    const reader = child.stdout.getReader();
    let heard = '';
    while (heard.length < 500 * (round + 1))
      heard += Buffer.from((await reader.read()).value!).toString();
    child.kill('SIGKILL');
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      heard += Buffer.from(value).toString();
    }
    await child.exited;
    const tables = new Tables(join(dir, `killed-${round}.db`));
    await keeperOf(tables).keeper.look();
    const acknowledged = heard.split('\n').slice(0, -1);
    expect(tables.texts.slice(0, acknowledged.length)).toEqual(acknowledged);
    expect(tables.texts.length - acknowledged.length).toBeLessThanOrEqual(1);
    expect(readdirSync(folder).every((name) => !name.includes(CLOSED))).toBe(true);
    rmSync(folder, { recursive: true });
  }
});

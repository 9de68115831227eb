/** The search in what was said: any part of a text is found in any script, and nothing of a removed exchange stays. */

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { runAtOnce, runInSlices } from '../../../src/lib/loop/steps.ts';
import type { SampleRow } from '../../../src/samples/sample.ts';
import { openIndex, type SampleIndexFile } from '../../../src/samples/store/index-store.ts';
import { rowOf } from '../../../src/samples/store/meta.ts';
import { expectSlices } from '../../support/longest-turn.ts';

setDefaultTimeout(60_000);

let folder: string;
let index: SampleIndexFile;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hopgate-texts-'));
  index = openIndex(folder);
});
afterEach(() => {
  index.close();
  rmSync(folder, { recursive: true, force: true });
});

const idOf = (n: number) => `req_${1_790_000_000_000 + n}_a${n}`;
const row = (n: number, owner = ''): SampleRow =>
  rowOf({
    owner,
    id: idOf(n),
    entry: 'openai-chat',
    state: 'done',
    time: 1_790_000_000_000 + n,
    notes: [],
    masked: 0,
    edges: [],
  });

/** Records exchanges that add these texts. */
const record = (...all: readonly (readonly string[])[]) => {
  for (const [n, texts] of all.entries()) {
    index.put([row(n)]);
    index.texts.put(
      idOf(n),
      texts.map((text) => ({ text, added: true })),
    );
  }
};
const find = (...words: string[]) => [...runAtOnce(index.texts.find(words)).by.keys()].toSorted();
const ids = (...numbers: number[]) => numbers.map(idOf).toSorted();

describe('finding', () => {
  test('words, parts of words and both cases, in any script', () => {
    record(
      ['The Login bug in getUserName()'],
      ['用户登录失败 100%'],
      ['ログイン できません'],
      ['to'],
    );
    expect(find('login bug')).toEqual(ids(0));
    expect(find('username')).toEqual(ids(0));
    expect(find('登录')).toEqual(ids(1));
    expect(find('录失败')).toEqual(ids(1));
    expect(find('败')).toEqual(ids(1));
    expect(find('100%')).toEqual(ids(1));
    expect(find('10_%')).toEqual([]);
    expect(find('グイ')).toEqual(ids(2));
    expect(find('to')).toEqual(ids(3));
    expect(find('lo', 'getUser')).toEqual(ids(0));
    expect(find('%%')).toEqual([]);
    expect(find('"')).toEqual([]);
    expect(find('')).toEqual([]);
  });

  test('any part of three letters of any text is found', () => {
    const text = fc.string({ unit: 'grapheme-ascii', minLength: 3, maxLength: 60 });
    let recorded = 0;
    fc.assert(
      fc.property(text, fc.nat(), fc.nat(), (said, from, length) => {
        const at = from % Math.max(1, said.length - 2);
        const part = said.slice(at, at + 3 + (length % 20));
        fc.pre(said.trim() !== '' && part.trim() !== '');
        const n = ++recorded;
        index.put([row(n)]);
        index.texts.put(idOf(n), [{ text: said, added: true }]);
        expect(find(part)).toContain(idOf(n));
      }),
      { numRuns: 200 },
    );
  });

  test('words of a long text are found wherever they stand in it, also far from each other', () => {
    const filler = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => ((from + i) * 7919).toString(36)).join(' ');
    // Words at every place around the end of a piece, and of two units of text each.
    const near = Array.from(
      { length: 90 },
      (_, i) => `${filler(0, 900).slice(0, 3950 + i)} Zanzibar𝒳quartz`,
    );
    const far = `${filler(0, 4000)} quagga ${filler(4000, 9000)} 登录失败 ${filler(9000, 14_000)} ox`;
    record(...near.map((text) => [text]), [far]);
    expect(find('zanzibar𝒳quartz')).toEqual(ids(...near.keys()));
    expect(find('quagga', '录失败')).toEqual(ids(90));
    expect(find('败', 'ox')).toEqual(ids(90));
    expect(find('quagga', 'zanzibar')).toEqual([]);
    expect(find('败', 'öx')).toEqual([]);
  });

  test('a word does not begin where a piece of its text does', () => {
    record([`${'x'.repeat(3998)}qjy`, `${'x'.repeat(4001)}jqz`]);
    expect([find('qj'), find('jq'), find('jy'), find('xx')]).toEqual([[], [], [], ids(0)]);
  });

  test('an exchange that only carries a text is not found for it, unless it is the first that has it', () => {
    index.put([row(0), row(1)]);
    index.texts.put(idOf(0), [{ text: 'seen in a history', added: false }]);
    index.texts.put(idOf(1), [
      { text: 'seen in a history', added: false },
      { text: 'new words', added: true },
    ]);
    expect(find('history')).toEqual(ids(0));
    expect(find('new words')).toEqual(ids(1));
  });

  test('what is not read yet is known, also after a row was replaced', () => {
    index.put([row(0), row(1)]);
    expect(index.texts.unread(9)).toEqual([idOf(0), idOf(1)]);
    index.texts.put(idOf(0), [{ text: 'some words', added: true }]);
    expect(index.texts.progress()).toEqual({ all: 2, unread: 1 });
    index.put([row(0)]);
    expect(index.texts.unread(9)).toEqual([idOf(0), idOf(1)]);
  });
});

describe('removing', () => {
  const bytesOf = (part: string): number => {
    const db = new Database(join(folder, 'index.db'), { readonly: true });
    const tables = db
      .query<{ name: string }, []>(`SELECT name FROM sqlite_master WHERE type = 'table'`)
      .all();
    let found = 0;
    for (const { name } of tables) {
      for (const one of db.query(`SELECT * FROM "${name}"`).values()) {
        for (const value of one) {
          const text = value instanceof Uint8Array ? Buffer.from(value).toString() : String(value);
          if (text.includes(part)) found++;
        }
      }
    }
    db.close();
    return found;
  };

  test('a text goes with its last exchange, and another one has it before', () => {
    record(['only once here'], ['shared by two']);
    index.put([row(2)]);
    index.texts.put(idOf(2), [{ text: 'shared by two', added: false }]);
    index.remove([idOf(0), idOf(1)]);
    runAtOnce(index.texts.tidy());
    expect(find('only once')).toEqual([]);
    expect(find('shared by')).toEqual(ids(2));
    expect(bytesOf('only once')).toBe(0);
    index.remove([idOf(2)]);
    runAtOnce(index.texts.tidy());
    expect(bytesOf('shared')).toBe(0);
  });

  test('after an erasure no part of a text is left in the full-text tables', () => {
    record(['Zanzibar quartz'], ['unrelated']);
    expect(bytesOf('zib')).toBeGreaterThan(0);
    index.remove([idOf(0)]);
    runAtOnce(index.texts.tidy());
    runAtOnce(index.texts.scrub());
    expect(bytesOf('zib')).toBe(0);
    expect(bytesOf('qua')).toBe(0);
    expect(find('unrelated')).toEqual(ids(1));
  });
});

describe('exchanges of different keys', () => {
  const [ann, bob] = ['ann', 'bob'];
  const put = (n: number, owner: string, text: string, added: boolean) => {
    index.put([row(n, owner)]);
    index.texts.put(idOf(n), [{ text, added }]);
  };
  const found = (owner: string | undefined, ...words: string[]) => {
    const { by, partial } = runAtOnce(index.texts.find(words, owner));
    return { ids: [...by.keys()].toSorted(), partial };
  };

  test('what a key finds does not tell what another one has said', () => {
    put(0, ann, 'the launch code is 4711', true);
    for (const [n, code] of [4710, 4711, 4712].entries()) {
      put(n + 1, bob, `the launch code is ${code}`, false);
      expect(found(bob, `code is ${code}`).ids).toEqual(ids(n + 1));
    }
    expect(found(ann, '4712').ids).toEqual([]);
    expect(found(undefined, '4711').ids).toEqual(ids(0, 2));
  });

  test('a text that a key has in many exchanges belongs to its own first one, and to the next when that goes', () => {
    put(0, ann, 'said by both', true);
    put(1, bob, 'said by both', false);
    put(2, bob, 'said by both', false);
    expect(found(bob, 'both').ids).toEqual(ids(1));
    index.remove([idOf(0)]);
    runAtOnce(index.texts.tidy());
    expect(found(bob, 'both').ids).toEqual(ids(1));
    index.remove([idOf(1)]);
    runAtOnce(index.texts.tidy());
    expect(found(bob, 'both').ids).toEqual(ids(2));
  });

  test('a search is not cut short by what others said, and counts only its own unread exchanges', () => {
    put(0, bob, 'a common word of bob', true);
    for (let n = 1; n <= 2300; n++) put(n, ann, `a common word ${n}`, true);
    expect(found(bob, 'common')).toEqual({ ids: ids(0), partial: false });
    expect(found(undefined, 'common').partial).toBe(true);
    index.put([row(5000, ann), row(5001, ann)]);
    expect(index.texts.progress(bob)).toEqual({ all: 1, unread: 0 });
    expect(index.texts.progress(ann).unread).toBe(2);
  });
});

test('the full-text tables stay merged while an exchange is put: SQLite takes no more than 2000 parts', () => {
  record(Array.from({ length: 500 }, (_, n) => `a word ${(n * 7919).toString(36)}`));
  const db = new Database(join(folder, 'index.db'), { readonly: true });
  for (const table of ['text_parts', 'text_heads']) {
    const count = `SELECT count(DISTINCT segid) AS parts FROM ${table}_idx`;
    expect(db.query<{ parts: number }, []>(count).get()!.parts).toBeLessThan(100);
  }
  db.close();
});

test('an exchange that is removed while its texts are put leaves none of them', () => {
  index.put([row(0)]);
  const steps = index.texts.putInSteps(
    idOf(0),
    ['first words', 'second words', 'third words'].map((text) => ({ text, added: true })),
  );
  steps.next();
  index.remove([idOf(0)]);
  runAtOnce(steps);
  runAtOnce(index.texts.tidy());
  const { texts, said } = new Database(join(folder, 'index.db'))
    .query<{ texts: number; said: number }, []>(
      'SELECT (SELECT count(*) FROM texts) AS texts, (SELECT count(*) FROM said) AS said',
    )
    .get()!;
  expect([texts, said]).toEqual([0, 0]);
});

describe('no step of the search is long', () => {
  test('texts that repeat a letter are compared one by one', async () => {
    index.put([row(0)]);
    index.texts.put(
      idOf(0),
      Array.from({ length: 20 }, (_, i) => ({ text: `${i}aab${'a'.repeat(99_000)}`, added: true })),
    );
    const word = `${'a'.repeat(400)}b`;
    await expectSlices('a search for a repeated letter', () =>
      runInSlices(index.texts.find([word])),
    );
  });

  test('one text of many characters is put piece by piece', async () => {
    const codes = Array.from(
      { length: 100_000 },
      (_, j) => 0x4e00 + (((j * 2654435761) >>> 9) % 3001),
    );
    const said = String.fromCharCode(...codes);
    let n = 0;
    await expectSlices(
      'putting a text',
      () => runInSlices(index.texts.putInSteps(idOf(n), [{ text: `${n} ${said}`, added: true }])),
      () => index.put([row(++n)]),
    );
  });

  test('an exchange of 2 MB is put text by text', async () => {
    const texts = Array.from({ length: 20 }, (_, i) => ({
      text: Array.from({ length: 14_000 }, (_, j) => ((i * 14_000 + j) * 7919).toString(36)).join(
        ' ',
      ),
      added: true,
    }));
    let n = 0;
    await expectSlices(
      'putting 2 MB of words',
      () =>
        runInSlices(
          index.texts.putInSteps(
            idOf(n),
            texts.map(({ text }) => ({ text: `${n} ${text}`, added: true })),
          ),
        ),
      () => index.put([row(++n)]),
    );
  });
});

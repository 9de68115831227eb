/** The search in what was said: any part of a text is found in any script, and nothing of a removed exchange stays. */

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { runAtOnce } from '../../../src/lib/loop/steps.ts';
import type { SampleRow } from '../../../src/samples/sample.ts';
import { openIndex, type SampleIndexFile } from '../../../src/samples/store/index-store.ts';
import { rowOf } from '../../../src/samples/store/meta.ts';

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
const row = (n: number): SampleRow =>
  rowOf({
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

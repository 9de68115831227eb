/** Recall: which question finds which events, in which order, and never from another space. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { expectCpuBelow } from '../../support/cpu-time.ts';
import { LANGUAGES } from './recall-languages.ts';
import { EVENTS, QUESTIONS } from './recall-set.ts';
import { alone, FORMS, inList, memories } from './support.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const DAY = 86_400_000;

describe.each(FORMS)('what is found, %s', (form) => {
  const files = memories(form);

  test('questions in six further languages find what they ask for in other forms of its words', async () => {
    const { memory, book } = files.open({ path: files.path(), now: () => NOW });
    const missed: string[] = [];
    let first = 0;
    for (const { language, events, questions } of LANGUAGES) {
      const timed = events.map(({ source, text }, at) => ({
        source,
        text,
        time: NOW - ((events.length - at) * DAY) / 2,
      }));
      const added = await book.add(language, timed, alone);
      for (const { text, name } of questions) {
        const wanted = added[events.findIndex((event) => event.name === name)]![0].id;
        const found = await memory.recall(language, { query: text, limit: 8 });
        if (found[0]?.id === wanted) first++;
        if (!found.some(({ id }) => id === wanted)) missed.push(`${language}: ${text}`);
      }
    }
    // Of 102; without their words' forms 78 % are found, and half of them first.
    expect(missed).toEqual([]);
    expect(first).toBeGreaterThanOrEqual(97);
  });

  test('recall@5 over the labelled set (200 events, 60 questions) is what the manual states', async () => {
    expect([EVENTS.length, QUESTIONS.length]).toEqual([200, 60]);
    const { memory, book } = files.open({ path: files.path(), now: () => NOW });
    const ids = new Map<string, string>();
    for (const [at, [source, text, name]] of EVENTS.entries()) {
      const time = NOW - ((EVENTS.length - at) * DAY) / 2;
      const [added] = await book.add('group', [{ source, text, time }], alone);
      if (name !== undefined) ids.set(name, added![0].id);
    }
    const missed: string[] = [];
    let first = 0;
    for (const [question, ...names] of QUESTIONS) {
      const wanted = names.map((name) => ids.get(name));
      expect(wanted).not.toContain(undefined);
      const found = (await memory.recall('group', { query: question, limit: 5 })).map(
        ({ id }) => id,
      );
      if (wanted.includes(found[0]!)) first++;
      if (!found.some((id) => wanted.includes(id))) missed.push(question);
    }
    // 57 of 60; the missed ones share no word with their event, so only vectors can find them.
    expect(missed.length).toBeLessThanOrEqual(3);
    expect(first).toBeGreaterThanOrEqual(46);
    const page = await Bun.file(new URL('../../../docs/memory.md', import.meta.url)).text();
    const share = Math.round(((60 - missed.length) / 60) * 100);
    expect(page.match(/for \d+% of 60 questions/)?.[0]).toBe(`for ${share}% of 60 questions`);
  });

  test('finds two characters, one character, a mixed name, an emoji', async () => {
    const { book, recalled } = files.open({ path: files.path() });
    const texts = [
      '周末去吃火锅吧',
      '小明养了一只猫',
      '我的 iPhone17 丢了',
      'party 🎂 tonight',
      '今天天气不错',
    ];
    await book.add(
      's',
      texts.map((text) => ({ text })),
      inList,
    );
    expect((await recalled('s', '火锅'))[0]).toBe(texts[0]!);
    expect((await recalled('s', '猫'))[0]).toBe(texts[1]!);
    expect((await recalled('s', 'iphone'))[0]).toBe(texts[2]!);
    expect((await recalled('s', '🎂'))[0]).toBe(texts[3]!);
  });

  test('the source and the tags of an event are found too', async () => {
    const { book, recalled } = files.open({ path: files.path() });
    await book.add(
      's',
      [
        { text: '我不吃香菜', source: '王芳' },
        { text: 'no idea', tags: ['allergy'] },
      ],
      inList,
    );
    expect(await recalled('s', '王芳')).toEqual(['我不吃香菜']);
    expect(await recalled('s', 'allergies')).toEqual(['no idea']);
  });

  test('events without a shared word are not returned, nor any of an unknown space', async () => {
    const { book, recalled } = files.open({ path: files.path() });
    await book.add('s', [{ text: 'the boat is red' }], alone);
    expect(await recalled('s', 'telephone')).toEqual([]);
    expect(await recalled('s', '…?!')).toEqual([]);
    expect(await recalled('other', 'boat')).toEqual([]);
  });

  test('relevance counts before importance and freshness, which decide between equals', async () => {
    const { book, recalled } = files.open({ path: files.path(), now: () => NOW });
    const old = NOW - 300 * DAY;
    await book.add(
      's',
      [
        { text: 'the boat is called Albatross and lies in Kiel', time: old, importance: 0 },
        { text: 'a boat', time: NOW, importance: 1 },
        { text: 'tea is in the tin, old', time: old, importance: 0.5 },
        { text: 'tea is in the tin, new', time: NOW, importance: 0.5 },
        { text: 'cup is on the shelf, trivial', time: NOW, importance: 0 },
        { text: 'cup is on the shelf, weighty', time: NOW, importance: 1 },
      ],
      inList,
    );
    expect((await recalled('s', 'Albatross boat Kiel'))[0]).toStartWith('the boat is called');
    expect((await recalled('s', 'tea tin'))[0]).toEndWith('new');
    expect((await recalled('s', 'cup shelf'))[0]).toEndWith('weighty');
  });

  test('the limit applies, and scores decrease', async () => {
    const { book, memory } = files.open({ path: files.path() });
    await book.add(
      's',
      Array.from({ length: 30 }, (_, at) => ({ text: `apple number ${at}` })),
      inList,
    );
    const found = await memory.recall('s', { query: 'apple', limit: 7 });
    expect(found).toHaveLength(7);
    const scores = found.map(({ score }) => score);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    expect(await memory.recall('s', { query: 'apple' })).toHaveLength(10);
    expect(await memory.recall('s', { query: 'apple', limit: 0 })).toEqual([]);
  });

  test('nothing in a question is syntax', async () => {
    const { book, recalled } = files.open({ path: files.path() });
    await book.add('s', [{ text: 'plain apple' }], alone);
    for (const query of [
      '"',
      "'",
      'apple"',
      'apple" OR 1:apple',
      'NEAR(apple, 2)',
      'terms: apple',
      '^apple',
      'apple*',
      '-apple',
      'apple AND',
      '(apple',
      '; DROP TABLE events; --',
      '{terms}: apple',
      'apple\u0000x',
      '1:apple',
      '\ud83d',
    ]) {
      const found = await recalled('s', query);
      expect([query, found]).toEqual([query, /apple/.test(query) ? ['plain apple'] : []]);
    }
  });

  test('any text is stored as it is and found by itself (random Unicode)', async () => {
    const { book, texts, recalled } = files.open({ path: files.path() });
    await fc.assert(
      fc.asyncProperty(
        fc.uuid(),
        fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }), {
          minLength: 1,
          maxLength: 5,
        }),
        fc.string({ unit: 'binary' }),
        async (space, given, query) => {
          const stored = given
            .map((text) => text.toWellFormed().trim())
            .filter((text) => text !== '');
          if (stored.length === 0) return;
          await book.add(
            space,
            stored.map((text) => ({ text })),
            inList,
          );
          expect(await texts(space)).toEqual(stored);
          await recalled(space, query);
          const message = stored[0]!;
          if (/[\p{L}\p{N}]{2}/u.test(message))
            expect(await recalled(space, message, 100)).toContain(message);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('a very long question takes no longer', async () => {
    const { book, memory } = files.open({ path: files.path() });
    await book.add('s', [{ text: '阿哲怕高' }], alone);
    const query = `${'无关的话语'.repeat(50_000)}阿哲怕高`;
    await expectCpuBelow(500, async () => {
      const found = await memory.recall('s', { query });
      expect(found.map(({ text }) => text)).toEqual(['阿哲怕高']);
    });
  });
});

test('counts of common words that are kept follow a space that grows', async () => {
  const files = memories('embedded');
  const said = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => ({
      text: `boat ${(from + at) % 3 === 0 ? 'red' : 'blue'} ${from + at}`,
      time: NOW,
    }));
  const opened = () => files.open({ path: files.path(), now: () => NOW });
  const asked = (of: ReturnType<typeof opened>) =>
    of.memory.recall('s', { query: 'red boat 1205', limit: 5 });
  const asks = opened();
  await asks.book.add('s', said(0, 1100), inList);
  await asked(asks);
  await asks.book.add('s', said(1100, 1300), inList);
  const other = opened();
  await other.book.add('s', said(0, 1100), inList);
  await other.book.add('s', said(1100, 1300), inList);
  const scores = async (of: ReturnType<typeof opened>) =>
    (await asked(of)).map(({ text, score }) => [text, score]);
  expect(await scores(asks)).toEqual(await scores(other));
});

describe.each(FORMS)('spaces, %s', (form) => {
  const files = memories(form);

  const WORDS = ['苹果', '火锅', 'apple', 'Berlin', 'secret', '猫', '12', 'a'];
  const NAMES = [
    '1',
    '12',
    'a',
    'a:',
    '1:苹果',
    'A',
    '%',
    '*',
    'ａ',
    "' OR 1=1 --",
    '组/一',
    ' ',
    'mem',
  ];

  test('are strictly separate for any names and questions (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.tuple(
            fc.nat(NAMES.length - 1),
            fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 4 }),
          ),
          {
            minLength: 40,
            maxLength: 60,
          },
        ),
        fc.nat(),
        async (events, erased) => {
          const { memory, book, texts, recalled } = files.open({ path: files.path(), dedupeMs: 0 });
          const of = new Map<string, string[]>(NAMES.map((name) => [name, []]));
          for (const [at, [whose, messages]] of events.entries()) {
            const space = NAMES[whose]!;
            const text = `${messages.join(' ')} #${at}`;
            of.get(space)!.push(text);
            if (at % 2 === 0) await book.add(space, [{ text }], alone);
            else await memory.capture(space, [{ text }]);
          }
          for (const gone of ['', NAMES[erased % NAMES.length]!]) {
            if (gone !== '') {
              await memory.erase(gone);
              of.set(gone, []);
            }
            for (const name of NAMES) {
              expect((await texts(name)).toSorted()).toEqual(of.get(name)!.toSorted());
              for (const query of WORDS) {
                const found = await recalled(name, query, 100);
                expect(found.filter((text) => !of.get(name)!.includes(text))).toEqual([]);
              }
            }
          }
          await memory.close();
        },
      ),
      // All names meet in each: a database for each run costs more than the questions.
      { numRuns: 3 },
    );
  }, 60_000);

  test('do not affect each other: a score depends on its own space alone', async () => {
    const { book, memory } = files.open({ path: files.path(), now: () => NOW });
    const own = ['apple and pear', 'apple', 'pear tree'].map((text) => ({ text, time: NOW }));
    await book.add('mine', own, inList);
    const before = await memory.recall('mine', { query: 'apple pear' });
    const crowd = Array.from({ length: 500 }, (_, at) => ({ text: `apple ${at}`, time: NOW }));
    await book.add('other', crowd, inList);
    expect(await memory.recall('mine', { query: 'apple pear' })).toEqual(before);
  });

  test('an event of one space cannot be reached through another', async () => {
    const { book } = files.open({ path: files.path() });
    const event = (await book.add('mine', [{ text: 'apple' }], alone))[0]![0];
    expect(await book.get('other', event.id)).toBeUndefined();
    expect(await book.remove('other', event.id)).toBe(false);
    expect(await book.get('mine', event.id)).toMatchObject({ text: 'apple' });
    // The same id in another space is a different event.
    await book.add('other', [{ id: event.id, text: 'pear' }], alone);
    expect([
      (await book.get('mine', event.id))?.text,
      (await book.get('other', event.id))?.text,
    ]).toEqual(['apple', 'pear']);
  });

  test.each(['', '.', '..', 'x'.repeat(201), 'a\nb', '\ud800'])(
    'the name %j is refused',
    async (name) => {
      const { memory, book } = files.open({ path: files.path() });
      await expect(book.add(name, [{ text: 'x' }], alone)).rejects.toThrow(/memory space/i);
      await expect(memory.recall(name, { query: 'x' })).rejects.toMatchObject({
        status: 400,
        param: 'space',
      });
      await expect(memory.capture(name, [{ text: 'x' }])).rejects.toMatchObject({ status: 400 });
    },
  );
});

/** Events are found by what stands around them, by who said them, and by when. */

import { describe, expect, test } from 'bun:test';
import { FORMS, inList, memories } from './support.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const DAY = 86_400_000;
const MINUTE = 60_000;

describe.each(FORMS)('recall, %s', (form) => {
  const files = memories(form);
  const noise = (count: number, time: number) =>
    Array.from({ length: count }, (_, at) => ({
      text: `Nothing much happened on lap ${at}.`,
      source: at % 2 === 0 ? 'Ann' : 'Bob',
      time: time + at * DAY,
    }));
  const opened = async (events: readonly { text: string; source?: string; time: number }[]) => {
    const all = files.open({ path: files.path(), now: () => NOW });
    await all.book.add('s', [...noise(60, NOW - 90 * DAY), ...events], inList);
    return all;
  };

  test('an answer without a word of the question is found by the question before it', async () => {
    const time = NOW - 3 * DAY;
    const { recalled } = await opened([
      { text: 'How long have you and your husband been married?', source: 'Ann', time },
      { text: '5 years already! Time flies.', source: 'Bob', time: time + MINUTE },
    ]);
    const found = await recalled('s', 'How long has Bob been married to his husband?', 5);
    expect(found).toContain('5 years already! Time flies.');
  });

  test('what the named speaker said comes before the same words of another', async () => {
    const time = NOW - 3 * DAY;
    const { recalled } = await opened([
      { text: 'Hey Caroline, camping by the lake is my favourite.', source: 'Melanie', time },
      { text: 'Camping in the desert is my favourite.', source: 'Caroline', time: time - DAY },
    ]);
    expect((await recalled('s', 'What camping does Caroline like?'))[0]).toContain('desert');
    expect((await recalled('s', 'What camping does Melanie like?'))[0]).toContain('lake');
  });

  test('an event of a named day is found whatever its words', async () => {
    const { recalled } = await opened([
      {
        text: 'Made coconut soup and a pie.',
        source: 'Nate',
        time: Date.parse('2026-09-09T18:00:00Z'),
      },
      {
        text: 'I dish out a lot of dish soap.',
        source: 'Nate',
        time: Date.parse('2026-10-09T18:00:00Z'),
      },
    ]);
    expect((await recalled('s', 'What did Nate make on 9 September?'))[0]).toContain('coconut');
    expect((await recalled('s', '9月9日做了什么？'))[0]).toContain('coconut');
  });

  test('statements that differ in marks and empty words take one place, the newest; others stay', async () => {
    const { book, memory } = files.open({ path: files.path(), now: () => NOW });
    const said = (text: string, at: number, source = 'Ann') => ({
      text,
      source,
      time: NOW - (30 - at) * DAY,
    });
    await book.add(
      's',
      [
        said('I really like green tea.', 1),
        said('I like green tea!', 2),
        said('i like green tea', 3),
        said('I like green tea.', 4, 'Bob'),
        said('I do not like green tea.', 5),
        said('My PIN is 1234, like green tea.', 6),
        said('My PIN is 1235, like green tea.', 7),
        said('我喜欢绿茶。', 8),
        said('我喜欢绿茶啊！', 9),
      ],
      inList,
    );
    const found = await memory.recall('s', { query: 'like green tea', limit: 20 });
    expect(found.map(({ text, source }) => `${source}: ${text}`).toSorted()).toEqual(
      [
        'Ann: i like green tea',
        'Bob: I like green tea.',
        'Ann: I do not like green tea.',
        'Ann: My PIN is 1234, like green tea.',
        'Ann: My PIN is 1235, like green tea.',
      ].toSorted(),
    );
    const chinese = await memory.recall('s', { query: '绿茶', limit: 20 });
    expect(chinese.map(({ text }) => text)).toEqual(['我喜欢绿茶啊！']);
  });

  test('nine equal statements take one of five places', async () => {
    const { book, recalled } = files.open({ path: files.path() });
    const nine = Array.from({ length: 9 }, () => ({ text: 'The boat is red.' }));
    await book.add('s', [...nine, { text: 'The boat has a sail.' }], inList);
    expect((await recalled('s', 'boat', 5)).toSorted()).toEqual([
      'The boat has a sail.',
      'The boat is red.',
    ]);
  });

  test('a plea to forget something is never the answer to it; a command weighs like a question', async () => {
    const { book, recalled } = files.open({ path: files.path() });
    const said = (text: string, at: number) => ({ text, source: 'user', time: NOW - DAY + at });
    await book.add(
      's',
      [
        said('The PIN of my card is 4711.', 1),
        said('Please forget the PIN of my card.', 2),
        said('Can you delete what I told you about my card and PIN?', 3),
        said('请忘掉我的银行卡密码。', 4),
        said('把我的银行卡密码删掉吧', 5),
        said('我的银行卡密码是4711。', 6),
        said("Don't forget that my card expires in May.", 7),
        said('I often forget my card at home.', 8),
        said('Write a poem about my sister', 9),
        said('My sister is a nurse.', 10),
      ],
      inList,
    );
    expect((await recalled('s', 'What is the PIN of my card?')).toSorted()).toEqual(
      [
        'The PIN of my card is 4711.',
        "Don't forget that my card expires in May.",
        'I often forget my card at home.',
      ].toSorted(),
    );
    const chinese = await recalled('s', '我的银行卡密码是什么？');
    expect(chinese[0]).toBe('我的银行卡密码是4711。');
    expect(chinese.filter((text) => /忘掉|删掉/.test(text))).toEqual([]);
    expect((await recalled('s', 'sister'))[0]).toBe('My sister is a nurse.');
  });

  test("the named persona's own words count almost like others', an assistant's less", async () => {
    const time = NOW - 3 * DAY;
    const { memory } = await opened([
      { text: 'I collect vintage stamps.', source: 'Luna', time },
      { text: 'She collects vintage coins.', source: 'assistant', time: time + DAY },
    ]);
    const scores = async (speaker?: string) => {
      const found = await memory.recall('s', { query: 'vintage', ...(speaker && { speaker }) });
      return new Map(found.map(({ source, score }) => [source, score]));
    };
    const plain = await scores();
    const own = await scores('Luna');
    expect(own.get('Luna')! / plain.get('Luna')!).toBeGreaterThan(0.7);
    expect(own.get('Luna')! / plain.get('Luna')!).toBeLessThan(1);
    expect(own.get('assistant')!).toBeLessThan(own.get('Luna')!);
  });

  test('what the model said is found where it is asked for', async () => {
    const time = NOW - 3 * DAY;
    const { recalled } = await opened([
      { text: 'I like novels about the sea, novels of all kinds.', source: 'user', time },
      {
        text: 'Then Moby-Dick is one of the novels for you.',
        source: 'assistant',
        time: time + MINUTE,
      },
    ]);
    expect((await recalled('s', 'Which novels did you recommend?'))[0]).toContain('Moby-Dick');
    expect((await recalled('s', 'Which novels do I like?'))[0]).toContain('sea');
  });
});

/** What a question asks for: days and months in two languages, and what the model said. */

import { describe, expect, test } from 'bun:test';
import { namedTimes } from '../../../../src/features/memory/ranking/dates.ts';
import { readQuestion } from '../../../../src/features/memory/ranking/question.ts';

/** A Friday. */
const NOW = Date.parse('2026-11-20T12:00:00Z');
const day = (time: number) => new Date(time).toISOString().slice(0, 10);
const first = (query: string, ahead = 0) => {
  const [range] = namedTimes(query, NOW, ahead).ranges;
  return range && [day(range.since), day(range.until)];
};

describe('times that a question names', () => {
  test.each<[string, string, string]>([
    ['What did Nate make on 9 November, 2022?', '2022-11-09', '2022-11-10'],
    ['What happened on November 9th, 2022?', '2022-11-09', '2022-11-10'],
    ['What happened on 2022-11-09?', '2022-11-09', '2022-11-10'],
    ['What happened on the 3rd of May?', '2026-05-03', '2026-05-04'],
    ['Where did she go in July 2022?', '2022-07-01', '2022-08-01'],
    ['Where did she go in July?', '2026-07-01', '2026-08-01'],
    ['What did she buy in 2023?', '2023-01-01', '2024-01-01'],
    ['在5月2号我们聊了什么？', '2026-05-02', '2026-05-03'],
    ['2023年5月2日我去了哪里？', '2023-05-02', '2023-05-03'],
    ['五月十二日我去了哪里？', '2026-05-12', '2026-05-13'],
    ['我2023年5月去了哪里？', '2023-05-01', '2023-06-01'],
    ['What did I eat today?', '2026-11-20', '2026-11-21'],
    ['What did I eat yesterday?', '2026-11-19', '2026-11-20'],
    ['What did I do two days ago?', '2026-11-18', '2026-11-19'],
    ['What did I do last week?', '2026-11-09', '2026-11-16'],
    ['What did I do last weekend?', '2026-11-14', '2026-11-16'],
    ['Where was I three weeks ago?', '2026-10-26', '2026-11-02'],
    ['Where was I last month?', '2026-10-01', '2026-11-01'],
    ['What did I do last Tuesday?', '2026-11-17', '2026-11-18'],
    ['Where was I last year?', '2025-01-01', '2026-01-01'],
    ['我昨天吃了什么？', '2026-11-19', '2026-11-20'],
    ['我前天吃了什么？', '2026-11-18', '2026-11-19'],
    ['三天前我说了什么？', '2026-11-17', '2026-11-18'],
    ['上周三我去了哪里？', '2026-11-11', '2026-11-12'],
    ['上周我去了哪里？', '2026-11-09', '2026-11-16'],
    ['上个周末我去了哪里？', '2026-11-14', '2026-11-16'],
    ['上个月我去了哪里？', '2026-10-01', '2026-11-01'],
    ['我去年去了哪里？', '2025-01-01', '2026-01-01'],
  ])('%s', (query, since, until) => {
    expect(first(query)).toEqual([since, until]);
  });

  test.each([
    'May I ask who may help?',
    'What is a march?',
    'Which 5 books does she like?',
    'Did he decide on a second cat?',
    '我有几个月饼？',
    '她住在三号楼吗？',
    '13月40日',
  ])('none: %s', (query) => {
    expect(namedTimes(query, NOW, 0).ranges).toEqual([]);
  });

  test('a date without a year is looked for in several years', () => {
    const years = namedTimes('on 3 May', NOW, 0).ranges.map(({ since }) => day(since));
    expect(years).toEqual(['2026-05-03', '2025-05-03', '2024-05-03', '2023-05-03']);
  });

  test('a day is that of the one who asks', () => {
    // 12:00 in London is 20:00 in Shanghai; 18:00 is the next day there.
    const late = Date.parse('2026-11-20T18:00:00Z');
    const [range] = namedTimes('昨天', late, 8 * 3_600_000).ranges;
    expect(new Date(range!.since).toISOString()).toBe('2026-11-19T16:00:00.000Z');
  });

  test('the words of a date are not looked up', () => {
    expect(readQuestion('What did Nate make on 9 November, 2022?', NOW).terms).not.toContain(
      '2022',
    );
  });
});

describe('whose words are asked for', () => {
  test.each([
    'What book did you recommend to me?',
    'What have you told me about Lisbon?',
    'Which film was it that you suggested?',
    'What was your advice about my knee?',
    '你曾经给我推荐过哪些画家？',
    '你告诉过我哪些方法？',
    '你之前建议我怎么做？',
    '上次你说的那本书叫什么？',
  ])("the model's: %s", (query) => {
    expect(readQuestion(query, NOW).asksModel).toBe(true);
  });

  test.each([
    'What did I tell you about my dog?',
    'What did Anna recommend?',
    'Do you remember my birthday?',
    'Did I mention your name to Anna?',
    '我曾经和你推荐过一部电影，它叫什么？',
    '我跟你说过我的生日吗？',
    '我推荐过什么？',
    '你的朋友推荐了什么？',
    '你记得我的猫叫什么吗？',
  ])("others': %s", (query) => {
    expect(readQuestion(query, NOW).asksModel).toBe(false);
  });
});

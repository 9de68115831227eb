/** Long texts are cut to what is asked for, and all of a recall fits the tokens that it may take. */

import { describe, expect, test } from 'bun:test';
import type { RecalledEvent } from '../../../../src/conversation/memory.ts';
import { estimatedTokens } from '../../../../src/conversation/usage.ts';
import { partsOf } from '../../../../src/features/memory/event.ts';
import { passageOf, withinTokens } from '../../../../src/features/memory/ranking/passages.ts';

const event = (text: string, at = 0): RecalledEvent => ({
  id: `mem_${at}`,
  time: at,
  text,
  tags: [],
  importance: 0.5,
  score: 1,
});
const filling = (length: number) =>
  'The weather was fine and nothing else happened here. '.repeat(length / 53);
const long = `${filling(4000)}My allergies began in Lisbon, with peanuts. ${filling(3400)}`;
const tokens = (events: readonly RecalledEvent[]) =>
  events.reduce((sum, { text }) => sum + 30 + estimatedTokens(Buffer.byteLength(text)), 0);

describe('what a prompt gets', () => {
  test('short events stay as they are, the same objects', () => {
    const events = [event('one'), event('two')];
    const found = withinTokens(events, 'one', 1200);
    expect(found.map((one, at) => one === events[at])).toEqual([true, true]);
    expect(withinTokens([event(long)], 'x', 0)[0]!.text).toBe(long);
  });

  test.each([300, 1200, 2000])(
    'eight long texts fit into %d tokens, around the words asked for',
    (most) => {
      const events = Array.from({ length: 8 }, (_, at) => event(long, at));
      const found = withinTokens(events, 'Which allergy did I get in Lisbon?', most);
      expect(tokens(found)).toBeLessThanOrEqual(most);
      for (const { text, excerpt } of found) {
        expect([excerpt, text.includes('allergies began in Lisbon')]).toEqual([true, true]);
      }
      expect(found.length).toBe(Math.min(8, Math.floor(most / 120)));
      // What is left belongs to the first.
      expect(found[0]!.text.length).toBeGreaterThanOrEqual(found.at(-1)!.text.length);
    },
  );

  test('Chinese texts fit, too', () => {
    const text = `${'今天天气很好。'.repeat(500)}我对花生过敏。${'什么也没发生。'.repeat(500)}`;
    const found = withinTokens(
      Array.from({ length: 8 }, (_, at) => event(text, at)),
      '对什么过敏',
      1200,
    );
    expect(tokens(found)).toBeLessThanOrEqual(1200);
    expect(found.filter((one) => one.text.includes('我对花生过敏'))).toHaveLength(8);
  });

  test('short events behind a long one keep their place', () => {
    const found = withinTokens([event(long), event('My dog is Rex.', 1)], 'allergy', 400);
    expect(found.map(({ text }) => text).at(-1)).toBe('My dog is Rex.');
    expect(found[0]!.text.length).toBeGreaterThan(1000);
  });

  test('the first event is there however little room there is', () => {
    const [only, ...rest] = withinTokens([event(long), event(long, 1)], 'allergy', 40);
    expect([only!.text.length < 500, rest]).toEqual([true, []]);
  });
});

describe('a passage', () => {
  test('is around most of the words that are asked for, the rare ones first', () => {
    const text = `${'The cat sat. '.repeat(100)}The cat is called Luna. ${'The cat sat. '.repeat(100)}`;
    expect(passageOf(text, ['cat', 'luna'], 120)).toContain('The cat is called Luna.');
  });

  test('begins and ends with sentences, and shows where the text goes on', () => {
    const text = 'One sentence is here. '.repeat(40);
    const passage = passageOf(text, ['nothing'], 200);
    expect(passage).toMatch(/^One sentence.*here\. …$/);
    const middle = passageOf(`${text}The key. ${text}`, ['key'], 200);
    expect(middle).toMatch(/^… One sentence.*The key\..*here\. …$/);
  });

  test('without blanks and with emoji is still well-formed', () => {
    const passage = passageOf('😀'.repeat(500), [], 99);
    expect(passage.isWellFormed()).toBe(true);
    expect(passage.length).toBeLessThan(110);
  });
});

describe('a long captured text', () => {
  test.each([
    filling(20_000),
    '没有空格的长文。'.repeat(2500),
    'x'.repeat(9000),
    '😀'.repeat(3000),
    `${'a line\n'.repeat(900)}`,
  ])('loses nothing in parts of at most 2000 characters', (text) => {
    const parts = partsOf(text, 2000);
    expect(
      parts.filter((part) => part.length > 2000 || part === '' || !part.isWellFormed()),
    ).toEqual([]);
    const bare = (given: string) => given.replace(/\s+/g, '');
    expect(bare(parts.join(''))).toBe(bare(text));
  });

  test('is cut where a paragraph or a sentence ends', () => {
    const parts = partsOf(filling(6000), 2000);
    expect(parts.filter((part) => !part.endsWith('.'))).toEqual([]);
  });
});

/** The shared memory ranks as the embedded one: the same events in the same order with the same scores. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { NewMemoryEvent } from '../../../../src/conversation/memory.ts';
import { embedder } from '../../../../src/features/memory/store/embedder.ts';
import type { JsonObject } from '../../../../src/lib/json/json.ts';
import { HAS_POSTGRES } from '../../../support/engines/database-servers.ts';
import { until } from '../../../support/until.ts';
import { EVENTS, QUESTIONS } from '../recall-set.ts';
import { inList, memories } from '../support.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const DAY = 86_400_000;
const DIMENSIONS = 48;

const WORDS = [
  ...['allergic', 'allergy', 'allergies', 'children', 'child', 'boxes', 'box', 'musical', 'music'],
  ...['wer hat', 'Katze', 'Katzen', 'gekauft', 'kaufen', 'что у нас', 'книга', 'книгами', 'книги'],
  ...['I', 'the', 'what', 'is', 'like', 'iPhone17', '17', 'Ärger', 'café', 'O’Neill', 'a-b'],
  ...[
    '火锅',
    '火',
    '锅',
    '苹果手机',
    '什么',
    '我的猫',
    'ラーメン',
    'ชา',
    '🎂',
    '?',
    '。',
    '%',
    "'",
  ],
];
const message = fc
  .array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 7 })
  .map((words) => words.join(' '));
const eventOf = fc.record({
  text: message,
  source: fc.constantFrom('', 'Ann', 'assistant', 'Luna'),
  tags: fc.array(fc.constantFrom('food', '猫'), { maxLength: 2 }),
  importance: fc.constantFrom(0, 0.5, 0.9),
  time: fc.nat(60).map((days) => NOW - days * DAY),
});
const query = fc.record({
  query: message,
  limit: fc.constantFrom(1, 3, 10, 100),
  speaker: fc.constantFrom(undefined, 'Luna'),
});

/** A vector that depends on nothing but the text. */
function vectorOf(text: string): readonly number[] {
  const hash = new Bun.CryptoHasher('sha512').update(text).digest();
  return Array.from({ length: DIMENSIONS }, (_, at) => hash[at]! - 127.5);
}
const vectors = () =>
  embedder({
    name: 'p/m',
    model: 'm',
    timeoutMs: 10_000,
    post: async ({ input }: JsonObject) => ({
      data: (input as readonly string[]).map((text) => ({ embedding: [...vectorOf(text)] })),
    }),
    onFailure: (thrown) => {
      throw thrown;
    },
  });

describe.skipIf(!HAS_POSTGRES)('ranking', () => {
  const forms = [memories('embedded'), memories('shared'), memories('sealed')];
  const opened = (withVectors: boolean) =>
    forms.map((files) => {
      const path = files.path();
      const own = { path, now: () => NOW, ...(withVectors && { embedder: vectors() }) };
      return { files, path, own, ...files.open(own) };
    });
  type Opened = ReturnType<typeof opened>;

  const addToAll = async (all: Opened, space: string, events: readonly NewMemoryEvent[]) => {
    const named = events.map((event, at) => ({ ...event, id: `mem_${at.toString(36)}` }));
    for (const { book } of all) await book.addInSteps(space, named, inList);
  };
  const expectSame = async (
    all: Opened,
    space: string,
    asked: Parameters<Opened[0]['memory']['recall']>[1],
  ) => {
    const [embedded, ...others] = await Promise.all(
      all.map(({ memory }) => memory.recall(space, asked)),
    );
    for (const other of others) expect([asked, other]).toEqual([asked, embedded!]);
    return embedded!.length;
  };

  test('of random spaces and questions', async () => {
    const all = opened(false);
    let spaces = 0;
    let found = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(eventOf, { minLength: 1, maxLength: 80 }),
        fc.array(query, { minLength: 1, maxLength: 12 }),
        async (events, queries) => {
          const space = `random ${++spaces}`;
          await addToAll(all, space, events);
          for (const one of queries) found += await expectSame(all, space, one);
        },
      ),
      { numRuns: 40 },
    );
    expect(found).toBeGreaterThan(100);
  }, 120_000);

  test('of random changes and removals: what is gone counts no more', async () => {
    const all = opened(false);
    let spaces = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(eventOf, { minLength: 5, maxLength: 40 }),
        fc.array(fc.tuple(fc.nat(39), fc.option(message)), { minLength: 1, maxLength: 20 }),
        fc.array(query, { minLength: 1, maxLength: 8 }),
        async (events, steps, queries) => {
          const space = `changed ${++spaces}`;
          await addToAll(all, space, events);
          for (const { book } of all) {
            for (const [at, text] of steps) {
              const id = `mem_${(at % events.length).toString(36)}`;
              if (text === null) await book.remove(space, id);
              else await book.change(space, id, { text });
            }
          }
          // The embedded index counts removed events until it is rewritten, at the latest when it is closed.
          await all[0]!.memory.close();
          const { files, own } = all[0]!;
          all[0] = { ...all[0]!, ...files.open(own) };
          for (const one of queries) await expectSame(all, space, one);
        },
      ),
      { numRuns: 15 },
    );
  }, 120_000);

  test('of the labelled set, whole and in one space with thousands of alike events', async () => {
    const all = opened(false);
    const labelled = EVENTS.map(([source, text], at) => ({ source, text, time: NOW - at * DAY }));
    // More than a question reads, and than a digest of terms has places.
    const alike = Array.from({ length: 5000 }, (_, at) => ({
      text: `what about the party ${at % 300} 今天火锅`,
      time: NOW - at * 1000,
    }));
    await addToAll(all, 'labelled', labelled);
    await addToAll(all, 'crowded', [...alike, ...labelled]);
    for (const space of ['labelled', 'crowded']) {
      for (const [question] of QUESTIONS) await expectSame(all, space, { query: question });
      await expectSame(all, space, { query: 'party', limit: 100 });
      await expectSame(all, space, { query: '火锅 party 7 今天', limit: 100 });
      await expectSame(all, space, { query: `${'无关的话语'.repeat(500)}火锅 party`, limit: 20 });
    }
  }, 300_000);

  test('by words and vectors', async () => {
    const all = opened(true);
    const events = Array.from({ length: 600 }, (_, at) => ({
      text: `${WORDS[at % WORDS.length]} ${WORDS[(at * 7) % WORDS.length]} number ${at}`,
      time: NOW - at * DAY,
    }));
    await addToAll(all, 's', events);
    for (const { files, path } of all) {
      await until(async () => (await files.vectors(path)) === events.length);
    }
    for (const word of WORDS) {
      await expectSame(all, 's', { query: word, limit: 20 });
      await expectSame(all, 's', { query: `${word} number`, limit: 60 });
    }
    for (const { watch } of all) expect(new Set(watch.kinds)).toEqual(new Set(['hybrid']));
  }, 120_000);
});

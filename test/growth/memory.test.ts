/** Memory work grows linearly with the client's input, and long work yields to other requests. */

import { describe, expect, test } from 'bun:test';
import { joinedExtension } from '../../src/features/chat-apps/headers.ts';
import { conversationLanguage } from '../../src/features/chat-apps/index.ts';
import { readEvents, readLines, readRecall } from '../../src/features/memory/api/input.ts';
import type { EventStore } from '../../src/features/memory/backend.ts';
import { DEFAULT_LIMITS } from '../../src/features/memory/event.ts';
import { isRequest } from '../../src/features/memory/ranking/event-kinds.ts';
import { formsOf } from '../../src/features/memory/ranking/known-terms.ts';
import { inflectedTerms } from '../../src/features/memory/ranking/languages.ts';
import { queryTerms, termsOf } from '../../src/features/memory/ranking/terms.ts';
import { stem } from '../../src/lib/text/stem.ts';
import { alone, memories } from '../features/memory/support.ts';
import { expectLinear } from '../support/growth.ts';
import { expectSlices } from '../support/longest-turn.ts';

const files = memories();

const repeated = (part: string) => (size: number) =>
  part.repeat(Math.ceil(size / part.length)).slice(0, size);
const numbered = (size: number, word: (i: number) => string) =>
  Array.from({ length: Math.ceil(size / 10) }, (_, i) => word(i));
const TEXTS: readonly (readonly [string, (size: number) => string])[] = [
  ['one word', repeated('a')],
  ['blanks', repeated(' ')],
  ['lines', repeated('\n')],
  ['questions', repeated('who? ')],
  ['commas', repeated('who,')],
  ['marks', repeated('?')],
  ['Chinese', repeated('你还记得我的狗叫什么名字吗')],
  ['one Chinese character', repeated('什')],
  ['accents', repeated('e\u0301\u0301')],
  ['digits in words', repeated('a1')],
  ['half characters', repeated('\ud83d')],
  ['search syntax', repeated('NEAR(a OR "b" -c) * ')],
  ['endings', repeated('ing')],
  ['Russian words', (size) => numbered(size, (i) => `книга${'абвгд'[i % 5]}ми`).join(' ')],
  ['other words', (size) => numbered(size, (i) => `word${i}`).join(' ')],
];

describe('texts', () => {
  for (const [name, input] of TEXTS) {
    test(`terms of ${name}`, async () => {
      await expectLinear({ name, input, run: (text: string) => termsOf(text), most: 2 ** 18 });
      await expectLinear({ name, input, run: (text: string) => queryTerms(text), most: 2 ** 18 });
      await expectLinear({
        name,
        input,
        run: (text: string) => inflectedTerms(text, []),
        most: 2 ** 18,
      });
    }, 60_000);
    test(`kind, language and forms of ${name}`, async () => {
      await expectLinear({ name, input, run: (text: string) => isRequest(text), most: 2 ** 17 });
      await expectLinear({
        name,
        input,
        run: (text: string) => formsOf(stem(text)),
        most: 2 ** 17,
      });
      await expectLinear({
        name,
        input: (size) => ({ system: [{ type: 'text' as const, text: input(size) }], turns: [] }),
        run: (conversation) => conversationLanguage(conversation),
        most: 2 ** 17,
      });
    }, 60_000);
  }
});

describe('bodies', () => {
  const BODIES: readonly (readonly [string, (size: number) => string])[] = [
    ['empty lines', repeated('\n')],
    ['short lines', repeated('{"text":"a"}\n')],
    ['one line', (size) => JSON.stringify({ text: 'a'.repeat(size) })],
    ['a line that is not JSON', repeated('{')],
    ['many fields', (size) => `{${numbered(size, (i) => `"f${i}":1`).join()}}`],
    ['many tags', (size) => JSON.stringify({ text: 'a', tags: numbered(size, String) })],
    ['many events', (size) => `{"events":[${'{"text":"a"},'.repeat(size / 13)}{"text":"a"}]}`],
  ];
  const readers = {
    lines: (body: Uint8Array) => [...readLines(body)],
    events: readEvents,
    recall: readRecall,
  };
  for (const [name, make] of BODIES) {
    for (const [reader, read] of Object.entries(readers)) {
      test(
        `${reader}: ${name}`,
        () =>
          expectLinear({
            name,
            most: 2 ** 20,
            input: (size) => new TextEncoder().encode(make(size)),
            run: (body) => {
              try {
                read(body);
              } catch {
                // Other tests check the output.
              }
            },
            linear: (body) => {
              try {
                return JSON.parse(new TextDecoder().decode(body));
              } catch {
                return undefined;
              }
            },
          }),
        60_000,
      );
    }
  }
  test('headers of any length', () =>
    expectLinear({
      name: 'x-hopgate-…',
      input: (size) => new Headers({ [`x-hopgate-${'r'.repeat(size)}`]: 'x' }),
      run: (headers) => joinedExtension(undefined, headers),
      most: 2 ** 18,
    }));
});

const countOf = async (book: EventStore, space: string): Promise<number> =>
  (await book.spaces('', 10)).find((one) => one.space === space)?.events ?? 0;

describe('work on many long texts runs in steps', () => {
  const text = (i: number) =>
    Array.from({ length: 1300 }, (_, at) => `w${((i * 31 + at) * 7919) % 9973}`)
      .join(' ')
      .slice(0, 8000);
  const events = Array.from({ length: 200 }, (_, i) => ({ text: text(i) }));
  const waiting = async () => {
    const opened = files.open({ path: files.path() });
    await opened.book.add('s', [{ text: 'begin' }], alone);
    await opened.memory.capture('t', events);
    return opened;
  };

  test.each<[string, (opened: Awaited<ReturnType<typeof waiting>>) => Promise<unknown>]>([
    ['adding', ({ book }) => book.addInSteps('u', events, alone)],
    ['a recall of what waits', ({ memory }) => memory.recall('t', { query: 'w1 w7919' })],
    ['a list of what waits', ({ book }) => book.list('t', { limit: 1, order: 'asc' })],
    ['a look at what waits', ({ book }) => book.get('t', 'mem_0')],
    ['a change where some waits', ({ book }) => book.change('t', 'mem_0', { text: 'x' })],
    ['a removal where some waits', ({ book }) => book.remove('t', 'mem_0')],
    ['the spaces where some waits', ({ book }) => book.spaces('', 1)],
  ])(
    '%s yields to other requests',
    async (name, work) => {
      let opened!: Awaited<ReturnType<typeof waiting>>;
      await expectSlices(
        name,
        () => work(opened),
        async () => {
          opened = await waiting();
        },
      );
      if (name !== 'an erasure') {
        await opened.book.spaces('', 1);
        expect(await countOf(opened.book, 't')).toBe(800);
      }
    },
    60_000,
  );

  test('added events are rolled back when a later one does not fit', async () => {
    const limits = { ...DEFAULT_LIMITS, events: 20 };
    const { book } = files.open({ path: files.path(), limits });
    const events = Array.from({ length: 30 }, (_, i) => ({ text: text(i) }));
    let failed: unknown;
    await book.addInSteps('s', events, alone).catch((thrown: unknown) => {
      failed = thrown;
    });
    expect(String(failed)).toContain('memory.limits.events');
    expect(await countOf(book, 's')).toBe(0);
  }, 60_000);
});

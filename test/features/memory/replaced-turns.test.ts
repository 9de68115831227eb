/** A turn that is captured again: a reply that was asked for once more, a message that was edited, a request that was repeated. */

import { describe, expect, test } from 'bun:test';
import type { NewMemoryEvent } from '../../../src/conversation/memory.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { capture } from '../../../src/features/chat-apps/capture.ts';
import type { MemoryBackend } from '../../../src/features/memory/backend.ts';
import { eventsHolding, forgetEvents } from '../../../src/features/memory/forget.ts';
import { alone, FORMS, inList, memories } from './support.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const HOUR = 3_600_000;

describe.each(FORMS)('a turn that is captured again, %s', (form) => {
  const files = memories(form);
  const said = (text: string, time = NOW): NewMemoryEvent => ({ text, source: 'user', time });
  const replied = (text: string, time = NOW): NewMemoryEvent => ({
    text,
    source: 'assistant',
    time: time + 1,
  });
  const opened = () => files.open({ path: files.path(), now: () => NOW });
  const given = { name: 'turn 7', isGiven: true };
  const known = { name: 'hash', isGiven: false };

  test('a reply that is made anew takes the place of the discarded one', async () => {
    const { memory, texts } = opened();
    for (const reply of ['He was born in 1889.', 'He was born in 1989.', 'He was born in 1889.']) {
      await memory.capture('s', [said('When was he born?'), replied(reply)], undefined, known);
    }
    expect(await texts('s')).toEqual(['When was he born?', 'He was born in 1889.']);
  });

  test('an edited message takes the place of the old one where the app names the turn', async () => {
    const { memory, texts, recalled } = opened();
    await memory.capture(
      's',
      [said('My boat is called Albatros.'), replied('Nice name!')],
      undefined,
      given,
    );
    expect(await recalled('s', 'boat')).toEqual(['My boat is called Albatros.']);
    await memory.capture(
      's',
      [said('My boat is called Alma.'), replied('Nice one!')],
      undefined,
      given,
    );
    expect(await texts('s')).toEqual(['My boat is called Alma.', 'Nice one!']);
    expect(await recalled('s', 'boat')).toEqual(['My boat is called Alma.']);
    expect(await recalled('s', 'Albatros')).toEqual([]);
  });

  test('within one batch, too, and with other turns around it', async () => {
    const { memory, texts } = opened();
    const turns = [
      [said('one'), { name: '1', isGiven: true }],
      [said('two'), { name: '2', isGiven: true }],
      [said('one again'), { name: '1', isGiven: true }],
    ] as const;
    for (const [event, turn] of turns) void memory.capture('s', [event], undefined, turn);
    expect((await texts('s')).toSorted()).toEqual(['one again', 'two']);
  });

  test('a turn known by its words alone is another one when the time of dedupe is over', async () => {
    const { memory, texts } = opened();
    const old = NOW - 48 * HOUR;
    await memory.capture(
      's',
      [said('What should I cook?', old), replied('Soup.', old)],
      undefined,
      known,
    );
    await memory.capture('s', [said('What should I cook?'), replied('Rice.')], undefined, known);
    expect(await texts('s')).toEqual([
      'What should I cook?',
      'Soup.',
      'What should I cook?',
      'Rice.',
    ]);
  });

  test('turns of other spaces, and events without a turn, stay', async () => {
    const { memory, texts, book } = opened();
    await book.add('s', [{ text: 'by the API' }], alone);
    await memory.capture('t', [said('theirs')], undefined, given);
    await memory.capture('s', [said('mine')], undefined, given);
    await memory.capture('s', [said('mine, edited')], undefined, given);
    expect([(await texts('s')).toSorted(), await texts('t')]).toEqual([
      ['by the API', 'mine, edited'],
      ['theirs'],
    ]);
  });

  /** A finished turn of a chat, as the gateway sees it. */
  const finish = async (
    memory: MemoryBackend,
    history: readonly (readonly [role: 'user' | 'assistant', text: string])[],
    reply: string,
  ) => {
    const request = {
      turns: history.map(([role, text]) => ({ role, blocks: [{ type: 'text', text }] })),
    } as unknown as Conversation;
    const onFailed = (thrown: unknown) => {
      throw thrown;
    };
    const feature = capture({
      memory,
      space: 's',
      round: undefined,
      request: () => request,
      onFailed,
    });
    const interceptor = feature.intercept!(request, undefined as never)!;
    interceptor.event({ type: 'block-start', index: 0, head: { type: 'text' } });
    interceptor.event({ type: 'delta', index: 0, text: reply });
    interceptor.event({ type: 'finish', reason: 'stop' } as never);
    interceptor.event({ type: 'end' } as never);
    await new Promise((resolve) => setTimeout(resolve, 1));
  };

  test('a chat: retries and replies made anew are seen by their words, other turns stay', async () => {
    const { memory, texts } = files.open({ path: files.path() });
    const first = [['user', 'My cat is Luna.']] as const;
    await finish(memory, first, 'A fine name.');
    await finish(memory, first, 'What a name!');
    const second = [...first, ['assistant', 'What a name!'], ['user', 'She is three.']] as const;
    await finish(memory, second, 'Still young.');
    await finish(memory, second, 'Still young.');
    const other = [['user', 'My dog is Rex.']] as const;
    await finish(memory, other, 'Woof.');
    expect((await texts('s')).toSorted()).toEqual(
      [
        'My cat is Luna.',
        'What a name!',
        'She is three.',
        'Still young.',
        'My dog is Rex.',
        'Woof.',
      ].toSorted(),
    );
  });

  test('a chat of 200 turns is stored once, each turn with its reply', async () => {
    const { memory, texts, recalled } = files.open({ path: files.path() });
    const history: (readonly ['user' | 'assistant', string])[] = [];
    for (let at = 0; at < 200; at++) {
      history.push(['user', `On day ${at} I saw ship number ${at * 7919}.`]);
      await finish(memory, history.slice(-12), `So ship ${at * 7919} was there on day ${at}.`);
      history.push(['assistant', `So ship ${at * 7919} was there on day ${at}.`]);
    }
    expect((await texts('s')).toSorted()).toEqual(history.map(([, text]) => text).toSorted());
    expect((await recalled('s', `ship ${33 * 7919}`))[0]).toContain('day 33');
  }, 60_000);

  test('forgetting: by ids, and what holds all words of a text', async () => {
    const { memory, book, texts } = opened();
    const added = await book.add(
      's',
      [
        { text: 'The PIN of my card is 4711.' },
        { text: 'My card is blue.' },
        { text: 'The cards and their PINs are in the safe.' },
        { text: 'The dog is Rex.' },
      ],
      inList,
    );
    expect(
      (await eventsHolding(memory, 's', 'PIN of my card')).map(({ text }) => text).toSorted(),
    ).toEqual(['The PIN of my card is 4711.', 'The cards and their PINs are in the safe.']);
    const ids = [added[0]![0].id, added[3]![0].id, 'mem_unknown', added[0]![0].id];
    expect(await forgetEvents(memory, 's', ids)).toBe(2);
    expect(await forgetEvents(memory, 'other', [added[1]![0].id])).toBe(0);
    expect(await texts('s')).toEqual([
      'My card is blue.',
      'The cards and their PINs are in the safe.',
    ]);
  });

  test('what only stands for a word of the text is found, and not forgotten', async () => {
    const { memory, book, recalled } = opened();
    await book.add('s', [{ text: '我同事在上海上班。' }, { text: '我同事的工作是厨师。' }], inList);
    expect(await recalled('s', '同事的工作')).toContain('我同事在上海上班。');
    expect((await eventsHolding(memory, 's', '同事的工作')).map(({ text }) => text)).toEqual([
      '我同事的工作是厨师。',
    ]);
  });

  test('since and until restrict what is found, whatever else matches', async () => {
    const { book, memory } = opened();
    const day = 24 * HOUR;
    const events = Array.from({ length: 300 }, (_, at) => ({
      text: `boat trip ${at}`,
      time: NOW - at * day,
    }));
    await book.add('s', events, inList);
    const found = async (query: object) =>
      (await memory.recall('s', { query: 'boat', limit: 100, ...query })).map(({ text }) => text);
    expect(await found({ since: NOW - 2 * day })).toHaveLength(3);
    expect((await found({ since: NOW - 299 * day, until: NOW - 297 * day })).toSorted()).toEqual([
      'boat trip 298',
      'boat trip 299',
    ]);
    expect(await found({ since: NOW + day })).toEqual([]);
    // Without a word in common, what happened then is found.
    expect(
      await found({ query: 'zebra', since: NOW - 298.5 * day, until: NOW - 297.5 * day }),
    ).toEqual(['boat trip 298']);
  });
});

/** Capturing: queued, deduplicated, bounded, and removed with its space; each limit names itself. */

import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { CaptureQueue } from '../../../src/features/memory/capture-queue.ts';
import { DEFAULT_LIMITS } from '../../../src/features/memory/event.ts';
import { writesElsewhere } from '../../support/other-writer.ts';
import { until } from '../../support/until.ts';
import { alone, FORMS, inList, memories, watched } from './support.ts';

const NOW = 1_790_000_000_000;
const HOUR = 3_600_000;

describe.each(FORMS)('capture, %s', (form) => {
  const files = memories(form);

  test('runs in the background, and the next request sees its events', async () => {
    const path = files.path();
    const { memory, texts, recalled, watch } = files.open({ path });
    await memory.capture('s', [{ text: 'the boat is red' }]);
    expect(watch.outcomes).toEqual({});
    expect(await texts('s')).toEqual(['the boat is red']);
    await memory.capture('s', [{ text: 'the car is blue' }]);
    expect(await recalled('s', 'car')).toEqual(['the car is blue']);
    if (form === 'embedded') expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('is written after a moment, and at the latest by close', async () => {
    const path = files.path();
    const one = files.open({ path });
    await one.memory.capture('s', [{ text: 'first' }]);
    await until(() => one.watch.outcomes.stored === 1);
    await one.memory.capture('s', [{ text: 'second' }]);
    await one.memory.close();
    expect(await files.open({ path }).texts('s')).toEqual(['first', 'second']);
  });

  if (form === 'embedded') {
    test('is written at the end although another process writes', async () => {
      const path = files.path();
      const one = files.open({ path });
      await one.memory.capture('s', [{ text: 'first' }]);
      await one.book.settled();
      const { over } = await writesElsewhere(path, 600);
      await one.memory.capture('s', [{ text: 'last' }]);
      await one.memory.close();
      await over;
      expect(one.watch.outcomes).toEqual({ stored: 2 });
      expect(await files.open({ path }).texts('s')).toEqual(['first', 'last']);
    });
  }

  test('stores the same text of one source once within the window', async () => {
    const { memory, texts, watch } = files.open({
      path: files.path(),
      dedupeMs: HOUR,
      now: () => NOW,
    });
    const say = (text: string, source: string, time: number) =>
      memory.capture('s', [{ text, source, time }]);
    await say('I like  cats', 'Ann', NOW);
    await say('i LIKE cats ', 'Ann', NOW + 10);
    await say('Ｉ like cats', 'Ann', NOW + HOUR);
    await say('I like cats', 'Bob', NOW);
    await say('I like cats', 'Ann', NOW + HOUR + 1);
    await memory.capture('other', [{ text: 'I like cats', source: 'Ann', time: NOW }]);
    expect(await texts('s')).toEqual(['I like  cats', 'I like cats', 'I like cats']);
    expect(watch.outcomes).toEqual({ stored: 4, duplicate: 2 });
  });

  test('cuts long texts, corrects invalid numbers and leaves out empty texts', async () => {
    const limits = { ...DEFAULT_LIMITS, text: 10, tags: 1 };
    const { memory, book } = files.open({ path: files.path(), limits, now: () => NOW });
    await memory.capture('s', [
      { text: 'x'.repeat(50), time: Number.NaN, importance: 7, tags: ['a', 'b'] },
      { text: ' \n' },
      { text: '\ud83d\ud83d' },
    ]);
    await book.settled();
    const { events } = await book.list('s', { limit: 10, order: 'asc' });
    expect(events.map(({ text }) => text)).toEqual(['x'.repeat(10), '\ufffd\ufffd']);
    expect(events[0]).toMatchObject({ time: NOW, importance: 1, tags: ['a'] });
  });

  test('drops and counts events beyond the limits', async () => {
    const limits = { ...DEFAULT_LIMITS, events: 3 };
    const { memory, texts, watch } = files.open({ path: files.path(), limits });
    await memory.capture(
      's',
      ['a', 'b', 'c', 'd', 'e'].map((text) => ({ text })),
    );
    await memory.capture('t', [{ text: 'a' }]);
    expect([await texts('s'), await texts('t')]).toEqual([['a', 'b', 'c'], ['a']]);
    expect(watch.outcomes).toEqual({ stored: 4, full: 2 });
  });

  test('does not bring back a space that was erased meanwhile, even by another process', async () => {
    const path = files.path();
    const [one, two] = [files.open({ path }), files.open({ path })];
    await two.book.add('s', [{ text: 'written' }], alone);
    await one.memory.capture('s', [{ text: 'waits here' }]);
    await two.memory.capture('s', [{ text: 'waits there' }]);
    expect(await two.memory.erase('s')).toBe(2);
    expect([await one.texts('s'), await two.texts('s')]).toEqual([[], []]);
    expect(one.watch.outcomes).toEqual({ erased: 1 });
    // A turn that started before the erasure ends after it.
    await one.memory.capture('s', [{ text: 'late', time: Date.now() - 1000 }]);
    await Bun.sleep(files.clockMs);
    await one.memory.capture('s', [{ text: 'new' }]);
    expect(await two.texts('s')).toEqual([]);
    expect(await one.texts('s')).toEqual(['new']);
  });
});

describe('the queue', () => {
  const queueOf = (write: (items: readonly number[]) => void | Promise<void>) => {
    const dropped: number[] = [];
    const troubles: unknown[] = [];
    const queue = new CaptureQueue<number>({
      write,
      sizeOf: () => 10,
      onDropped: (count) => void dropped.push(count),
      onTrouble: (thrown) => void troubles.push(thrown),
      limits: { items: 5, bytes: 40, batch: 2, flushAfter: 5, retryAfter: 5 },
    });
    return { queue, dropped, troubles };
  };

  test('drops items beyond its limits and reports how many', async () => {
    const written: number[] = [];
    const { queue, dropped } = queueOf((items) => void written.push(...items));
    queue.add([1, 2, 3, 4, 5, 6]);
    expect([queue.waiting, dropped]).toEqual([4, [2]]);
    await queue.close();
    expect(written).toEqual([1, 2, 3, 4]);
    queue.add([7]);
    expect(dropped).toEqual([2, 1]);
  });

  test('retries failed items in order and drops them only at close', async () => {
    const written: number[] = [];
    let fails = 3;
    const { queue, troubles, dropped } = queueOf((items) => {
      if (fails-- > 0) throw new Error('busy');
      written.push(...items);
    });
    queue.add([1, 2, 3]);
    await until(() => written.length === 3);
    expect([written, troubles.length, dropped]).toEqual([[1, 2, 3], 3, []]);
    fails = 99;
    queue.add([4]);
    await queue.close();
    expect(dropped).toEqual([1]);
  });

  test('waits for the current write before it removes items', async () => {
    const release = Promise.withResolvers<void>();
    const { queue } = queueOf(() => release.promise);
    queue.add([1, 2, 3]);
    void queue.flush();
    const removed = queue.remove(() => true);
    release.resolve();
    expect(await removed).toBe(1);
    expect(queue.waiting).toBe(0);
  });
});

describe.each(FORMS)('adding, %s', (form) => {
  const files = memories(form);

  const limits = { ...DEFAULT_LIMITS, text: 20, tags: 2, events: 2, bytes: 30 };

  test.each([
    [{ text: ' ' }, 400, 'events[0].text', undefined],
    [{ text: 'x'.repeat(21) }, 413, 'events[0].text', 'memory.limits.text'],
    [{ text: 'x', tags: ['a', 'b', 'c'] }, 413, 'events[0].tags', 'memory.limits.tags'],
    [{ text: 'x', tags: ['a', 'b'.repeat(201)] }, 413, 'events[0].tags[1]', undefined],
    [{ text: 'x', source: 'b'.repeat(201) }, 413, 'events[0].source', undefined],
    [{ text: 'x', importance: Number.NaN }, 400, 'events[0].importance', undefined],
    [{ text: 'x', time: -1 }, 400, 'events[0].time', undefined],
    [{ text: 'x', id: 'mem_É' }, 400, 'events[0].id', undefined],
  ])('refuses %j with %i, naming %s', async (event, status, param, key) => {
    const { book } = files.open({ path: files.path(), limits });
    let thrown: unknown;
    try {
      await book.add('s', [event], inList);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ status, param });
    if (key !== undefined) expect((thrown as Error).message).toContain(key);
  });

  test('stops at the configured number and bytes, and adds all or none', async () => {
    const { book, texts } = files.open({ path: files.path(), limits });
    const add = (space: string, ...all: string[]) =>
      book.add(
        space,
        all.map((text) => ({ text })),
        inList,
      );
    await expect(add('s', 'a', 'b', 'c')).rejects.toThrow(/2 events \(memory\.limits\.events\)/);
    expect(await texts('s')).toEqual([]);
    await add('s', 'a', 'b');
    await expect(add('s', 'c')).rejects.toThrow(/memory\.limits\.events/);
    await add('t', 'x'.repeat(20));
    await expect(add('u', 'x'.repeat(10))).rejects.toThrow(/30 bytes \(memory\.limits\.bytes\)/);
    await add('u', '猫'.repeat(2));
    await book.remove('s', (await book.list('s', { limit: 1, order: 'asc' })).events[0]!.id);
    await add('s', 'c');
    expect(await texts('s')).toEqual(['b', 'c']);
  });

  test('stores an event given twice, unless it has the same id', async () => {
    const { book, texts } = files.open({ path: files.path() });
    const event = { id: 'mem_0a', text: 'x', time: 5 };
    expect((await book.add('s', [event, { text: 'x' }], inList)).map(([, isNew]) => isNew)).toEqual(
      [true, true],
    );
    const again = await book.add('s', [{ ...event, text: 'other words' }], alone);
    expect(again).toMatchObject([[{ id: 'mem_0a', text: 'x', time: 5 }, false]]);
    expect(await texts('s')).toEqual(['x', 'x']);
  });
});

describe.each(FORMS)('the share of a key, %s', (form) => {
  const files = memories(form);

  test('is counted over all spaces, full for nobody else, and free again with what is removed', async () => {
    const limits = { ...DEFAULT_LIMITS, keyBytes: 20 };
    const { memory, book, texts, watch } = files.open({ path: files.path(), limits });
    const TEN = '0123456789';
    const add = (space: string, text: string, key?: string) =>
      book.add(space, [{ text }], alone, key);
    const full = { status: 413, code: 'memory_full', retryable: false };
    const first = (await add('s', TEN, 'a'))[0]![0];
    await add('t', TEN, 'a');
    await expect(add('u', 'x', 'a')).rejects.toMatchObject(full);
    await expect(add('u', 'x', 'a')).rejects.toThrow('memory.limits.key_bytes');
    await expect(
      book.addInSteps('u', [{ text: 'x' }, { text: 'y' }], inList, 'a'),
    ).rejects.toMatchObject(full);
    await memory.capture('u', [{ text: 'captured' }], undefined, undefined, 'a');
    expect(await texts('u')).toEqual([]);
    expect(watch.outcomes).toEqual({ full: 1 });
    // Others have theirs, in its spaces too, and where there are no keys there is none.
    await add('s', `${TEN}${TEN}`, 'b');
    await add('s', TEN.repeat(5), '');
    await add('s', TEN.repeat(6));
    await book.remove('s', first.id);
    const mine = (await add('u', TEN, 'a'))[0]![0];
    await expect(book.change('u', mine.id, { text: `${TEN}x` }, 'a')).rejects.toMatchObject(full);
    expect((await book.change('u', mine.id, { text: 'short' }, 'a'))?.text).toBe('short');
    await memory.erase('t');
    await add('u', `${TEN}12345`, 'a');
    await expect(add('u', 'x', 'a')).rejects.toMatchObject(full);
    // A turn that is captured again takes the place of what it was.
    const turn = { name: 'turn', isGiven: true };
    for (const text of ['one of c', 'two of c', 'three of c']) {
      await memory.capture('v', [{ text: `${TEN}${text}`.slice(0, 20) }], undefined, turn, 'c');
      await book.settled();
    }
    expect(await texts('v')).toEqual([`${TEN}three of c`]);
  });
});

describe.each(FORMS)('listing, %s', (form) => {
  const files = memories(form);

  test('pages through every event once while others are added and removed', async () => {
    const { book } = files.open({ path: files.path() });
    const add = async (time: number, tag = 'a') =>
      (await book.add('s', [{ text: `t${time}`, time, tags: [tag] }], alone))[0]![0].id;
    const ids: string[] = [];
    for (const time of [5, 5, 5, 1, 9, 3]) ids.push(await add(time, time === 5 ? 'five' : 'a'));
    const received: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await book.list('s', { limit: 2, order: 'desc', cursor });
      received.push(...page.events.map(({ text }) => text));
      cursor = page.next;
      if (received.length === 2) {
        await add(100);
        await book.remove('s', ids[4]!);
      }
    } while (cursor !== undefined);
    expect(received).toEqual(['t9', 't5', 't5', 't5', 't3', 't1']);
    const times = async (query: object) =>
      (await book.list('s', { limit: 9, order: 'asc', ...query })).events.map(({ time }) => time);
    expect(await times({ since: 3, until: 6 })).toEqual([3, 5, 5, 5]);
    expect(await times({ tag: 'five' })).toEqual([5, 5, 5]);
    expect(await times({ tag: 'fiv' })).toEqual([]);
    await expect(times({ cursor: 'bogus' })).rejects.toThrow(/cursor/);
  });
});

describe('removing', () => {
  const files = memories();

  const bytesOf = (path: string) =>
    ['', '-wal'].map((end) =>
      existsSync(path + end) ? readFileSync(path + end) : Buffer.alloc(0),
    );
  const holds = (path: string, text: string) =>
    bytesOf(path).some((bytes) => bytes.includes(Buffer.from(text)));

  test('erasing leaves no text, term or name in the file', async () => {
    const path = files.path();
    const { memory, book, texts, recalled } = files.open({ path });
    const secrets = Array.from({ length: 700 }, (_, at) => `zebra${at}quagga`);
    await book.add(
      'private-space',
      secrets.map((text) => ({ text, source: 'Mallory', tags: ['hidden'] })),
      inList,
    );
    await book.add('kept', [{ text: 'giraffe stays' }], alone);
    await memory.capture('private-space', [{ text: 'okapi waits' }]);
    expect(holds(path, 'zebra5quagga')).toBe(true);
    expect(await memory.erase('private-space')).toBe(701);
    for (const trace of [
      'zebra',
      'quagga',
      'private-space',
      'Mallory',
      'mallori',
      'hidden',
      'okapi',
    ]) {
      expect([trace, holds(path, trace)]).toEqual([trace, false]);
    }
    expect([await texts('private-space'), await texts('kept')]).toEqual([[], ['giraffe stays']]);
    expect(await recalled('kept', 'giraffe')).toEqual(['giraffe stays']);
    expect(await memory.erase('private-space')).toBe(0);
  });

  test('removing an event removes its terms, a moment later from the file too', async () => {
    const path = files.path();
    const { memory, book, recalled } = files.open({ path });
    const event = (await book.add('s', [{ text: 'zebra quagga' }], alone))[0]![0];
    await book.add(
      's',
      Array.from({ length: 50 }, (_, at) => ({ text: `filler ${at}` })),
      inList,
    );
    expect(await book.remove('s', event.id)).toBe(true);
    expect(await recalled('s', 'zebra')).toEqual([]);
    await memory.close();
    expect([holds(path, 'zebra'), holds(path, 'quagga')]).toEqual([false, false]);
  });

  test('without captures, nothing is reported', async () => {
    const watch = watched();
    const { memory } = files.open({ path: files.path(), observer: watch });
    await memory.capture('s', []);
    await memory.close();
    expect([watch.outcomes, watch.problems]).toEqual([{}, []]);
  });
});

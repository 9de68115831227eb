/** Entries in a real cache beside what holds for every driver: one trip, no trip, seals, and what faults of the cache cost. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import type { RoomKind } from '../../../src/state/key-value/room.ts';
import type { ValkeyEntriesOptions } from '../../../src/state/key-value/valkey.ts';
import { textSeal } from '../../../src/state/text-seal.ts';
import { replicaAt, type TestReplica } from '../../support/engines/cache-replicas.ts';
import { cacheCommand, HAS_CACHE, startCache } from '../../support/engines/cache-servers.ts';
import type { Server } from '../../support/engines/processes.ts';
import { until } from '../../support/until.ts';

const LONG = 10_000;
const kind = (name: string, keep: 'first' | 'newest', ttlMs = 600_000): RoomKind<Said> => ({
  name,
  title: name,
  keep,
  ttlMs,
  memory: { entries: 100, bytes: 1e6 },
});
const NEWEST = kind('newest', 'newest');
const FIRST = kind('first', 'first');

interface Said {
  readonly text: string;
}

describe.skipIf(!HAS_CACHE)('entries in a cache', () => {
  let server: Server;
  const opened: TestReplica[] = [];
  beforeAll(async () => {
    server = await startCache();
  });
  afterEach(async () => {
    server.thaw();
    for (const one of opened.splice(0)) await one.close();
    cacheCommand(server.port, 'flushall');
  });
  afterAll(() => server.stop());

  function replica(options: Partial<ValkeyEntriesOptions> = {}) {
    const one = replicaAt(server.port, options);
    opened.push(one);
    return {
      ...one,
      newest: one.entries.room(NEWEST),
      first: one.entries.room(FIRST),
      trips: () => one.cache.state.trips,
    };
  }

  test('what several features ask for in one turn is one trip; what is at hand is none', async () => {
    const [a, b] = [replica(), replica()];
    a.newest.put(['k'], { text: 'one' });
    a.first.put(['k'], { text: 'two' });
    await a.entries.sent(LONG);
    await b.cache.open();
    const before = b.trips();
    await Promise.all([
      b.newest.prefetch!(['k', 'none']),
      b.first.prefetch!(['k']),
      b.newest.prefetch!(['k']),
    ]);
    expect(b.trips() - before).toBe(1);
    expect(b.newest.find(['k'])?.text).toBe('one');
    expect(b.first.find(['k'])?.text).toBe('two');
    // What cannot change is not asked for again, and nothing is for no key.
    expect(b.first.prefetch!(['k'])).toBeUndefined();
    expect(b.newest.prefetch!([])).toBeUndefined();
    expect(b.trips() - before).toBe(1);
  });

  test('all that is put in one tick is one trip', async () => {
    const a = replica();
    await a.cache.open();
    const before = a.trips();
    for (let i = 0; i < 100; i++) a.newest.put([`k${i}`], { text: `${i}` });
    expect(await a.entries.sent(LONG)).toBe(true);
    expect(a.trips() - before).toBe(1);
  });

  test('with a seal nothing can be read in the cache, nor moved to another key', async () => {
    const stored = () => {
      const keys = cacheCommand(server.port, 'keys', '*')
        .split('\n')
        .filter((key) => key !== '');
      return keys.map((key) => `${key} ${cacheCommand(server.port, 'dump', key)}`).join('\n');
    };
    const open = replica();
    open.newest.put(['a secret name'], { text: 'of a conversation' });
    await open.entries.sent(LONG);
    expect(stored()).toContain('of a conversation');
    expect(stored()).not.toContain('a secret name');
    cacheCommand(server.port, 'flushall');

    const seal = textSeal(['a secret of at least 32 characters']);
    const [a, b] = [replica({ seal }), replica({ seal })];
    a.newest.put(['one'], { text: 'of a conversation' });
    await a.entries.sent(LONG);
    const one = cacheCommand(server.port, 'keys', '*');
    a.newest.put(['two'], { text: 'of another one' });
    const secret = a.first.of('a secret space');
    await secret.prefetch!([]);
    secret.put(['pic'], { text: 'of a space' });
    await a.entries.sent(LONG);
    for (const text of ['conversation', 'another', 'of a space', 'secret']) {
      expect(stored()).not.toContain(text);
    }
    const two = cacheCommand(server.port, 'keys', '*:newest:*')
      .split('\n')
      .find((key) => key !== one)!;
    cacheCommand(server.port, 'rename', two, one);
    await b.newest.prefetch!(['one', 'two']);
    expect(b.newest.find(['one'])).toBeUndefined();
    // Without the secret there is nothing, and no failure.
    const other = replica({ seal: textSeal(['some other secret of 32 characters']) });
    await other.first.of('a secret space').prefetch!(['pic']);
    expect(other.first.of('a secret space').find(['pic'])).toBeUndefined();
    await b.first.of('a secret space').prefetch!(['pic']);
    expect(b.first.of('a secret space').find(['pic'])?.text).toBe('of a space');
  });

  test('an erased group is void for every replica and gone from the cache, writes in progress too', async () => {
    const [a, b] = [replica(), replica()];
    const working = a.first.of('space');
    await working.prefetch!([]);
    working.put(['pic'], { text: 'seen' });
    await a.entries.sent(LONG);
    await b.first.of('space').prefetch!(['pic']);
    expect(b.first.of('space').find(['pic'])?.text).toBe('seen');
    const workingThere = b.first.of('space');

    a.entries.eraseGroup('space');
    expect(a.first.of('space').find(['pic'])).toBeUndefined();
    await until(() => !cacheCommand(server.port, 'keys', '*').includes(':first:'));
    // Began before the erasure, on both replicas.
    working.put(['pic'], { text: 'late' });
    workingThere.put(['pic 2'], { text: 'late' });
    await Promise.all([a.entries.sent(LONG), b.entries.sent(LONG)]);
    expect(cacheCommand(server.port, 'keys', '*')).not.toContain(':first:');
    for (const one of [a, b]) {
      await one.first.of('space').prefetch!(['pic', 'pic 2']);
      expect(one.first.of('space').find(['pic'])).toBeUndefined();
      expect(one.first.of('space').find(['pic 2'])).toBeUndefined();
    }
    // Other groups and what comes later are not touched.
    b.first.of('space').put(['pic'], { text: 'new' });
    await b.entries.sent(LONG);
    await a.first.of('space').prefetch!(['pic']);
    expect(a.first.of('space').find(['pic'])?.text).toBe('new');
  });

  test('a flushed cache brings no erased entry back', async () => {
    const [a, b] = [replica(), replica()];
    await b.first.of('space').prefetch!([]);
    b.first.of('space').put(['pic'], { text: 'seen' });
    await b.entries.sent(LONG);
    a.entries.eraseGroup('space');
    await until(() => !cacheCommand(server.port, 'keys', '*').includes(':first:'));
    cacheCommand(server.port, 'flushall');
    await b.first.of('space').prefetch!(['pic']);
    expect(b.first.of('space').find(['pic'])).toBeUndefined();
  });

  test('a frozen cache delays a read to its deadline, then nothing; what was put arrives when it is back', async () => {
    const [a, b] = [replica(), replica()];
    await Promise.all([a.cache.open(), b.cache.open()]);
    server.freeze();
    await a.newest.prefetch!(['k']);
    expect(a.newest.find(['k'])).toBeUndefined();
    expect(a.cache.state.status).toBe('down');
    const trips = a.trips();
    await a.newest.prefetch!(['k2']);
    expect(a.trips()).toBe(trips);
    a.newest.put(['k'], { text: 'kept' });
    expect(a.newest.find(['k'])?.text).toBe('kept');
    expect(await a.entries.sent(LONG)).toBe(false);
    server.thaw();
    await until(() => a.cache.state.status === 'up');
    await until(async () => a.entries.sent(LONG));
    await until(() => cacheCommand(server.port, 'dbsize').endsWith('1'));
    await until(() => b.cache.state.status === 'up');
    await b.newest.prefetch!(['k']);
    expect(b.newest.find(['k'])?.text).toBe('kept');
    expect(a.dropped()).toBe(0);
  });

  test('while the cache is away the queue is bounded: the oldest are dropped and counted', async () => {
    const a = replica({ pending: { entries: 10, bytes: 2 ** 20 } });
    await a.cache.open();
    server.freeze();
    await a.newest.prefetch!(['k']);
    for (let i = 0; i < 30; i++) a.newest.put([`k${i}`], { text: `${i}` });
    await until(() => a.dropped() === 20);
    server.thaw();
    await until(() => cacheCommand(server.port, 'dbsize').endsWith('10'));
    const b = replica();
    await b.newest.prefetch!(['k0', 'k29']);
    expect(b.newest.find(['k0'])).toBeUndefined();
    expect(b.newest.find(['k29'])?.text).toBe('29');
  });

  test('a restarted cache that lost everything is filled again, and local entries stay', async () => {
    const a = replica();
    a.newest.put(['k'], { text: 'here' });
    await a.entries.sent(LONG);
    await server.restart();
    expect(a.newest.find(['k'])?.text).toBe('here');
    await a.newest.prefetch!(['new']);
    await until(() => a.cache.state.status === 'up');
    a.newest.put(['l'], { text: 'later' });
    await until(() => cacheCommand(server.port, 'dbsize').endsWith('1'));
  });

  test('what is at hand is bounded; the least recently used goes first', () => {
    const a = replica({ local: { entries: 3, bytes: 2 ** 20 } });
    for (const key of ['a', 'b', 'c']) a.newest.put([key], { text: key });
    a.newest.find(['a']);
    a.newest.put(['d'], { text: 'd' });
    expect(['a', 'b', 'c', 'd'].map((key) => a.newest.find([key])?.text)).toEqual([
      'a',
      undefined,
      'c',
      'd',
    ]);
    const small = replica({ local: { entries: 100, bytes: 2000 } });
    for (let i = 0; i < 20; i++) small.newest.put([`${i}`], { text: crypto.randomUUID() });
    expect(small.newest.find(['0'])).toBeUndefined();
    expect(small.newest.find(['19'])).toBeDefined();
  });

  test('an entry that is used lives on', async () => {
    const short = kind('short', 'newest', 8000);
    const [a, b] = [replica(), replica()];
    a.entries.room(short).put(['k'], { text: 'used' });
    await a.entries.sent(LONG);
    const key = cacheCommand(server.port, 'keys', '*');
    await until(() => Number(cacheCommand(server.port, 'pttl', key)) < 5000);
    await b.entries.room(short).prefetch!(['k']);
    await until(() => Number(cacheCommand(server.port, 'pttl', key)) > 5000);
  });

  test('bytes that are not understood are as if they were not there', async () => {
    const [a, b] = [replica(), replica()];
    a.newest.put(['k'], { text: 'fine' });
    await a.entries.sent(LONG);
    cacheCommand(server.port, 'set', cacheCommand(server.port, 'keys', '*'), 'of a later version');
    await b.newest.prefetch!(['k']);
    expect(b.newest.find(['k'])).toBeUndefined();
  });

  test('a group stays here while the cache is away, and leaves nothing behind that another could see', async () => {
    const a = replica();
    await a.newest.of('space').prefetch!([]);
    server.freeze();
    const work = a.newest.of('space');
    await work.prefetch!(['none']);
    work.put(['k'], { text: 'here' });
    expect(work.find(['k'])).toEqual({ text: 'here' });
    a.entries.eraseGroup('space');
    expect(work.find(['k'])).toBeUndefined();
  });

  test('work in a group of which nothing was read yet puts nothing', async () => {
    const a = replica();
    const work = a.newest.of('unread');
    work.put(['k'], { text: 'lost' });
    await work.prefetch!(['k']);
    expect(work.find(['k'])).toBeUndefined();
    expect(cacheCommand(server.port, 'keys', '*')).not.toContain(':newest:');
  });
});

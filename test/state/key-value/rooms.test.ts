/** Rooms of entries over both drivers: files of one machine, and a cache that replicas have in common. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ANSWERS, type LedgerEntry } from '../../../src/features/reasoning-memory/index.ts';
import { HOPS, type HopEntry, TURNS } from '../../../src/features/server-tools/index.ts';
import { SHORT_RESULTS } from '../../../src/features/tool-results/index.ts';
import { DESCRIPTIONS } from '../../../src/features/vision/index.ts';
import { MemoryEntries } from '../../../src/state/key-value/memory.ts';
import type { EntryStore, Room, RoomKind } from '../../../src/state/key-value/room.ts';
import { bothAhead, renamed } from '../../../src/state/key-value/room.ts';
import { replicaAt } from '../../support/engines/cache-replicas.ts';
import { HAS_CACHE, startCache } from '../../support/engines/cache-servers.ts';
import type { Server } from '../../support/engines/processes.ts';
import { until } from '../../support/until.ts';

const LONG = 10_000;

/** One of the processes that have the entries in common. */
interface Process {
  readonly store: EntryStore;
  /** Others can see what was put. */
  written(): Promise<unknown>;
}

type StartProcess = () => Process;

const folders: string[] = [];
const stores: { close(): Promise<void> }[] = [];
let server: Server | undefined;
afterEach(async () => {
  for (const one of stores.splice(0)) await one.close();
});
afterAll(async () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  await server?.stop();
});

const DRIVERS: Readonly<Record<string, { readonly isThere: boolean; world(): StartProcess }>> = {
  'files of one machine': {
    isThere: true,
    world() {
      const folder = mkdtempSync(join(tmpdir(), 'rooms-'));
      folders.push(folder);
      return () => {
        const store = new MemoryEntries({ folder });
        stores.push(store);
        return { store, written: async () => store.flush() };
      };
    },
  },
  'a cache of replicas': {
    isThere: HAS_CACHE,
    world: () => () => {
      const { entries, close } = replicaAt(server!.port);
      stores.push({ close });
      return { store: entries, written: () => entries.sent(LONG) };
    },
  },
};

const kind = <Entry>(name: string, keep: 'first' | 'newest'): RoomKind<Entry> => ({
  name,
  title: `room ${name}`,
  keep,
  hasGroups: true,
  ttlMs: 600_000,
  memory: { entries: 1000, bytes: 2 ** 20 },
  file: {
    name: `${name}.db`,
    version: 3,
    upgrades: {},
    entries: 1000,
    bytes: 2 ** 20,
    ageMs: 600_000,
    flushAfterMs: 5,
  },
});
const NEWEST = kind<string>('newest', 'newest');
const FIRST = kind<string>('first', 'first');

/** Keys and names of their own for each test: the cache outlives them. */
const name = () => crypto.randomUUID();
const ahead = (room: Room<unknown>, ...keys: string[]) => room.prefetch?.(keys);

/** Reads ahead and looks until another process's write has arrived. */
const found = <Entry>(room: Room<Entry>, key: string): Promise<Entry> =>
  until(async () => {
    await ahead(room, key);
    return room.find([key]);
  });

describe.each(Object.entries(DRIVERS))('%s', (title, { isThere, world }) => {
  describe.skipIf(!isThere)(title, () => {
    let start: StartProcess;
    beforeAll(async () => {
      if (HAS_CACHE) server ??= await startCache();
      start = world();
    });

    test('what one process puts is at hand at once, and found by another under each of its keys', async () => {
      for (const of of [NEWEST, FIRST]) {
        const [a, b] = [start(), start()];
        const [one, two, none] = [name(), name(), name()];
        const [here, there] = [a.store.room(of), b.store.room(of)];
        here.put([one, two], 'entry');
        expect(here.find([two])).toBe('entry');
        expect(here.find([none, one])).toBe('entry');
        expect(here.empty).toBe(false);
        await a.written();
        await ahead(there, none, two);
        expect(there.find([none, two])).toBe('entry');
        expect(there.find([none])).toBeUndefined();
        expect(there.empty).toBe(false);
      }
    });

    test('a missed entry is found when another process has written it', async () => {
      for (const of of [NEWEST, FIRST]) {
        const [a, b] = [start(), start()];
        const key = name();
        const there = b.store.room(of);
        await ahead(there, key);
        expect(there.find([key])).toBeUndefined();
        a.store.room(of).put([key], 'late');
        await a.written();
        expect(await found(there, key)).toBe('late');
      }
    });

    test('the newest entry of a key counts for all processes, and leaves other keys of the older one', async () => {
      const [a, b] = [start(), start()];
      const [one, two] = [name(), name()];
      const [here, there] = [a.store.room(NEWEST), b.store.room(NEWEST)];
      here.put([one, two], 'older');
      await a.written();
      await ahead(there, one);
      there.put([one], 'newer');
      expect(there.find([one])).toBe('newer');
      await b.written();
      await ahead(here, one, two);
      expect([here.find([one]), here.find([two])]).toEqual(['newer', 'older']);
      // Also where an older one was at hand.
      here.put([one], 'newest');
      expect(here.find([one])).toBe('newest');
      await a.written();
      await ahead(there, one);
      expect(there.find([one])).toBe('newest');
    });

    test('the first entry of a key stays for all processes, also for one that was later and did not know', async () => {
      const [a, b, c] = [start(), start(), start()];
      const [one, two] = [name(), name()];
      const rooms = [a, b, c].map(({ store }) => store.room(FIRST));
      const [here, there, third] = rooms as [Room<string>, Room<string>, Room<string>];
      // Both have looked before either wrote.
      await ahead(there, one);
      expect(there.find([one])).toBeUndefined();
      here.put([one], 'first');
      here.put([one], 'second');
      await a.written();
      there.put([one, two], 'third');
      await there.settled([one, two]);
      await ahead(third, one, two);
      for (const room of rooms) expect(room.find([one])).toBe('first');
      expect(third.find([two])).toBe('third');
    });

    test('any JSON value is an entry, and rooms know nothing of each other', async () => {
      const [a, b] = [start(), start()];
      const key = name();
      const values = [0, '', false, { text: 'a “word”', list: [1, { deep: true }] }, [1, 2]];
      const rooms = ({ store }: Process) =>
        values.map((_, i) => store.room(kind<unknown>(`value${i}`, 'first')));
      const [here, there] = [rooms(a), rooms(b)];
      for (const [i, value] of values.entries()) here[i]!.put([key], value);
      await a.written();
      await Promise.all(there.map((room) => ahead(room, key)));
      expect(there.map((room) => room.find([key]))).toEqual(values);
    });

    test('what a process that ends has written is found by the next', async () => {
      const a = start();
      const [one, group] = [name(), name()];
      a.store.room(NEWEST).put([one], 'kept');
      await ahead(a.store.room(FIRST).of(group));
      const ofGroup = a.store.room(FIRST).of(group);
      ofGroup.put([one], 'kept, too');
      await a.store.close();
      expect(a.store.room(NEWEST).find([name()])).toBeUndefined();
      const next = start().store;
      const [newest, first] = [next.room(NEWEST), next.room(FIRST).of(group)];
      await Promise.all([ahead(newest, one), ahead(first, one)]);
      expect([newest.find([one]), first.find([one])]).toEqual(['kept', 'kept, too']);
    });

    test('the entries of a group are its own, whatever other groups have under the same keys', async () => {
      const [a, b] = [start(), start()];
      const [one, mine, yours] = [name(), name(), name()];
      for (const of of [NEWEST, FIRST]) {
        const here = a.store.room(of);
        const there = b.store.room(of);
        const views = (room: Room<string>) => [room.of(mine), room.of(yours), room];
        for (const [i, view] of views(here).entries()) {
          await ahead(view);
          view.put([one], `entry ${i}`);
        }
        await a.written();
        for (const [i, view] of views(there).entries()) {
          await ahead(view, one);
          expect(view.find([one])).toBe(`entry ${i}`);
        }
        const other = there.of(name());
        await ahead(other, one);
        expect(other.find([one])).toBeUndefined();
      }
    });

    test('an erased group is void for every process, work that had begun included, and other groups stay', async () => {
      for (const of of [NEWEST, FIRST]) {
        const [a, b] = [start(), start()];
        const [image, second, third] = [name(), name(), name()];
        const [space, other] = [name(), name()];
        const [here, there] = [a.store.room(of), b.store.room(of)];
        const [working, workingThere, elsewhere] = [
          here.of(space),
          there.of(space),
          here.of(other),
        ];
        for (const view of [working, workingThere, elsewhere]) await ahead(view, image);
        working.put([image], 'of the space');
        elsewhere.put([image], 'of another');
        here.put([image], 'of none');
        await a.written();
        await ahead(workingThere, image);
        expect(workingThere.find([image])).toBe('of the space');

        b.store.eraseGroup(space);
        expect(workingThere.find([image])).toBeUndefined();
        await until(async () => {
          const view = here.of(space);
          await ahead(view, image);
          return view.find([image]) === undefined;
        });
        working.put([second], 'too late');
        workingThere.put([third], 'too late there');
        await Promise.all([a.written(), b.written()]);
        for (const room of [here, there]) {
          const view = room.of(space);
          await ahead(view, image, second, third);
          expect(view.find([image, second, third])).toBeUndefined();
        }
        const next = here.of(space);
        await ahead(next);
        next.put([image], 'seen again');
        await a.written();
        const nextThere = there.of(space);
        await ahead(nextThere, image);
        expect(nextThere.find([image])).toBe('seen again');
        const [otherThere, none] = [there.of(other), there];
        await Promise.all([ahead(otherThere, image), ahead(none, image)]);
        expect([otherThere.find([image]), none.find([image])]).toEqual(['of another', 'of none']);
      }
    });

    test('after the end nothing is stored, and nothing throws', async () => {
      const { store } = start();
      const [room, key] = [store.room(NEWEST), name()];
      await store.close();
      room.put([key], 'late');
      store.eraseGroup('any');
      await store.close();
      const next = start().store.room(NEWEST);
      await ahead(next, key);
      expect(next.find([key])).toBeUndefined();
    });

    test('under other names, two rooms as one', async () => {
      const [a, b] = [start(), start()];
      const [scope, key] = [name(), name()];
      const scoped = (room: Room<string>) => renamed(room, (one) => `${scope} ${one}`);
      scoped(a.store.room(NEWEST)).put([key], 'scoped');
      a.store.room(FIRST).put([key], 'plain');
      await a.written();
      const own = scoped(b.store.room(NEWEST));
      const plain = b.store.room(FIRST);
      await bothAhead(own.prefetch, plain.prefetch)?.([key]);
      expect([own.find([key]), plain.find([key])]).toEqual(['scoped', 'plain']);
    });

    test('every ledger of a feature goes through', async () => {
      const hop: HopEntry = {
        turns: [{ role: 'assistant', blocks: [{ type: 'text', text: 'said' }] }],
        sources: [],
        clientCalls: ['call_1'],
      };
      const answer: LedgerEntry = {
        id: 'e',
        provider: 'p',
        protocol: 'openai-chat',
        model: 'm',
        pieces: [{ type: 'reasoning', block: { type: 'reasoning', text: 'thought' } }],
      };
      const entries: readonly [RoomKind<never>, unknown][] = [
        [HOPS as RoomKind<never>, hop],
        [ANSWERS as RoomKind<never>, answer],
        [SHORT_RESULTS as RoomKind<never>, 0],
        [DESCRIPTIONS as RoomKind<never>, 'a dot'],
      ];
      const [a, b] = [start(), start()];
      for (const [of, entry] of entries) {
        const key = name();
        a.store.room(of).put([key], entry as never);
        await a.written();
        expect(await found<unknown>(b.store.room(of), key)).toEqual(entry);
      }
      // Turns of a memory space never go into a file.
      const [turns, space, key] = [a.store.room(TURNS), name(), name()];
      const first = turns.of(space);
      await ahead(first);
      first.put([key], hop);
      expect(turns.of(space).find([key])).toEqual(hop);
      a.store.eraseGroup(space);
      expect(first.find([key])).toBeUndefined();
      first.put([key], hop);
      expect(turns.of(space).find([key])).toBeUndefined();
    });
  });
});

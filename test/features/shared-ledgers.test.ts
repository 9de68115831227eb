/** The ledgers of features, in both of their forms: files of one machine, and a cache that replicas share. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type LedgerEntry,
  openSessionLedger,
  type SessionLedger,
  SHARED_ANSWERS,
  sharedSessionLedger,
} from '../../src/features/reasoning-memory/index.ts';
import {
  type HopEntry,
  type HopLedger,
  openHopLedger,
  SHARED_HOPS,
  SHARED_TURNS,
  sharedHopLedger,
} from '../../src/features/server-tools/index.ts';
import {
  openShortResultLedger,
  SHARED_SHORT_RESULTS,
  type ShortResultLedger,
  sharedShortResultLedger,
} from '../../src/features/tool-results/index.ts';
import {
  type DescriptionStore,
  openDescriptionStore,
  SHARED_DESCRIPTIONS,
  sharedDescriptionStore,
} from '../../src/features/vision/index.ts';
import { HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import type { Server } from '../support/engines/processes.ts';
import { replicaAt, type TestReplica } from '../support/engines/shared-state.ts';
import { until } from '../support/until.ts';

const LONG = 10_000;

/** Processes that have the state in common. */
interface Processes {
  hops(): Process<HopLedger>;
  answers(): Process<SessionLedger>;
  short(): Process<ShortResultLedger>;
  descriptions(): Process<DescriptionStore>;
}

interface Process<T> {
  readonly it: T;
  /** Before a look at these keys. */
  ahead(keys: readonly string[], space?: string): Promise<void> | undefined;
  /** Others can see what was put. */
  written(): Promise<unknown>;
}

let server: Server;
const folders: string[] = [];
const replicas: TestReplica[] = [];
const files: { close(): void }[] = [];
beforeAll(async () => {
  if (HAS_CACHE) server = await startCache();
});
afterEach(async () => {
  for (const one of files.splice(0)) one.close();
  for (const one of replicas.splice(0)) await one.close();
});
afterAll(async () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  await server?.stop();
});

function embedded(): Processes {
  const folder = mkdtempSync(join(tmpdir(), 'ledgers-'));
  folders.push(folder);
  const options = (name: string) => ({ path: join(folder, name), flushAfter: 1 });
  const processOf = <T extends { close(): void }>(it: T): Process<T> => {
    files.push(it);
    return { it, ahead: () => undefined, written: () => Bun.sleep(50) };
  };
  return {
    hops: () => processOf(openHopLedger(options('hops.db'))),
    answers: () => processOf(openSessionLedger(options('answers.db'))),
    short: () => processOf(openShortResultLedger(options('short.db'))),
    descriptions: () => processOf(openDescriptionStore(options('descriptions.db'))),
  };
}

function shared(): Processes {
  const start = () => {
    const { entries, ...rest } = replicaAt(server.port);
    replicas.push({ entries, ...rest });
    return { entries, written: () => entries.sent(LONG) };
  };
  return {
    hops() {
      const { entries, written } = start();
      const it = sharedHopLedger(entries.room(SHARED_HOPS));
      return { it, ahead: it.prefetch, written };
    },
    answers() {
      const { entries, written } = start();
      const it = sharedSessionLedger(entries.room(SHARED_ANSWERS));
      return { it, ahead: it.prefetch, written };
    },
    short() {
      const { entries, written } = start();
      const it = sharedShortResultLedger(entries.room(SHARED_SHORT_RESULTS));
      return { it, ahead: it.prefetch, written };
    },
    descriptions() {
      const { entries, written } = start();
      const it = sharedDescriptionStore(entries.room(SHARED_DESCRIPTIONS), (space) =>
        entries.eraseGroup(space),
      );
      return { it, ahead: it.prefetch, written };
    },
  };
}

const hop = (text: string): HopEntry => ({
  turns: [{ role: 'assistant', blocks: [{ type: 'text', text }] }],
  sources: [],
  clientCalls: [],
});
const answer = (text: string): LedgerEntry => ({
  id: text,
  provider: 'p',
  protocol: 'openai-chat',
  model: 'm',
  pieces: [{ type: 'reasoning', block: { type: 'reasoning', text } }],
});

const FORMS = { 'files of one machine': embedded, 'a shared cache': shared };

describe.skipIf(!HAS_CACHE)('turns that used a memory space', () => {
  const start = (space: string) => {
    const replica = replicaAt(server.port);
    replicas.push(replica);
    const room = replica.entries.room<HopEntry>(SHARED_TURNS);
    /** For one exchange. */
    const ledger = () => sharedHopLedger(room, space);
    return { ledger, entries: replica.entries };
  };

  test('go on at any replica, and end with their space: also those that are under way', async () => {
    const space = crypto.randomUUID();
    const [a, b] = [start(space), start(space)];
    // The first request of a conversation has nothing to look up, but its space.
    const first = a.ledger();
    await first.prefetch([]);
    first.put(['k'], hop('recalled'));
    await a.entries.sent(LONG);
    const second = b.ledger();
    await second.prefetch(['k']);
    expect(second.find(['k'])).toEqual(hop('recalled'));
    // Another space, or none, knows nothing of it.
    const other = start(crypto.randomUUID()).ledger();
    await other.prefetch(['k']);
    expect(other.find(['k'])).toBeUndefined();

    a.entries.eraseGroup(space);
    second.put(['k2'], hop('recalled before the erasure'));
    await b.entries.sent(LONG);
    for (const { ledger } of [a, b]) {
      const later = ledger();
      await until(async () => {
        await later.prefetch(['k', 'k2']);
        return later.find(['k', 'k2']) === undefined;
      });
    }
  });

  test('stay here while the cache is away, and leave nothing behind that another space could see', async () => {
    const space = crypto.randomUUID();
    const { ledger, entries } = start(space);
    await ledger().prefetch([]);
    server.freeze();
    const exchange = ledger();
    await exchange.prefetch(['none']);
    exchange.put(['k'], hop('here'));
    expect(exchange.find(['k'])).toEqual(hop('here'));
    entries.eraseGroup(space);
    expect(exchange.find(['k'])).toBeUndefined();
    server.thaw();
  });
});

for (const [form, open] of Object.entries(FORMS)) {
  describe.skipIf(open === shared && !HAS_CACHE)(form, () => {
    /** Keys of their own for each test. */
    const key = () => crypto.randomUUID();

    test('hops: what one process puts under several keys, another finds under each; the newest counts', async () => {
      const processes = open();
      const [a, b] = [processes.hops(), processes.hops()];
      const [one, two, none] = [key(), key(), key()];
      a.it.put([one, two], hop('first'));
      expect(a.it.find([two])).toEqual(hop('first'));
      await a.written();
      await b.ahead([none, two]);
      expect(b.it.find([none, two])).toEqual(hop('first'));
      expect(b.it.find([none])).toBeUndefined();
      expect(b.it.empty).toBe(false);
      b.it.put([one], hop('second'));
      await b.written();
      await a.ahead([one, two]);
      expect(a.it.find([one])).toEqual(hop('second'));
      expect(a.it.find([two])).toEqual(hop('first'));
    });

    test('answers: the first entry of a key stays, for all processes', async () => {
      const processes = open();
      const [a, b, c] = [processes.answers(), processes.answers(), processes.answers()];
      const [one, two] = [key(), key()];
      a.it.put([one], answer('first'));
      await a.written();
      await b.ahead([one, two]);
      b.it.put([one, two], answer('second'));
      await b.written();
      await c.ahead([one, two]);
      for (const { it } of [a, b, c]) expect(it.find([one])).toEqual(answer('first'));
      expect(c.it.find([two])).toEqual(answer('second'));
    });

    test('short results: a limit is found by every process', async () => {
      const processes = open();
      const [a, b] = [processes.short(), processes.short()];
      const [one, none] = [key(), key()];
      a.it.put(one, 0);
      await Bun.sleep(0);
      await a.written();
      await b.ahead([one, none]);
      expect([b.it.limitOf(one), b.it.limitOf(none)]).toEqual([0, undefined]);
    });

    test('descriptions: where another process was faster, its text counts', async () => {
      const processes = open();
      const [a, b] = [processes.descriptions(), processes.descriptions()];
      const image = key();
      await b.ahead([image]);
      expect(b.it.get(image)).toBeUndefined();
      a.it.put(image, 'a dot');
      await a.written();
      b.it.put(image, 'a spot');
      await b.it.settled?.(image);
      await a.ahead([image]);
      expect([a.it.get(image), b.it.get(image)]).toEqual(['a dot', 'a dot']);
    });

    test('descriptions of a space are its own, and go with it for every process, those in progress too', async () => {
      const processes = open();
      const [a, b] = [processes.descriptions(), processes.descriptions()];
      const [space, other, image, late] = [key(), key(), key(), key()];
      await a.ahead([image, late], space);
      await a.ahead([image], other);
      expect(a.it.of(space).get(late)).toBeUndefined();
      expect(a.it.of(space).get(image)).toBeUndefined();
      a.it.of(space).put(image, 'of the space');
      a.it.of(other).put(image, 'of another');
      await a.written();
      await b.ahead([image], space);
      expect(b.it.of(space).get(image)).toBe('of the space');
      expect(b.it.get(image)).toBeUndefined();

      b.it.eraseSpace(space);
      await until(async () => {
        await a.ahead([image], space);
        return a.it.of(space).get(image) === undefined;
      });
      a.it.of(space).put(late, 'described too late');
      await a.written();
      await Promise.all([a.ahead([late, image], space), b.ahead([late, image], space)]);
      for (const { it } of [a, b]) {
        expect(it.of(space).get(image)).toBeUndefined();
        expect(it.of(space).get(late)).toBeUndefined();
      }
      await b.ahead([image], other);
      expect(b.it.of(other).get(image)).toBe('of another');
    });
  });
}

/** What every form of the store of responses does: in memory, in a file, and shared by replicas. */

import { afterAll, afterEach, test as base, beforeAll, describe, expect } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { ResponseStore } from '../../../src/features/response-store/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { parseJson } from '../../../src/lib/json/json.ts';
import { preciseNow } from '../../../src/lib/loop/precise-time.ts';
import { nameHash } from '../../../src/state/erasures.ts';
import { HAS_CACHE, startCache } from '../../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_BOUNCER,
  HAS_POSTGRES,
  startBouncer,
  startPostgres,
} from '../../support/engines/database-servers.ts';
import type { Server } from '../../support/engines/processes.ts';
import { replica } from '../../support/replica-responses.ts';
import { conversation, fileStore, itemText, say, storedRow } from '../../support/stored-rows.ts';
import { until } from '../../support/until.ts';

/** One writes, the other one reads; a store of one process is both. */
type Open = () => Promise<{
  readonly stores: readonly [ResponseStore, ResponseStore];
  close(): unknown;
}>;

let cache: Server;
let database: DatabaseServer;
let bouncer: DatabaseServer;
beforeAll(async () => {
  if (HAS_CACHE) cache = await startCache();
  if (HAS_POSTGRES) database = await startPostgres();
  if (HAS_BOUNCER) bouncer = await startBouncer(database);
});
afterAll(async () => {
  await Promise.all([cache?.stop(), bouncer?.stop()]);
  await database?.stop();
});

function inProcess(inFile: boolean): Open {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hopgate-responses-'));
    const store = inFile ? fileStore(join(folder, 'responses.db')) : new ResponseStore({});
    return {
      stores: [store, store],
      async close() {
        await store.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  };
}

/** Two processes on one machine. */
const inWorkers: Open = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-responses-'));
  const path = join(folder, 'responses.db');
  const [one, other] = [fileStore(path, { others: true }), fileStore(path, { others: true })];
  return {
    stores: [one, other],
    async close() {
      await Promise.all([one.close(), other.close()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

function inReplicas(through: () => { readonly cache?: number; readonly database: number }): Open {
  return async () => {
    const secret = 'a-secret-of-at-least-32-characters';
    const [one, other] = [replica({ ...through(), secret }), replica({ ...through(), secret })];
    // Connects, and makes the tables.
    for (const { store } of [one, other]) await store.fetch({ responses: ['resp_none'] }, '');
    return {
      stores: [one.store, other.store],
      async close() {
        await Promise.all([one.close(), other.close()]);
      },
    };
  };
}

const FORMS: readonly (readonly [name: string, open: Open, has: boolean])[] = [
  ['memory', inProcess(false), true],
  ['SQLite', inProcess(true), true],
  ['SQLite of two processes', inWorkers, true],
  ['Postgres', inReplicas(() => ({ database: database.port })), HAS_POSTGRES],
  [
    'Postgres with the cache in front',
    inReplicas(() => ({ cache: cache.port, database: database.port })),
    HAS_POSTGRES && HAS_CACHE,
  ],
  [
    'Postgres behind PgBouncer, with the cache in front',
    inReplicas(() => ({ cache: cache.port, database: bouncer.port })),
    HAS_BOUNCER && HAS_CACHE,
  ],
];

describe.each(FORMS)('%s', (_name, open, has) => {
  const test = base.skipIf(!has);
  const opened: Awaited<ReturnType<Open>>[] = [];
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });
  async function stores() {
    const made = await open();
    opened.push(made);
    return made.stores;
  }
  /** Ids that no other test uses: engines outlive their tests. */
  const ids = (count: number) => Array.from({ length: count }, () => `resp_${crypto.randomUUID()}`);
  async function put(
    store: ResponseStore,
    ...rows: readonly Parameters<ResponseStore['put']>[0][]
  ) {
    for (const row of rows) {
      store.put(row);
      await store.sent();
      // What was erased meanwhile never comes.
      if (row.space !== undefined) continue;
      // A busy machine may be late: everybody must find it before the test goes on.
      const { stores } = opened.at(-1)!;
      for (const reader of stores) {
        await until(async () => {
          const reads = await reader.fetch({ responses: [row.id] }, row.owner, true);
          return reads.known(row.id, row.owner) !== undefined;
        });
      }
    }
  }

  test('a conversation is read whole where its answers were not given', async () => {
    const [one, other] = await stores();
    const [a, b, c] = ids(3) as [string, string, string];
    await put(one, storedRow(a), storedRow(b, a));
    await put(other, storedRow(c, b));
    const whole = [a, b, c].flatMap((id) => [`in ${id}`, `to ${id}`]);
    expect(await conversation(other, c)).toEqual(whole);
    expect(await conversation(one, c)).toEqual(whole);
    const reads = await one.fetch({ responses: [c] }, '');
    expect(reads.get(c, '')).toMatchObject({ id: c, previous: b, model: 'm' });
    expect(reads.get(c, '')?.response).toEqual(storedRow(c).response);
  });

  test('an output item is found by its id alone, and what made it is known', async () => {
    const [one, other] = await stores();
    const [a, b] = ids(2) as [string, string];
    await put(one, storedRow(a, undefined, { keeper: 'vendor' }), storedRow(b, a));
    expect(await itemText(other, `msg_${a}`)).toBe(`to ${a}`);
    const named = [`msg_${a}`, `msg_${b}`, 'msg_unknown'];
    // A cache that is late on a busy machine is not asked again.
    const reads = await until(async () => {
      const fetched = await other.fetch({ responses: [a], items: named }, '', true);
      return fetched.known(a, '') && fetched.items(named, '').size > 1 ? fetched : undefined;
    });
    const items = reads.items(named, '');
    expect([...items.keys()]).toEqual(named.slice(0, 2));
    expect(items.get(named[0]!)?.keeper).toBe('vendor');
    expect(reads.known(a, '')).toEqual({ keeper: 'vendor' });
  });

  test('another owner finds nothing, deletes nothing, and may use the same id', async () => {
    const [one, other] = await stores();
    const [a] = ids(1) as [string];
    await put(one, storedRow(a, undefined, { owner: 'mine' }));
    expect(await conversation(other, a, 'yours')).toBe(`missing ${a}`);
    expect(await itemText(other, `msg_${a}`, 'yours')).toBeUndefined();
    expect(await other.delete(a, 'yours')).toBe(false);
    await put(other, storedRow(a, undefined, { owner: 'yours', input: [say('yours')] }));
    expect(await conversation(one, a, 'yours')).toEqual(['yours', `to ${a}`]);
    expect(await conversation(other, a, 'mine')).toEqual([`in ${a}`, `to ${a}`]);
    const reads = await one.fetch({ responses: [a], chains: true }, 'mine');
    expect(reads.get(a, 'other')).toBeUndefined();
  });

  test('a deleted link is named as missing everywhere, and is deleted once', async () => {
    const [one, other] = await stores();
    const [a, b, c] = ids(3) as [string, string, string];
    await put(one, storedRow(a), storedRow(b, a), storedRow(c, b));
    expect(await other.delete(b, '')).toBe(true);
    for (const store of [one, other]) {
      expect(await conversation(store, c)).toBe(`missing ${b}`);
      expect(await itemText(store, `msg_${b}`)).toBeUndefined();
      expect(await conversation(store, a)).toHaveLength(2);
      expect(await store.delete(b, '')).toBe(false);
    }
  });

  test('a cycle ends as a missing link instead of hanging', async () => {
    const [one, other] = await stores();
    const [a, b] = ids(2) as [string, string];
    await put(one, storedRow(a, b), storedRow(b, a));
    expect(await conversation(other, b)).toBe(`missing ${b}`);
  });

  test('a response that is stored again replaces what it was', async () => {
    const [one, other] = await stores();
    const [a] = ids(1) as [string];
    await put(one, storedRow(a, undefined, { output: [] }));
    const row = (await other.fetch({ responses: [a] }, '')).get(a, '')!;
    const output = [{ type: 'message', id: `late_${a}`, role: 'assistant', content: 'late' }];
    await put(other, { ...row, output, response: { ...row.response, output } });
    expect(await conversation(one, a)).toEqual([`in ${a}`, 'late']);
    expect(await itemText(one, `late_${a}`)).toBe('late');
  });

  test('texts come back as they were, whatever is in them', async () => {
    const [one, other] = await stores();
    const [a] = ids(1) as [string];
    const text = 'NUL \u0000, half \ud800, 奥斯陆 🧊, \\u0000';
    const value = parseJson('{"big":12345678901234567890.123,"text":""}') as JsonObject;
    await put(one, storedRow(a, undefined, { input: [say(text), value] }));
    const reads = await other.fetch({ responses: [a] }, '');
    const [first, second] = reads.get(a, '')!.input;
    expect(first).toEqual(say(text));
    expect(JSON.stringify(second)).toBe(JSON.stringify(value));
  });

  test('erasing a space removes what was begun with it until then, everywhere, and nothing else', async () => {
    const [one, other] = await stores();
    const [a, b, c, d] = ids(4) as [string, string, string, string];
    const name = crypto.randomUUID();
    const space = nameHash(name);
    const before = preciseNow();
    await put(
      one,
      storedRow(a, undefined, { space, began: before }),
      storedRow(b, undefined, { space: nameHash('another'), began: before }),
    );
    await other.eraseSpace(name);
    // It was under way: its request came before.
    await put(one, storedRow(c, undefined, { space, began: before }));
    await Bun.sleep(50);
    await put(one, storedRow(d, undefined, { space, began: preciseNow() }));
    await one.flush();
    await Bun.sleep(300);
    for (const store of [one, other]) {
      expect(await conversation(store, a)).toBe(`missing ${a}`);
      expect(await itemText(store, `msg_${a}`)).toBeUndefined();
      expect(await conversation(store, b)).toHaveLength(2);
      expect(await conversation(store, c)).toBe(`missing ${c}`);
      expect(await conversation(store, d)).toHaveLength(2);
    }
    await one.forgetSpace(space);
    expect(await conversation(other, d)).toBe(`missing ${d}`);
  });

  test('a chain equals its links put together, whether queued, written or both', async () => {
    const [one, other] = await stores();
    const link = fc.record({
      // The distance back to the link it continues, so that chains have branches.
      back: fc.nat(5),
      inputs: fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 3 }),
      outputs: fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 3 }),
      flush: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(link, { minLength: 1, maxLength: 40 }), async (links) => {
        const names = ids(links.length);
        const expected: JsonObject[][] = [];
        const wrap = (values: unknown[]): JsonObject[] =>
          values.map((value) => ({ type: 'x', value: JSON.parse(JSON.stringify(value)) }));
        for (const [i, { back, inputs, outputs, flush }] of links.entries()) {
          const parent = i - 1 - back;
          const [input, output] = [wrap(inputs), wrap(outputs)];
          one.put(storedRow(names[i]!, names[parent], { input, output }));
          expected.push([...(expected[parent] ?? []), ...input, ...output]);
          if (flush) await one.flush();
        }
        const whole = async (store: ResponseStore, i: number) => {
          const reads = await store.fetch({ responses: [names[i]!], chains: true }, '');
          const chain = await reads.chain(names[i]!, '');
          return 'missing' in chain ? chain : chain.items;
        };
        for (let i = 0; i < links.length; i++) expect(await whole(one, i)).toEqual(expected[i]!);
        await one.flush();
        expect(await whole(other, links.length - 1)).toEqual(expected.at(-1)!);
      }),
      { numRuns: 10 },
    );
  });

  test('a link cannot reach into another owner’s chain', async () => {
    const [one, other] = await stores();
    const [a, b] = ids(2) as [string, string];
    await put(one, storedRow(a, undefined, { owner: 'ann' }));
    await put(one, storedRow(b, a, { owner: 'bob' }));
    await one.flush();
    expect(await conversation(other, b, 'bob')).toBe(`missing ${a}`);
  });

  test('a thousand links come back whole', async () => {
    const [one, other] = await stores();
    const names = ids(1000);
    for (const [i, id] of names.entries()) one.put(storedRow(id, names[i - 1]));
    await one.flush();
    expect(await conversation(other, names.at(-1)!)).toHaveLength(2000);
  });

  test('a conversation of many megabytes comes back whole, and other work runs meanwhile', async () => {
    const [one, other] = await stores();
    const names = ids(30);
    const text = 'x'.repeat(500_000);
    for (const [i, id] of names.entries()) {
      one.put(storedRow(id, names[i - 1], { input: [say(text)] }));
    }
    await one.flush();
    const texts = (await conversation(other, names.at(-1)!)) as string[];
    expect(texts.filter((one) => one === text)).toHaveLength(30);
  });

  test('of two changes, the second sees what the first has made', async () => {
    const [one, other] = await stores();
    const [a] = ids(1) as [string];
    await put(one, storedRow(a, undefined, { model: '0' }));
    const more = (store: ResponseStore) =>
      store.change(a, '', (row) => ({ ...row, model: `${Number(row.model) + 1}` }));
    expect(await Promise.all([more(one), more(other), more(one)])).toEqual([true, true, true]);
    for (const store of [one, other]) {
      expect((await store.fetch({ responses: [a] }, '')).get(a, '')?.model).toBe('3');
    }
    expect(await one.change(a, '', () => undefined)).toBe(false);
  });
});

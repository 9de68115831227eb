/** A turn in progress when its space is erased stores nothing there, in any store. */

import { afterEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Memory } from '../../../src/conversation/memory.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { capture } from '../../../src/features/chat-apps/capture.ts';
import type { FeatureContext } from '../../../src/features/feature.ts';
import { DEFAULT_LIMITS } from '../../../src/features/memory/event.ts';
import { externalMemory } from '../../../src/features/memory/external-memory.ts';
import { ResponseStore, record } from '../../../src/features/response-store/index.ts';
import { DESCRIPTIONS } from '../../../src/features/vision/index.ts';
import { preciseNow } from '../../../src/lib/loop/precise-time.ts';
import { MemoryEntries } from '../../../src/state/key-value/memory.ts';
import { fileStore } from '../../support/stored-rows.ts';
import { FORMS, memories, watched } from './support.ts';

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});
const newFile = (name: string) => {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-erased-'));
  folders.push(folder);
  return join(folder, name);
};

/** Starts a turn; the returned function ends it. */
function turn(memory: Pick<Memory, 'capture'>, text: string, reply: string): () => Promise<void> {
  const request = {
    turns: [{ role: 'user', blocks: [{ type: 'text', text: text }] }],
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
  const interceptor = feature.intercept!(request, {} as FeatureContext)!;
  return async () => {
    for (const event of [
      { type: 'block-start', index: 0, head: { type: 'text' } },
      { type: 'delta', index: 0, text: reply },
      { type: 'block-stop', index: 0 },
      { type: 'finish', reason: 'stop' },
      { type: 'end' },
    ] as const) {
      interceptor.event(event);
    }
    interceptor.end();
    await Bun.sleep(5);
  };
}

describe.each(FORMS)('the memory, %s', (form) => {
  const files = memories(form);

  test('stores neither message nor reply; the next turn is stored completely', async () => {
    const path = files.path();
    const [one, other] = [files.open({ path }), files.open({ path })];
    const end = turn(one.memory, 'I live in Oslo', 'Oslo is cold.');
    const endOther = turn(other.memory, 'I live in Rome', 'Rome is warm.');
    await Bun.sleep(20);
    await one.memory.erase('s');
    await Bun.sleep(files.clockMs);
    await end();
    await endOther();
    expect(await one.texts('s')).toEqual([]);
    expect(await other.texts('s')).toEqual([]);
    await turn(one.memory, 'I live in Bergen', 'It rains there.')();
    expect((await one.texts('s')).toSorted()).toEqual(['I live in Bergen', 'It rains there.']);
  });
});

describe('an external service', () => {
  test('does not get the turn', async () => {
    const calls: string[] = [];
    const memory = externalMemory({
      url: 'http://memo.test/recall',
      captureUrl: 'http://memo.test/events',
      timeoutMs: 1000,
      limits: DEFAULT_LIMITS,
      observer: watched(),
      fetch: async (_url, init) => {
        calls.push(`${init.method} ${String(init.body)}`);
        return Response.json({});
      },
    });
    const end = turn(memory, 'I live in Oslo', 'Oslo is cold.');
    await Bun.sleep(5);
    await memory.erase('s');
    await end();
    await turn(memory, 'I live in Bergen', 'It rains there.')();
    await memory.close();
    expect(calls[0]).toStartWith('DELETE');
    expect(calls.join()).not.toContain('Oslo');
    expect(calls.join()).toContain('Bergen');
  });
});

describe('stored responses', () => {
  test.each([true, false])('with a file: %p', async (withFile) => {
    const path = newFile('responses.db');
    const open = () => (withFile ? fileStore(path, { others: true }) : new ResponseStore({}));
    const stores = [open(), open()] as const;
    const [one, other] = stores;
    const keep = (store: ResponseStore, id: string, began: number) =>
      record(store, {
        body: {},
        response: { id, output: [] },
        owner: '',
        space: 's',
        began,
        inputItems: () => [],
        outputItems: () => [],
      });
    const began = preciseNow();
    await Bun.sleep(5);
    await one.eraseSpace('s');
    await Bun.sleep(5);
    keep(one, 'late', began);
    if (withFile) keep(other, 'late-too', began);
    keep(one, 'new', preciseNow());
    await one.flush();
    await other.flush();
    const has = async (store: ResponseStore, id: string) =>
      (await store.fetch({ responses: [id] }, '')).get(id, '')?.id;
    expect(await has(one, 'late')).toBeUndefined();
    expect(await has(other, 'late-too')).toBeUndefined();
    expect(await has(one, 'new')).toBe('new');
    for (const store of stores) await store.close();
  });
});

describe('descriptions of images', () => {
  test.each([true, false])('with a file: %p', async (withFile) => {
    const path = newFile('descriptions.db');
    const open = () => new MemoryEntries(withFile ? { folder: dirname(path) } : {});
    const one = open();
    const other = withFile ? open() : one;
    const here = one.room(DESCRIPTIONS);
    const there = withFile ? other.room(DESCRIPTIONS) : here;
    here.put(['image'], 'a cat for all');
    here.of('s').put(['image'], 'a cat of s');
    here.of('t').put(['image'], 'a cat of t');
    one.flush();
    expect(there.of('s').find(['image'])).toBe('a cat of s');
    // The descriptions arrive during the erasure.
    const [second, third] = [here.of('s'), there.of('s')];
    one.eraseGroup('s');
    second.put(['second'], 'a dog of s');
    third.put(['third'], 'a bird of s');
    one.flush();
    other.flush();
    for (const room of [here, there]) {
      for (const image of ['image', 'second', 'third']) {
        expect(room.of('s').find([image])).toBeUndefined();
      }
      expect(room.of('t').find(['image'])).toBe('a cat of t');
      expect(room.find(['image'])).toBe('a cat for all');
    }
    here.of('s').put(['image'], 'seen again');
    one.flush();
    expect(there.of('s').find(['image'])).toBe('seen again');
    await one.close();
    if (withFile) await other.close();
  });
});

/** Work on stored responses grows linearly with chains, items and references, and yields to other requests. */

import { describe, expect, test } from 'bun:test';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { carriesItemIds } from '../../src/codecs/openai-responses/reply/digest.ts';
import { prependItems } from '../../src/codecs/openai-responses/stored-items.ts';
import {
  chainItems,
  listInputItems,
  ResponseStore,
  referredItems,
  resolveReferences,
} from '../../src/features/response-store/index.ts';
import { responseStream } from '../../src/features/response-store/response-views.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { expectLinear } from '../support/growth.ts';

const message = (id: string): JsonObject => ({
  id,
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'a word', annotations: [] }],
});
const LIMITS = { memoryRows: 1_000_000, memoryBytes: 2 ** 40 };

/** A chain of that many responses, each with that many items. */
function storeOf(rows: number, each: number): ResponseStore {
  const store = new ResponseStore({ limits: LIMITS, flushMs: 1_000_000 });
  for (let i = 0; i < rows; i++) {
    const output = Array.from({ length: each }, (_, at) => message(`msg_${i}_${at}`));
    store.put({
      id: `resp_${i}`,
      owner: '',
      created: i,
      ...(i > 0 && { previous: `resp_${i - 1}` }),
      model: 'm',
      input: [{ type: 'message', role: 'user', content: 'go on' }],
      output,
      response: { id: `resp_${i}`, output },
    });
  }
  return store;
}
/** The size of one item, in characters. */
const ITEM = 100;
const itemsIn = (size: number) => Math.ceil(size / ITEM);

describe('chains and items', () => {
  test(
    'a chain of many responses takes linear time',
    () =>
      expectLinear({
        name: 'chain',
        input: (size) => ({ store: storeOf(itemsIn(size), 1), last: itemsIn(size) - 1 }),
        run: async ({ store, last }) => {
          const reads = await store.fetch({ responses: [`resp_${last}`], chains: true }, '');
          return chainItems(await reads.chain(`resp_${last}`, ''), 'vendor');
        },
        most: 2 ** 20,
      }),
    60_000,
  );

  test.each([true, false])(
    'many references to one response take linear time: %p',
    (one) =>
      expectLinear({
        name: 'references',
        input: (size) => {
          const count = itemsIn(size);
          const store = one ? storeOf(1, count) : storeOf(count, 1);
          const ids = Array.from({ length: count }, (_, i) => (one ? `msg_0_${i}` : `msg_${i}_0`));
          return { store, body: { input: ids.map((id) => ({ type: 'item_reference', id })) } };
        },
        run: async ({ store, body }) =>
          resolveReferences(body, await store.fetch({ items: referredItems(body) }, ''), ''),
        most: 2 ** 20,
      }),
    60_000,
  );

  test(
    'an unknown reference of any length takes linear time',
    () =>
      expectLinear({
        name: 'long ids',
        input: (size) => ({
          store: storeOf(10, 10),
          body: { input: [{ type: 'item_reference', id: 'x'.repeat(size) }] },
        }),
        run: async ({ store, body }) => {
          const reads = await store.fetch({ items: referredItems(body) }, '');
          return resolveReferences(body, reads, '', { mayKnow: true });
        },
      }),
    60_000,
  );

  test(
    'a page of very many input items takes linear time',
    () =>
      expectLinear({
        name: 'input items',
        input: (size) => ({ store: storeOf(itemsIn(size), 1), last: itemsIn(size) - 1 }),
        run: async ({ store, last }) => {
          const reads = await store.fetch({ responses: [`resp_${last}`], chains: true }, '');
          return listInputItems(reads, `resp_${last}`, '', { limit: 100 });
        },
        most: 2 ** 19,
      }),
    60_000,
  );

  test('a conversation with very many earlier items takes linear time, also streamed from the store', async () => {
    const made = (size: number) =>
      Array.from({ length: itemsIn(size) }, (_, i) => message(`msg_${i}`));
    await expectLinear({
      name: 'prepended',
      input: (size) => ({
        items: made(size),
        asked: openaiResponses.decodeRequest({ model: 'm', input: 'on' }),
      }),
      run: ({ items, asked: request }) => prependItems(request, items),
    });
    await expectLinear({
      name: 'replay',
      input: (size) => ({ id: 'resp_1', output: made(size) }),
      run: (response) => responseStream(response, null),
    });
  }, 60_000);

  test('frames without names take linear time', () =>
    expectLinear({
      name: 'carriesItemIds',
      input: (size) => ({ event: '', data: '"response.'.repeat(size / 10) }),
      run: (frame) => carriesItemIds(frame),
    }));
});

test('a chain of forty thousand responses yields to other requests', async () => {
  const store = storeOf(40_000, 1);
  let beats = 0;
  let over = false;
  const beat = () => {
    beats++;
    if (!over) setImmediate(beat);
  };
  setImmediate(beat);
  const reads = await store.fetch({ responses: ['resp_39999'], chains: true }, '');
  const chain = await reads.chain('resp_39999', '');
  over = true;
  expect('missing' in chain ? 0 : chain.links).toBe(40_000);
  expect(beats).toBeGreaterThan(0);
}, 60_000);

/** The rules of continuing, recording, listing and deleting responses. */

import { beforeEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GatewayError } from '../../../src/conversation/errors.ts';
import {
  earlierItems,
  listInputItems,
  ownerOf,
  ResponseStore,
  record,
  remove,
  resolveReferences,
  retrieve,
} from '../../../src/features/response-store/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { writesElsewhere } from '../../support/other-writer.ts';
import { fileStore } from '../../support/stored-rows.ts';

const inputItems = (body: JsonObject): readonly JsonObject[] =>
  typeof body.input === 'string'
    ? [{ type: 'message', role: 'user', content: body.input }]
    : (body.input as JsonObject[]);
const outputItems = (response: JsonObject) => response.output as JsonObject[];

let store: ResponseStore;
beforeEach(() => {
  store = new ResponseStore({});
});

function answer(id: string, body: JsonObject, owner = '', more: JsonObject = {}): boolean {
  const response = {
    id,
    object: 'response',
    created_at: 1_700_000_000,
    status: 'completed',
    model: 'm',
    instructions: body.instructions,
    output: [
      {
        type: 'message',
        id: `msg_${id}`,
        role: 'assistant',
        content: [{ type: 'output_text', text: id }],
      },
    ],
    ...more,
  };
  return record(store, { body, response, owner, inputItems, outputItems });
}

/** Everything that the tests name, fetched for this owner. */
const reads = (owner = '') =>
  store.fetch(
    { responses: ['resp_1', 'resp_2', 'resp_nope'], chains: true, items: ['msg_resp_1'] },
    owner,
  );

const failure = async (run: () => unknown): Promise<GatewayError> => {
  try {
    await run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
};

describe('continuing', () => {
  test('a request that continues no response stays unchanged', async () => {
    expect(await earlierItems({ input: 'hi' }, await reads(), '')).toBeUndefined();
    expect(
      await earlierItems({ input: 'hi', previous_response_id: null }, await reads(), ''),
    ).toBeUndefined();
  });

  test('earlier input and output come first, earlier instructions do not', async () => {
    answer('resp_1', { input: 'one', instructions: 'speak like a pirate' });
    answer('resp_2', { input: 'two', previous_response_id: 'resp_1', instructions: 'be brief' });
    const body = { input: 'three', previous_response_id: 'resp_2' };
    const items = (await earlierItems(body, await reads(), ''))!;
    expect(items.map((item) => (item as JsonObject).role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
    ]);
    expect(JSON.stringify(items)).not.toMatch(/pirate|brief|three/);
  });

  test('an unknown response is a 400 with OpenAI’s message', async () => {
    const error = await failure(
      async () => await earlierItems({ previous_response_id: 'resp_nope' }, await reads(), ''),
    );
    expect(error).toMatchObject({
      status: 400,
      kind: 'invalid_request',
      code: 'previous_response_not_found',
      param: 'previous_response_id',
      message: "Previous response with id 'resp_nope' not found.",
    });
  });

  test('a response made with store:false cannot be continued', async () => {
    expect(answer('resp_1', { input: 'one', store: false })).toBe(false);
    expect(
      (
        await failure(
          async () => await earlierItems({ previous_response_id: 'resp_1' }, await reads(), ''),
        )
      ).code,
    ).toBe('previous_response_not_found');
    expect((await failure(async () => retrieve(await reads(), 'resp_1', ''))).status).toBe(404);
  });

  test('store:false may still continue a stored response', async () => {
    answer('resp_1', { input: 'one' });
    expect(
      await earlierItems({ store: false, previous_response_id: 'resp_1' }, await reads(), ''),
    ).toHaveLength(2);
  });

  test('the error names the deleted link, not the requested one', async () => {
    answer('resp_1', { input: 'one' });
    answer('resp_2', { input: 'two', previous_response_id: 'resp_1' });
    await remove(store, 'resp_1', '');
    expect(
      (
        await failure(
          async () => await earlierItems({ previous_response_id: 'resp_2' }, await reads(), ''),
        )
      ).message,
    ).toContain('resp_1');
  });

  test('a previous_response_id that is not a string is refused by name', async () => {
    expect(
      (await failure(async () => earlierItems({ previous_response_id: 7 }, await reads(), '')))
        .param,
    ).toBe('previous_response_id');
  });

  test('an incomplete response, or one without an id, is not stored', async () => {
    expect(answer('resp_1', { input: 'x' }, '', { status: 'in_progress' })).toBe(false);
    expect(answer('', { input: 'x' })).toBe(false);
    expect(answer('resp_2', { input: 'x' }, '', { status: 'incomplete' })).toBe(true);
  });
});

describe('item references', () => {
  test('a reference becomes the item it names; other items stay unchanged', async () => {
    answer('resp_1', { input: 'one' });
    const user = { role: 'user', content: 'two', id: 'msg_mine' };
    const body = { model: 'm', input: [{ type: 'item_reference', id: 'msg_resp_1' }, user] };
    const resolved = resolveReferences(body, await reads(), '');
    expect(resolved.input).toEqual([
      expect.objectContaining({ role: 'assistant', id: 'msg_resp_1' }),
      user,
    ]);
    expect(body.input[0]).toEqual({ type: 'item_reference', id: 'msg_resp_1' });
  });

  test('without references the same body comes back', async () => {
    for (const body of [{ input: 'x' }, { input: [{ role: 'user', content: 'x' }] }, {}]) {
      expect(resolveReferences(body, await reads(), '')).toBe(body);
    }
  });

  test('an unknown item, or another owner’s, is an error that names it', async () => {
    answer('resp_1', { input: 'one' }, 'ann');
    const body = { input: [{ type: 'item_reference', id: 'msg_resp_1' }] };
    expect(
      await failure(async () => resolveReferences(body, await reads('bob'), 'bob')),
    ).toMatchObject({
      status: 404,
      param: 'input[0]',
      message: "Item with id 'msg_resp_1' not found.",
    });
  });
});

describe('retrieving and deleting', () => {
  test('the response comes back as the client got it, only to its owner', async () => {
    const owner = ownerOf('sk-secret');
    expect(owner).not.toContain('secret');
    expect(ownerOf('sk-other')).not.toBe(owner);
    expect(ownerOf('')).toBe('');
    answer('resp_1', { input: 'one' }, owner, { extra: { kept: 1.5 } });
    expect(retrieve(await reads(owner), 'resp_1', owner)).toMatchObject({
      id: 'resp_1',
      extra: { kept: 1.5 },
    });
    const error = await failure(async () =>
      retrieve(await reads(owner), 'resp_1', ownerOf('sk-other')),
    );
    expect(error).toMatchObject({ status: 404, message: "Response with id 'resp_1' not found." });
  });

  test('deleting confirms once and is a 404 afterwards', async () => {
    answer('resp_1', { input: 'one' });
    expect(await remove(store, 'resp_1', '')).toEqual({
      id: 'resp_1',
      object: 'response',
      deleted: true,
    });
    expect(remove(store, 'resp_1', '')).rejects.toMatchObject({ status: 404 });
    expect((await failure(async () => listInputItems(await reads(), 'resp_1', ''))).status).toBe(
      404,
    );
  });
});

describe('input items', () => {
  const ids = (page: JsonObject) => (page.data as JsonObject[]).map((item) => item.id);

  test('newest first, with stable ids for items that have none, and a cursor over all items', async () => {
    answer('resp_1', {
      input: Array.from({ length: 7 }, (_, i) => ({ role: 'user', content: `${i}` })),
    });
    const all = await listInputItems(await reads(), 'resp_1', '');
    expect(ids(all)).toHaveLength(7);
    expect(ids(all)).toEqual(ids(await listInputItems(await reads(), 'resp_1', '')));
    expect((all.data as JsonObject[])[0]).toMatchObject({ type: 'message', content: '6' });
    expect(new Set(ids(all)).size).toBe(7);
    const walked: unknown[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await listInputItems(await reads(), 'resp_1', '', { limit: '3', after });
      walked.push(...ids(page));
      expect(page.last_id).toBe(ids(page).at(-1)!);
      if (!page.has_more) break;
      after = page.last_id as string;
    }
    expect(walked).toEqual(ids(all));
    expect(ids(await listInputItems(await reads(), 'resp_1', '', { order: 'asc' }))).toEqual(
      ids(all).toReversed(),
    );
  });

  test('the items include the chain before the response', async () => {
    answer('resp_1', { input: 'one' });
    answer('resp_2', { input: 'two', previous_response_id: 'resp_1' });
    const page = await listInputItems(await reads(), 'resp_2', '', { order: 'asc' });
    const texts = (page.data as JsonObject[]).map((item) => JSON.stringify(item.content));
    expect(texts).toEqual(['"one"', expect.stringContaining('resp_1'), '"two"']);
  });

  test('a query out of bounds is refused by name', async () => {
    answer('resp_1', { input: 'one' });
    expect(
      (await failure(async () => listInputItems(await reads(), 'resp_1', '', { limit: 101 })))
        .param,
    ).toBe('limit');
    expect(
      (await failure(async () => listInputItems(await reads(), 'resp_1', '', { limit: 'x' })))
        .param,
    ).toBe('limit');
    expect(
      (await failure(async () => listInputItems(await reads(), 'resp_1', '', { order: 'up' })))
        .param,
    ).toBe('order');
    expect(
      (
        await failure(
          async () => await listInputItems(await reads(), 'resp_1', '', { after: 'msg_nope' }),
        )
      ).param,
    ).toBe('after');
  });
});

test('a response that waits at the end is written although another process writes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hopgate-responses-'));
  const path = join(folder, 'responses.db');
  store = fileStore(path, { flushMs: 1e6 });
  answer('resp_1', { input: 'one' });
  await store.flush();
  answer('resp_2', { input: 'two' });
  const { over } = await writesElsewhere(path, 600);
  await store.close();
  await over;
  store = fileStore(path);
  expect(retrieve(await reads(), 'resp_2', '')).toMatchObject({ id: 'resp_2' });
  await store.close();
  rmSync(folder, { recursive: true });
});

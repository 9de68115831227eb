/** Responses stored by vendors instead of this gateway: continuing across both, owners, background jobs. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { type KeepingVendor, startKeepingVendor } from '../../support/keeping-vendor.ts';

let vendor: KeepingVendor;
let other: KeepingVendor;
let plain: FakeUpstream;
let open: InProcess;
let keyed: InProcess;

const configOf = (more: object = {}) => ({
  profiles: { keeping: { storesResponses: true } },
  providers: {
    v: {
      protocol: 'openai-responses',
      base_url: `${vendor.origin}/v1`,
      keys: ['sk-key-of-the-keeper'],
      profile: 'keeping',
      models: ['kept'],
    },
    w: {
      protocol: 'openai-responses',
      base_url: `${other.origin}/v1`,
      profile: 'keeping',
      models: ['other'],
    },
    chat: {
      protocol: 'openai-chat',
      base_url: plain.baseUrl('openai-chat'),
      keys: ['sk-plain'],
      models: ['chat'],
    },
    plain: {
      protocol: 'openai-responses',
      base_url: plain.baseUrl('openai-responses'),
      keys: ['sk-plain'],
      models: ['plain'],
    },
  },
  samples: { mode: 'off' },
  ...more,
});
const KEYS = {
  auth: {
    keys: [
      { name: 'ann', key: 'key-of-ann' },
      { name: 'bob', key: 'key-of-bob' },
    ],
  },
};

beforeAll(async () => {
  vendor = startKeepingVendor('v');
  other = startKeepingVendor('w');
  plain = await startFakeUpstream();
  open = await startInProcess(configOf());
  keyed = await startInProcess(configOf(KEYS));
});
afterEach(() => {
  vendor.clear();
  vendor.refuseById(undefined);
  other.clear();
  plain.clear();
});
afterAll(async () => {
  await Promise.all([open?.stop(), keyed?.stop()]);
  await Promise.all([vendor?.stop(), other?.stop(), plain?.stop()]);
});

const client = (gateway: InProcess, apiKey = 'none') =>
  new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

/** One turn, with its answer's id, text and items, streamed or not. */
async function turn(
  one: OpenAI,
  body: JsonObject & { readonly model: string },
  stream = false,
): Promise<OpenAI.Responses.Response> {
  if (!stream) return one.responses.create(body as never);
  const events = await one.responses.create({ ...body, stream: true } as never);
  for await (const event of events as unknown as AsyncIterable<OpenAI.Responses.ResponseStreamEvent>) {
    if (event.type === 'response.completed') return event.response;
  }
  throw new Error('no end');
}

const failureOf = async (asking: Promise<unknown>) =>
  asking.then(
    () => ({ status: 200, code: undefined }),
    (error: { status: number; code: unknown }) => ({ status: error.status, code: error.code }),
  );

describe.each([false, true])(
  'a conversation moves between vendors and the gateway’s store, streamed: %p',
  (stream) => {
    test.each([
      ['chat', 'kept'],
      ['plain', 'kept'],
      ['kept', 'chat'],
      ['kept', 'plain'],
      ['kept', 'other'],
      ['kept', 'kept'],
    ])('from %s to %s and back', async (first, second) => {
      const app = client(open);
      plain.answerWith(() => say('from the plain one'));
      const one = await turn(app, { model: first, input: 'the zebra is called Zoe' }, stream);
      const two = await turn(
        app,
        { model: second, input: 'and the lion Leo', previous_response_id: one.id },
        stream,
      );
      const three = await turn(
        app,
        { model: first, input: 'who is who?', previous_response_id: two.id },
        stream,
      );
      expect(new Set([one.id, two.id, three.id]).size).toBe(3);
      const last =
        first === 'kept'
          ? JSON.stringify(three.output)
          : JSON.stringify(plain.modelRequests.at(-1)?.body ?? {});
      expect(last).toContain('zebra is called Zoe');
      expect(last).toContain('lion Leo');
    });

    test.each(['plain', 'kept', 'other', 'chat'])(
      '%s: each request names the previous response',
      async (model) => {
        const app = client(open);
        const first = await turn(app, {
          model: model === 'chat' ? 'kept' : 'chat',
          input: 'hello',
        });
        const body = { model, input: 'and?', previous_response_id: first.id };
        if (!stream) {
          expect((await app.responses.create(body)).previous_response_id).toBe(first.id);
          return;
        }
        const named: (string | null | undefined)[] = [];
        for await (const event of await app.responses.create({ ...body, stream })) {
          if ('response' in event) named.push(event.response.previous_response_id);
        }
        expect(named.length).toBeGreaterThan(1);
        expect([...new Set(named)]).toEqual([first.id]);
      },
    );

    test('items are known on both sides too', async () => {
      const app = client(open);
      const one = await turn(app, { model: 'kept', input: 'hello' }, stream);
      const reference = { type: 'item_reference', id: one.output[0]!.id! };
      await turn(
        app,
        { model: 'chat', input: [reference, { role: 'user', content: 'on' }] },
        stream,
      );
      expect(JSON.stringify(plain.modelRequests.at(-1)?.body)).toContain('v heard');
      vendor.clear();
      await turn(
        app,
        { model: 'kept', input: [reference, { role: 'user', content: 'on' }] },
        stream,
      );
      expect(vendor.requests[0]!.body.input).toEqual([reference, { role: 'user', content: 'on' }]);
    });
  },
);

describe('a response that the gateway does not know', () => {
  test('is sent to a vendor of the same protocol unchanged, without keys', async () => {
    const reference = { type: 'item_reference', id: 'msg_elsewhere' };
    const body = { model: 'plain', input: [reference, { role: 'user', content: 'on' }] };
    await turn(client(open), body);
    expect(plain.modelRequests.at(-1)?.body.input).toEqual(body.input);
    expect(
      await failureOf(
        turn(client(open), { model: 'kept', input: 'x', previous_response_id: 'resp_x' }),
      ),
    ).toEqual({ status: 400, code: 'previous_response_not_found' });
    expect(vendor.requests).toHaveLength(1);
  });

  test('is not found by another protocol', async () => {
    const reference = { type: 'item_reference', id: 'msg_elsewhere' };
    expect(
      (await failureOf(turn(client(open), { model: 'chat', input: [reference] }))).status,
    ).toBe(404);
    expect(plain.modelRequests).toHaveLength(0);
  });
});

describe('with keys, a response stored by a vendor belongs to its owner', () => {
  let annsResponse = '';
  let annsItem = '';
  beforeAll(async () => {
    const made = await turn(client(keyed, 'key-of-ann'), { model: 'kept', input: 'ANN-SECRET' });
    annsResponse = made.id;
    annsItem = made.output[0]!.id!;
  });

  const forms: [string, () => JsonObject][] = [
    ['previous_response_id', () => ({ previous_response_id: annsResponse })],
    ['an item_reference', () => ({ input: [{ type: 'item_reference', id: annsItem }] })],
    ['a reference without type', () => ({ input: [{ id: annsItem }] })],
    ['a reference of type null', () => ({ input: [{ type: null, id: annsItem }] })],
    ['an image by its id', () => ({ input: [{ type: 'image_generation_call', id: 'ig_1' }] })],
    ['an unknown response', () => ({ previous_response_id: 'resp_unknown' })],
    ['a conversation', () => ({ conversation: 'conv_1' })],
    ['a conversation as an object', () => ({ conversation: { id: 'conv_1' } })],
  ];
  test.each(forms)('%s: the vendor gets no request', async (_name, more) => {
    for (const model of ['kept', 'plain', 'chat']) {
      for (const stream of [false, true]) {
        const body = { model, input: 'what did ann say?', ...more() };
        if (model === 'chat' && !('previous_response_id' in body)) continue;
        if (model === 'plain' && JSON.stringify(body).includes('image_generation')) continue;
        vendor.clear();
        const { status } = await failureOf(turn(client(keyed, 'key-of-bob'), body, stream));
        expect([400, 404]).toContain(status);
        expect(vendor.requests).toEqual([]);
        expect(plain.modelRequests).toEqual([]);
      }
    }
  });

  test('an ambiguous body cannot name another owner’s response', async () => {
    const ask = (body: string) =>
      fetch(`${keyed.url}/v1/responses`, {
        method: 'POST',
        headers: { authorization: 'Bearer key-of-bob', 'content-type': 'application/json' },
        body,
      });
    const escaped = `{"model":"kept","input":"x","previous\\u005fresponse_id":"${annsResponse}"}`;
    expect((await ask(escaped)).status).toBe(400);
    expect(vendor.requests).toEqual([]);
    const twice = `{"model":"kept","previous_response_id":"${annsResponse}","input":"x","previous_response_id":null}`;
    expect((await ask(twice)).status).toBe(400);
    expect(vendor.requests).toEqual([]);
  });

  test('the owner can continue, also after a restart; another key cannot', async () => {
    const config = configOf(KEYS);
    const first = await startInProcess(config);
    try {
      const made = await turn(client(first, 'key-of-ann'), { model: 'kept', input: 'ANN-TOO' });
      const body = { model: 'kept', input: 'again?', previous_response_id: made.id };
      const second = await startInProcess(config, first.home);
      try {
        // Stored rows reach the file in batches.
        await Bun.sleep(400);
        expect(JSON.stringify(await turn(client(second, 'key-of-ann'), body))).toContain('ANN-TOO');
        vendor.clear();
        const bob = client(second, 'key-of-bob');
        expect((await failureOf(turn(bob, body))).code).toBe('previous_response_not_found');
        expect(vendor.requests).toEqual([]);
      } finally {
        await second.stop();
      }
    } finally {
      await first.stop();
    }
  });

  test.each([
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/cancel'],
    ['GET', '/input_items'],
  ])('%s …%s of another key’s response is a 404', async (method, path) => {
    const headers = { authorization: 'Bearer key-of-bob' };
    const response = await fetch(`${keyed.url}/v1/responses/${annsResponse}${path}`, {
      method,
      headers,
    });
    expect(response.status).toBe(404);
    expect(vendor.requests).toEqual([]);
  });
});

describe('by id', () => {
  test('a background job is sent once and polled until it is complete', async () => {
    const app = client(open);
    const made = await fetch(`${open.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model: 'kept', input: 'slowly', background: true }),
    });
    expect(made.status).toBe(200);
    const queued = (await made.json()) as { id: string; status: string };
    expect(queued.status).toBe('queued');
    expect(vendor.requests).toHaveLength(1);
    const polled = await app.responses.retrieve(queued.id);
    expect(polled.status).toBe('completed');
    expect(vendor.requests.at(-1)!.line).toBe(`GET /responses/${queued.id}`);
    // The final state is known here, too.
    await turn(app, { model: 'chat', input: 'and?', previous_response_id: queued.id });
    expect(JSON.stringify(plain.modelRequests.at(-1)?.body)).toContain('v heard');
    const cancelled = await app.responses.cancel(queued.id);
    expect(cancelled.status).toBe('cancelled');
  });

  test('a streamed background job starts once, even if its stream breaks off', async () => {
    vendor.breakJobs(true);
    const body = { model: 'kept', input: 'slowly', background: true, stream: true };
    const response = await fetch(`${open.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    let text = '';
    // A stream that broke off is reset after its error.
    await (async () => {
      for await (const chunk of response.body!) text += Buffer.from(chunk).toString();
    })().catch(() => undefined);
    vendor.breakJobs(false);
    expect(vendor.requests.map(({ line }) => line)).toEqual(['POST /responses']);
    expect(text).toContain('response.queued');
    expect(text).toContain('ended before the answer was complete');
    const id = /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? '';
    expect((await client(open).responses.retrieve(id)).status).toBe('completed');
  });

  test('a streamed background job continues when its client leaves', async () => {
    const app = client(open);
    const body = { model: 'kept', input: 'slowly', background: true, stream: true };
    const leaving = new AbortController();
    const response = await fetch(`${open.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: leaving.signal,
    });
    expect(response.status).toBe(200);
    const reader = response.body!.getReader();
    let text = '';
    while (!text.includes('response.queued')) {
      const { value, done } = await reader.read();
      if (done) break;
      text += Buffer.from(value).toString();
    }
    const id = /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? '';
    leaving.abort();
    await reader.read().catch(() => undefined);
    await vendor.left;
    expect(vendor.requests.map(({ line }) => line)).toEqual(['POST /responses']);
    const polled = await app.responses.retrieve(id);
    expect([polled.id, polled.status]).toEqual([id, 'completed']);
    const again = await app.responses.retrieve(id, { stream: true, starting_after: 1 });
    const types: string[] = [];
    for await (const event of again) types.push(event.type);
    expect(types.at(-1)).toBe('response.completed');
    // The conversation continues at another vendor, too.
    await turn(app, { model: 'chat', input: 'and?', previous_response_id: id });
    expect(JSON.stringify(plain.modelRequests.at(-1)?.body)).toContain('v heard');
  });

  test('a response stored by a vendor is read, streamed and deleted there', async () => {
    const app = client(open);
    const { id } = await turn(app, { model: 'kept', input: 'hello' });
    expect((await app.responses.retrieve(id, { include: [] })).id).toBe(id);
    const again = await fetch(`${open.url}/v1/responses/${id}?stream=true&starting_after=1`);
    expect(again.headers.get('content-type')).toContain('event-stream');
    expect(await again.text()).toContain('response.completed');
    expect(vendor.requests.at(-1)!.line).toBe(`GET /responses/${id}?stream=true&starting_after=1`);
    const listed = await fetch(`${open.url}/v1/responses/${id}/input_items?limit=3`);
    expect(await listed.json()).toMatchObject({ from: 'v' });
    await app.responses.delete(id);
    expect(vendor.stored.has(id)).toBe(false);
    expect((await failureOf(app.responses.retrieve(id))).status).toBe(404);
  });

  test.each([
    ['GET', ''],
    ['GET', '?stream=true'],
    ['DELETE', ''],
    ['POST', '/cancel'],
    ['GET', '/input_items'],
  ])('a vendor that repeats its key in an error does not tell it: %s %s', async (method, more) => {
    const { id } = await turn(client(open), { model: 'kept', input: 'hello' });
    const ask = async (status: number) => {
      vendor.refuseById(status);
      const answer = await fetch(`${open.url}/v1/responses/${id}${more}`, { method });
      const all = JSON.stringify([...answer.headers]) + (await answer.clone().text());
      expect(all).not.toContain('sk-key-of-the-keeper');
      const { error } = (await answer.json()) as { error: { code: string; message: string } };
      return [answer.status, error.code, error.message] as const;
    };
    // The client's own key is not at fault.
    const [status, code, message] = await ask(401);
    expect([status, code]).toEqual([502, 'provider_key_refused']);
    expect(message).toContain("the gateway's own key");
    const [own, ownCode, words] = await ask(409);
    expect([own, ownCode]).toEqual([409, 'some_code']);
    expect(words).toStartWith('What was wrong: Bearer ***');
  });

  test('a response stored only by the gateway is streamed from the store', async () => {
    const app = client(open);
    const made = await turn(app, { model: 'chat', input: 'hello' });
    const stream = await app.responses.retrieve(made.id, { stream: true });
    let text = '';
    let last: OpenAI.Responses.Response | undefined;
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      if (event.type === 'response.completed') last = event.response;
    }
    expect(text).toBe(made.output_text);
    expect(last?.output).toEqual(made.output);
    const cut = await fetch(`${open.url}/v1/responses/${made.id}?stream=true&starting_after=2`);
    expect(await cut.text()).not.toContain('response.created');
    expect((await failureOf(app.responses.cancel(made.id))).status).toBe(400);
  });

  test('endpoints that are not served say so instead of blaming the model', async () => {
    for (const path of ['/v1/conversations', '/v1/conversations/c/items']) {
      const response = await fetch(`${open.url}${path}`, { method: 'POST', body: '{}' });
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      expect([response.status, error.code]).toEqual([404, 'unsupported_endpoint']);
      expect(error.message).toContain('conversation');
    }
  });

  test('input_tokens counts what the request continues', async () => {
    const app = client(open);
    const made = await turn(app, { model: 'chat', input: 'word '.repeat(2000) });
    const body = { model: 'chat', input: 'and?' };
    const short = await app.responses.inputTokens.count(body);
    const long = await app.responses.inputTokens.count({ ...body, previous_response_id: made.id });
    expect(short.object).toBe('response.input_tokens');
    expect(long.input_tokens).toBeGreaterThan(short.input_tokens + 1000);
  });
});

test('a response stored by one process is known to another at once', async () => {
  const one = await startInProcess(configOf({ workers: 2 }));
  const two = await startInProcess(configOf({ workers: 2 }), one.home);
  try {
    for (let i = 0; i < 12; i++) {
      const made = await turn(client(one), { model: 'chat', input: `hello ${i}` }, true);
      const input = [
        { type: 'item_reference', id: made.output[0]!.id! },
        { role: 'user', content: 'x' },
      ];
      const [next] = await Promise.all([
        turn(client(two), { model: 'chat', input: 'on', previous_response_id: made.id }, true),
        turn(client(two), { model: 'chat', input }),
        client(two).responses.retrieve(made.id),
      ]);
      expect(next.id).not.toBe(made.id);
    }
  } finally {
    await two.stop();
    await one.stop();
  }
});

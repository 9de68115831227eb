/** A vendor that is asked on its own WebSocket: reuse, refusals, losses, and the way over HTTP where it fails. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { ResponsesSocket, textOf } from '../support/responses-socket.ts';
import { until } from '../support/until.ts';

type Socket = Bun.ServerWebSocket<undefined>;

const OUTPUT = (text: string, id = 'msg_1') => [
  {
    id,
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [] }],
  },
];

/** The events of an answer. */
function events(text: string, id = 'resp_1'): JsonObject[] {
  const response = {
    id,
    object: 'response',
    created_at: 1,
    model: 'm1',
    status: 'in_progress',
    output: [],
  };
  const message = id.replace('resp', 'msg');
  const [item] = OUTPUT(text, message);
  const at = { item_id: message, output_index: 0, content_index: 0 };
  const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
  return [
    { type: 'response.created', response },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item!, status: 'in_progress', content: [] },
    },
    {
      type: 'response.content_part.added',
      ...at,
      part: { type: 'output_text', text: '', annotations: [] },
    },
    { type: 'response.output_text.delta', ...at, delta: text },
    { type: 'response.output_text.done', ...at, text },
    { type: 'response.output_item.done', output_index: 0, item: item! },
    {
      type: 'response.completed',
      response: { ...response, status: 'completed', output: OUTPUT(text, message), usage },
    },
  ].map((event, sequence_number) => ({ ...event, sequence_number }) as JsonObject);
}

/** Speaks both, and writes down how it was asked. */
class Vendor {
  readonly frames: JsonObject[] = [];
  readonly posts: JsonObject[] = [];
  readonly handshakes: Headers[] = [];
  closed = 0;
  refusesUpgrade = false;
  /** What is said to a frame. */
  answer: (socket: Socket, frame: JsonObject) => void = (socket) =>
    this.say(socket, events('By socket.'));
  /** What is said to a POST. */
  answerPost: readonly JsonObject[] = events('By HTTP.');
  readonly #server = Bun.serve<undefined>({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async (request, server) => {
      if (request.headers.get('upgrade') === 'websocket') {
        this.handshakes.push(request.headers);
        if (this.refusesUpgrade) return new Response('no', { status: 404 });
        return server.upgrade(request, { data: undefined })
          ? undefined
          : new Response('', { status: 400 });
      }
      this.posts.push((await request.json()) as JsonObject);
      const text = this.answerPost.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
      return new Response(text, { headers: { 'content-type': 'text/event-stream' } });
    },
    websocket: {
      message: (socket, text) => {
        const frame = JSON.parse(String(text)) as JsonObject;
        this.frames.push(frame);
        this.answer(socket, frame);
      },
      close: () => void this.closed++,
    },
  });

  say(socket: Socket, list: readonly JsonObject[]): void {
    for (const event of list) socket.send(JSON.stringify(event));
  }

  get baseUrl(): string {
    return `${this.#server.url}v1`;
  }

  stop(): Promise<void> {
    return this.#server.stop(true);
  }
}

let vendor: Vendor;
let gateway: InProcess;
let config: JsonObject;

beforeEach(async () => {
  vendor = new Vendor();
  const socket = {
    protocol: 'openai-responses',
    base_url: vendor.baseUrl,
    keys: ['sk-up'],
    models: ['m1'],
    websocket: true,
  };
  config = {
    providers: { socket },
    retry: { attempts: 1 },
    samples: { mode: 'off' },
  };
  gateway = await startInProcess(config);
});
afterEach(async () => {
  await gateway.stop();
  await vendor.stop();
});

const post = (body: JsonObject, path = '/v1/responses') =>
  fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm1', ...body }),
  });

async function streamed(
  body: JsonObject = { input: 'Hello.' },
): Promise<{ text: string; notes: string | null }> {
  const answer = await post({ stream: true, ...body });
  return { text: await answer.text(), notes: answer.headers.get('x-hopgate-notes') };
}

describe('a vendor with a WebSocket', () => {
  test('gets a stream as a frame, with its key, and answers as by HTTP', async () => {
    const { text, notes } = await streamed();
    expect(text).toContain('By socket.');
    expect([notes, vendor.posts]).toEqual([null, []]);
    expect(vendor.frames).toEqual([{ type: 'response.create', model: 'm1', input: 'Hello.' }]);
    const [handshake] = vendor.handshakes;
    expect(handshake!.get('authorization')).toBe('Bearer sk-up');
    expect(handshake!.get('openai-beta')).toBe('responses_websockets=2026-02-06');
  });

  test('the state of a turn goes with its frame, not with the handshake, and comes back as it was told', async () => {
    const state = { 'x-codex-turn-state': 'state-1' };
    const metadata = { type: 'response.metadata', headers: state };
    vendor.answer = (socket) => vendor.say(socket, [metadata, ...events('By socket.')]);
    const socket = await ResponsesSocket.open(gateway.url);
    try {
      socket.create({ model: 'm1', input: 'a' });
      await socket.last(0);
      expect(socket.frames.filter(({ type }) => type === 'response.metadata')).toEqual([metadata]);
      socket.create({ model: 'm1', input: 'b', client_metadata: { turn_id: 't', ...state } });
      await socket.last(1);
      socket.create({ model: 'm1', input: 'c', client_metadata: { turn_id: 'u' } });
      await socket.last(2);
    } finally {
      socket.close();
    }
    expect(vendor.frames.map(({ client_metadata }) => client_metadata)).toEqual([
      undefined,
      { turn_id: 't', ...state },
      { turn_id: 'u' },
    ]);
    expect(vendor.handshakes).toHaveLength(1);
    expect(vendor.handshakes[0]!.get('x-codex-turn-state')).toBe(null);
  });

  test('is asked on the same connection again, and by HTTP for what is no stream', async () => {
    for (let i = 0; i < 3; i++) expect((await streamed()).text).toContain('By socket.');
    expect([vendor.handshakes.length, vendor.frames.length]).toEqual([1, 3]);
    const whole = await post({ input: 'Hello.' });
    await whole.text();
    expect([vendor.handshakes.length, vendor.posts.length]).toEqual([1, 1]);
  });

  test('gets only what is new of a conversation, stored or not, and all of it where it has forgotten', async () => {
    const user = (content: string) => ({ role: 'user', content });
    const turns: JsonObject[] = [user('One.')];
    const ask = async () => {
      const answer = await post({
        stream: true,
        store: false,
        input: turns,
        client_metadata: { turn: turns.length },
      });
      const text = await answer.text();
      expect(text).toContain('response.completed');
      const said = OUTPUT('By socket.', `msg_${vendor.frames.length}`) as JsonObject[];
      turns.push(...said, user('And then?'));
      return text;
    };
    vendor.answer = (socket, frame) => {
      const previous = frame.previous_response_id ?? null;
      const told = events('By socket.', `resp_${vendor.frames.length}`).map((event) =>
        'response' in event
          ? {
              ...event,
              response: { ...(event.response as JsonObject), previous_response_id: previous },
            }
          : event,
      );
      vendor.say(socket, told);
    };
    await ask();
    const second = await ask();
    expect(vendor.frames[1]).toMatchObject({
      previous_response_id: 'resp_1',
      input: [user('And then?')],
    });
    expect(vendor.frames[1]!.client_metadata).toEqual({ turn: 3 });
    expect(second).not.toContain('resp_1"');
    await ask();
    expect(vendor.frames[2]).toMatchObject({
      previous_response_id: 'resp_2',
      input: [user('And then?')],
    });
    const { answer } = vendor;
    vendor.answer = (socket, frame) =>
      frame.previous_response_id === undefined
        ? answer(socket, frame)
        : vendor.say(socket, [
            {
              type: 'error',
              status: 400,
              error: { code: 'previous_response_not_found', message: 'Not found.' },
            },
          ]);
    await ask();
    expect(vendor.frames).toHaveLength(5);
    expect(vendor.frames[4]!.input).toHaveLength(7);
    // Another conversation, and other settings, are sent in full.
    vendor.answer = answer;
    turns.splice(0, turns.length, user('Anew.'));
    await ask();
    expect(vendor.frames[5]).toEqual({
      type: 'response.create',
      model: 'm1',
      store: false,
      input: [user('Anew.')],
      client_metadata: { turn: 1 },
    });
    expect([vendor.handshakes.length, vendor.posts.length]).toEqual([1, 0]);
  });

  test('is asked on one connection by one key only, although all headers are equal', async () => {
    const keys = ['one', 'two'].map((name) => ({ name, key: `key-of-${name}-client` }));
    gateway.reload({ ...config, auth: { keys } });
    const asked: Socket[] = [];
    const { answer } = vendor;
    vendor.answer = (socket, frame) => {
      asked.push(socket);
      answer(socket, frame);
    };
    for (const { key } of [...keys, ...keys]) {
      const came = await fetch(`${gateway.url}/v1/responses`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: 'm1', stream: true, input: 'Hello.' }),
      });
      expect(await came.text()).toContain('By socket.');
    }
    expect(vendor.handshakes).toHaveLength(2);
    expect(asked.map((socket) => asked.indexOf(socket))).toEqual([0, 1, 0, 1]);
  });

  test('is asked side by side on connections of their own', async () => {
    const waiting: Socket[] = [];
    vendor.answer = (socket) => {
      if (waiting.push(socket) === 3)
        for (const one of waiting) vendor.say(one, events('Together.'));
    };
    const all = await Promise.all([streamed(), streamed(), streamed()]);
    expect(all.every(({ text }) => text.includes('Together.'))).toBe(true);
    expect(vendor.handshakes).toHaveLength(3);
  });

  test('serves clients of other protocols and of the WebSocket', async () => {
    const chat = await post(
      { stream: true, messages: [{ role: 'user', content: 'Hello.' }] },
      '/v1/chat/completions',
    );
    expect(await chat.text()).toContain('By socket.');
    const socket = await ResponsesSocket.open(gateway.url);
    socket.create({ model: 'm1', input: 'Hello.' });
    expect(textOf(await socket.last())).toBe('By socket.');
    socket.close();
    expect(vendor.posts).toEqual([]);
  });

  test('refuses by an error frame: its status and headers reach the client', async () => {
    vendor.answer = (socket) =>
      vendor.say(socket, [
        { type: 'codex.rate_limits', limits: [] },
        {
          type: 'error',
          status: 429,
          error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'Too fast.' },
          headers: { 'retry-after': '77', 'bad name': 'x' },
        },
      ]);
    const answer = await post({ stream: true, input: 'Hello.' });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '77']);
    expect(await answer.json()).toMatchObject({ error: { message: 'Too fast.' } });
    vendor.answer = (socket) => vendor.say(socket, events('Better now.'));
    expect((await streamed()).text).toContain('Better now.');
    expect(vendor.handshakes).toHaveLength(1);
  });
});

describe('where the socket fails', () => {
  test('in its handshake: by HTTP with a note, and no other handshake soon', async () => {
    vendor.refusesUpgrade = true;
    for (let i = 0; i < 2; i++) {
      const { text, notes } = await streamed();
      expect(text).toContain('By HTTP.');
      expect(notes).toContain('websocket_unavailable');
    }
    expect([vendor.handshakes.length, vendor.posts.length]).toEqual([1, 2]);
    expect(vendor.posts[0]).toMatchObject({ stream: true });
  });

  test('before an answer begins: by HTTP, once', async () => {
    vendor.answer = (socket) => socket.close();
    const { text, notes } = await streamed();
    expect(text).toContain('By HTTP.');
    expect(notes).toContain('websocket_unavailable');
    expect([vendor.frames.length, vendor.posts.length]).toEqual([1, 1]);
  });

  test('because the vendor ends the connection: by HTTP', async () => {
    vendor.answer = (socket) =>
      vendor.say(socket, [
        {
          type: 'error',
          status: 400,
          error: { code: 'websocket_connection_limit_reached', message: 'Enough.' },
        },
      ]);
    expect((await streamed()).text).toContain('By HTTP.');
  });

  test('within an answer: the answer is cut, and nothing is asked again', async () => {
    vendor.answer = (socket) => {
      vendor.say(socket, events('The beginning.').slice(0, 4));
      setTimeout(() => socket.terminate(), 20);
    };
    const answer = await post({ stream: true, input: 'Hello.' });
    const text = await answer.text().catch((error: unknown) => String(error));
    expect(text).not.toContain('response.completed');
    expect([vendor.frames.length, vendor.posts.length]).toEqual([1, 0]);
    const socket = await ResponsesSocket.open(gateway.url);
    socket.create({ model: 'm1', input: 'Hello.' });
    expect((await socket.last()).type).toBe('response.failed');
    socket.close();
  });

  test('a client that leaves: the socket to the vendor is closed', async () => {
    vendor.answer = (socket) => vendor.say(socket, events('For ever.').slice(0, 4));
    const socket = await ResponsesSocket.open(gateway.url);
    socket.create({ model: 'm1', input: 'Hello.' });
    await until(() => socket.frames.length >= 4);
    socket.close();
    await until(() => vendor.closed === 1);
    expect(vendor.posts).toEqual([]);
  });
});

describe('an error event', () => {
  const flat = { type: 'error', code: 'server_is_overloaded', message: 'Too busy.', param: null };
  const framed = {
    type: 'error',
    status: 503,
    error: { type: 'server_error', code: 'server_is_overloaded', message: 'Too busy.' },
  };
  const failed = {
    type: 'response.failed',
    response: {
      id: 'resp_1',
      object: 'response',
      status: 'failed',
      error: { code: 'server_is_overloaded', message: 'Too busy.' },
      output: [],
    },
  };
  const begun = events('The beginning.').slice(0, 5);

  test.each([
    ['a socket', 'an event', [flat]],
    ['a socket', 'a frame with a status', [framed]],
    ['a socket', 'an event before response.failed', [flat, failed]],
    ['HTTP', 'an event', [flat]],
    ['HTTP', 'with a status', [framed]],
    ['HTTP', 'before response.failed', [flat, failed]],
  ] as const)(
    'within an answer by %s, %s: one end for a client of the WebSocket, and the next request gets its own answer',
    async (by, _form, end) => {
      vendor.refusesUpgrade = by === 'HTTP';
      vendor.answerPost = [...begun, ...end];
      vendor.answer = (socket, { input }) =>
        vendor.say(socket, input === 'First.' ? vendor.answerPost : events('Second.', 'resp_2'));
      const socket = await ResponsesSocket.open(gateway.url);
      try {
        socket.create({ model: 'm1', input: 'First.' });
        const last = await socket.last();
        vendor.answerPost = events('Second.', 'resp_2');
        socket.create({ model: 'm1', input: 'Second.' });
        expect(textOf(await socket.last(1))).toBe('Second.');
        // The vendor's code may be none that a response object can have.
        const response = { id: 'resp_1', status: 'failed', error: { message: 'Too busy.' } };
        expect(last).toMatchObject({ type: 'response.failed', response });
        expect(socket.frames.filter(({ type }) => type === 'response.created')).toHaveLength(2);
        expect(socket.frames.filter(({ type }) => type === 'error')).toHaveLength(1);
      } finally {
        socket.close();
      }
    },
  );

  test.each([
    ['server_is_overloaded', {}, 503],
    ['rate_limit_exceeded', {}, 429],
    ['invalid_prompt', {}, 400],
    ['anything', { status_code: 429 }, 429],
  ])(
    'in place of an answer, without a status of its own: the code %s and %o say it',
    async (code, more, status) => {
      const message = 'Not now.';
      for (const frame of [
        { type: 'error', code, message, param: null, ...more },
        { type: 'error', error: { type: code, code, message }, ...more },
      ]) {
        vendor.answer = (socket) => vendor.say(socket, [frame]);
        const answer = await post({ stream: true, input: 'Hello.' });
        expect([answer.status, await answer.text()]).toEqual([
          status,
          expect.stringContaining(message),
        ]);
      }
      expect(vendor.posts).toEqual([]);
    },
  );
});

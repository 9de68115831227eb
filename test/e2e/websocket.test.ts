/** The Responses API over WebSocket, through the compiled binary, onto vendors that know only HTTP. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { allProviders, type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import {
  call,
  type FakeUpstream,
  say,
  startFakeUpstream,
  toolResults,
} from '../support/fake-upstream/index.ts';
import { idOf, ResponsesSocket, textOf } from '../support/responses-socket.ts';
import { startToolServers, stopAll, toolsOf } from '../support/tool-servers.ts';
import { until } from '../support/until.ts';

const PROTOCOLS = ['chat', 'responses', 'messages', 'gemini'] as const;
const TOOL = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

let upstream: FakeUpstream;
let gateway: Gateway;
const opened: ResponsesSocket[] = [];

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1', 'gemini-3-m1'] });
  gateway = await startGateway(allProviders(upstream));
});
afterEach(() => {
  for (const socket of opened.splice(0)) socket.close();
  upstream.clear();
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

async function open(...more: [headers?: Record<string, string>, path?: string]) {
  const socket = await ResponsesSocket.open(gateway.url, ...more);
  opened.push(socket);
  return socket;
}

const user = (text: string): JsonObject => ({ role: 'user', content: text });
const vendorBody = (n: number) => JSON.stringify(upstream.modelRequests[n]?.body);

describe("openai's own WebSocket class", () => {
  test('completes a tool loop onto a vendor that knows only Chat, with deltas and nothing stored', async () => {
    upstream.answerWith((request) =>
      toolResults(request.protocol!, request.body).size === 0
        ? call({ name: 'get_weather', arguments: { city: 'Oslo' } })
        : say('Rain in Oslo.'),
    );
    const client = new OpenAI({ apiKey: 'sk-client', baseURL: `${gateway.url}/v1` });
    const socket = new ResponsesWS(client);
    const errors: unknown[] = [];
    socket.on('error', (error) => void errors.push(error));
    const done: OpenAI.Responses.Response[] = [];
    socket.on('response.completed', ({ response }) => void done.push(response));
    const ask = {
      type: 'response.create',
      model: 'via-chat',
      store: false,
      tools: [TOOL],
    } as const;
    socket.send({ ...ask, input: 'The weather in Oslo?' } as never);
    const first = await until(
      () => done[0],
      () => String(errors),
    );
    const asked = first.output.find((item) => item.type === 'function_call');
    expect(JSON.parse(asked!.arguments)).toEqual({ city: 'Oslo' });
    const result = { type: 'function_call_output', call_id: asked!.call_id, output: 'rain' };
    socket.send({ ...ask, previous_response_id: first.id, input: [result] } as never);
    const second = await until(
      () => done[1],
      () => String(errors),
    );
    expect(second.output_text ?? textOf({ response: second as never })).toBe('Rain in Oslo.');
    expect(second.previous_response_id).toBe(first.id);
    expect(errors).toEqual([]);
    // The vendor got the whole conversation.
    expect(vendorBody(1)).toContain('The weather in Oslo?');
    expect(upstream.refusals).toEqual([]);
    socket.close();
  });
});

describe('an answer', () => {
  test.each(PROTOCOLS)('has the events of the same stream by POST (%s)', async (name) => {
    upstream.answerWith(() => say('Hello over there.'));
    const body = { model: `via-${name}`, input: 'Hello.' };
    const posted = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, stream: true }),
    });
    const typesOf = (events: readonly JsonObject[]) =>
      events.map(({ type, sequence_number }) => [type, sequence_number]);
    const byPost = (await posted.text())
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => JSON.parse(line.slice('data: '.length)) as JsonObject);
    const socket = await open();
    // Codex leaves this in.
    socket.create({ ...body, stream: true });
    const last = await socket.last();
    expect(textOf(last)).toBe('Hello over there.');
    expect(typesOf(socket.frames)).toEqual(typesOf(byPost));
    socket.create({ ...body, stream_id: 'lane' });
    expect(textOf(await socket.last(0, 'lane'))).toBe('Hello over there.');
    const named = socket.frames.slice(byPost.length);
    expect(named.every(({ stream_id }) => stream_id === 'lane')).toBe(true);
    expect(typesOf(named)).toEqual(typesOf(byPost));
  });

  test('is tried again before its first event, and never after it', async () => {
    upstream.enqueue({ status: 500 }, say('Second try.'));
    const socket = await open();
    socket.create({ model: 'via-chat', input: 'Hello.' });
    expect(textOf(await socket.last())).toBe('Second try.');
    upstream.enqueue({
      ...say('A long answer that is cut.'),
      delivery: { cut: { at: 0.5, by: 'reset' } },
    });
    socket.create({ model: 'via-chat', input: 'Hello.' });
    expect((await socket.last(1)).type).toBe('response.failed');
    expect(upstream.modelRequests).toHaveLength(3);
    // The connection goes on.
    socket.create({ model: 'via-chat', input: 'Hello.' });
    expect((await socket.last(2)).type).toBe('response.completed');
  });

  test('is recorded with all that the client got', async () => {
    const dir = join(gateway.home, 'samples-of-sockets');
    const own = await startGateway(threeProviders(upstream, { samples: { mode: 'all', dir } }));
    try {
      upstream.answerWith(() => say('Written down.'));
      const socket = await ResponsesSocket.open(own.url);
      socket.create({ model: 'via-chat', input: 'Hello.' });
      const id = idOf(await socket.last());
      socket.close();
      const texts = await recordedIn(dir, 'response.completed');
      expect(texts.some((text) => text.includes(id))).toBe(true);
    } finally {
      await own.stop();
    }
  });

  test('runs server tools on its way, and can be continued behind them', async () => {
    const tools = await startToolServers();
    const { web_search } = toolsOf(tools, 'declared');
    const own = await startGateway(threeProviders(upstream, { server_tools: { web_search } }));
    try {
      upstream.enqueue(
        call({ name: 'web_search', arguments: { query: 'tides' } }),
        say('High at noon.'),
      );
      const socket = await ResponsesSocket.open(own.url);
      const ask = { model: 'via-chat', store: false, tools: [{ type: 'web_search' }] };
      socket.create({ ...ask, input: [user('When is high tide?')] });
      const first = await socket.last();
      const { output } = first.response as { output: { type: string }[] };
      expect(output.map(({ type }) => type)).toEqual(['web_search_call', 'message']);
      upstream.enqueue(say('Low at six.'));
      socket.create({ ...ask, previous_response_id: idOf(first), input: [user('And low tide?')] });
      expect(textOf(await socket.last(1))).toBe('Low at six.');
      expect(vendorBody(2)).toMatch(/high tide.*High at noon.*low tide/);
      expect(upstream.refusals).toEqual([]);
      socket.close();
    } finally {
      await stopAll(own, tools);
    }
  });

  test('that is long in coming is preceded by signs of life', async () => {
    const own = await startGateway(threeProviders(upstream, { keep_alive: 0.2 }));
    try {
      upstream.answerWith(() => ({ ...say('At last.'), delivery: { firstByteMs: 1000 } }));
      const socket = await ResponsesSocket.open(own.url);
      socket.create({ model: 'via-chat', stream_id: 'a', input: 'Hello.' });
      const last = await socket.last(0, 'a');
      expect(textOf(last)).toBe('At last.');
      expect(socket.frames[0]).toEqual({ stream_id: 'a', type: 'keepalive' });
      // A failure that is long in coming still has its status.
      upstream.answerWith(() => ({ status: 400, firstByteMs: 1000 }));
      socket.create({ model: 'via-chat', stream_id: 'a', input: 'Hello.' });
      expect(await socket.last(1, 'a')).toMatchObject({ type: 'error', status: 400 });
      socket.close();
    } finally {
      await own.stop();
    }
  });

  test('that is an error is a frame with the status and the headers of HTTP', async () => {
    const answer = { status: 429, headers: { 'retry-after': '77' } };
    upstream.answerWith(() => answer);
    const socket = await open();
    socket.create({ model: 'via-responses', stream_id: 'a', input: 'Hello.' });
    const frame = await socket.last(0, 'a');
    expect(frame).toMatchObject({ type: 'error', status: 429, stream_id: 'a' });
    expect((frame.headers as JsonObject)['retry-after']).toBe('77');
    expect((frame.error as JsonObject).message).toBeString();
    socket.create({ model: 'no such model', input: 'Hello.' });
    expect(await socket.last()).toMatchObject({ status: 404, error: { code: 'model_not_found' } });
    expect(socket.end).toBeUndefined();
  });
});

describe('a conversation', () => {
  test('goes on from what was only said in advance, which no vendor gets', async () => {
    const socket = await open();
    socket.create({
      model: 'via-chat',
      store: false,
      generate: false,
      input: [user('In advance.')],
    });
    const warm = await socket.last();
    expect(warm).toMatchObject({
      type: 'response.completed',
      response: { status: 'completed', output: [] },
    });
    expect(upstream.modelRequests).toHaveLength(0);
    socket.create({
      model: 'via-chat',
      store: false,
      previous_response_id: idOf(warm),
      input: [user('And now.')],
    });
    expect((await socket.last(1)).type).toBe('response.completed');
    expect(vendorBody(0)).toMatch(/In advance\..*And now\./);
  });

  test('that was not stored is known to its connection alone; one that was, to all', async () => {
    const one = await open();
    const other = await open();
    one.create({ model: 'via-chat', store: false, input: [user('Secret.')] });
    const hidden = idOf(await one.last());
    one.create({ model: 'via-chat', stream_id: 'stored', input: [user('Stored.')] });
    const stored = idOf(await one.last(0, 'stored'));
    const onward = (id: string) => ({
      model: 'via-chat',
      previous_response_id: id,
      input: [user('Go on.')],
    });
    other.create(onward(hidden));
    expect(await other.last()).toMatchObject({
      status: 400,
      error: {
        code: 'previous_response_not_found',
        param: 'previous_response_id',
        message: `Previous response with id '${hidden}' not found.`,
      },
    });
    other.create({ ...onward(hidden), generate: false });
    expect(await other.last(1)).toMatchObject({ error: { code: 'previous_response_not_found' } });
    other.create(onward(stored));
    expect((await other.last(2)).type).toBe('response.completed');
    expect(vendorBody(2)).toMatch(/Stored\..*Go on\./);
    one.create(onward(hidden));
    expect((await one.last(1)).type).toBe('response.completed');
    expect(vendorBody(3)).toMatch(/Secret\..*Go on\./);
  });

  test('a turn that fails loses its parent in its own lane, a fork keeps it', async () => {
    const socket = await open();
    const turn = (more: JsonObject) =>
      socket.create({ model: 'via-messages', store: false, ...more });
    turn({ input: [user('One.')] });
    const parent = idOf(await socket.last());
    upstream.enqueue({ status: 400 });
    turn({ stream_id: 'fork', previous_response_id: parent, input: [user('Two.')] });
    expect(await socket.last(0, 'fork')).toMatchObject({ status: 400 });
    turn({ stream_id: 'fork', previous_response_id: parent, input: [user('Again.')] });
    expect((await socket.last(1, 'fork')).type).toBe('response.completed');
    upstream.enqueue({ status: 400 });
    turn({ previous_response_id: parent, input: [user('Three.')] });
    expect(await socket.last(1)).toMatchObject({ status: 400 });
    turn({ previous_response_id: parent, input: [user('Four.')] });
    expect(await socket.last(2)).toMatchObject({ error: { code: 'previous_response_not_found' } });
  });

  test('lanes run side by side, turns of one lane after each other', async () => {
    upstream.answerWith(({ body }) => {
      const slow = JSON.stringify(body).includes('slow');
      return { ...say('Done.'), delivery: slow ? { firstByteMs: 300 } : {} };
    });
    const socket = await open();
    socket.create({ model: 'via-chat', stream_id: 'a', input: 'slow' });
    socket.create({ model: 'via-chat', stream_id: 'a', input: 'second' });
    socket.create({ model: 'via-chat', stream_id: 'b', input: 'quick' });
    await socket.last(1, 'a');
    const created = socket.frames.filter(({ type }) => type === 'response.created');
    expect(created.map(({ stream_id }) => stream_id)).toEqual(['b', 'a', 'a']);
  });
});

describe('the connection', () => {
  test('takes what cannot be read without closing', async () => {
    const socket = await open();
    const wrong = [
      '{',
      'null',
      '{"type":"response.create","model":3}',
      '{"type":"response.create"}',
    ];
    for (const frame of wrong) socket.send(frame);
    socket.send(new Uint8Array([0, 1, 2]));
    await socket.last(wrong.length);
    expect(socket.frames.map(({ status }) => status)).toEqual(Array(5).fill(400));
    socket.create({ model: 'via-chat', input: 'Hello.' });
    expect((await socket.last(5)).type).toBe('response.completed');
  });

  test('takes frames as large as a body, refuses larger ones, and closes at what is larger by far', async () => {
    const own = await startGateway(threeProviders(upstream, { limits: { body_bytes: 4096 } }));
    try {
      const socket = await ResponsesSocket.open(own.url);
      socket.create({ model: 'via-chat', input: 'x'.repeat(5000) });
      expect(await socket.last()).toMatchObject({ type: 'error', status: 413 });
      socket.create({ model: 'via-chat', input: 'x'.repeat(3000) });
      expect((await socket.last(1)).type).toBe('response.completed');
      socket.create({ model: 'via-chat', input: 'x'.repeat(2 * 1024 * 1024) });
      await socket.closed();
    } finally {
      await own.stop();
    }
  });

  test('is refused by the rules of POST', async () => {
    const fields = {
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    };
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', ...fields };
    expect(await statusOf('/v1/responses', upgrade)).toBe(101);
    expect(await statusOf('/responses', upgrade)).toBe(101);
    expect(await statusOf('/v1/v1/responses', upgrade)).toBe(101);
    expect(await statusOf('/v1/responses', { ...upgrade, host: 'evil.example' })).toBe(403);
    expect(await statusOf('/v1/responses', { ...upgrade, origin: 'https://evil.example' })).toBe(
      403,
    );
    expect(await statusOf('/v1/responses', { connection: 'Upgrade', upgrade: 'websocket' })).toBe(
      400,
    );
    expect(await statusOf('/v1/responses', {})).toBe(405);
    expect(await statusOf('/responses', {})).toBe(405);
  });

  test('of a client that leaves stops the vendor, and is logged as that', async () => {
    const before = gateway.logs().length;
    upstream.answerWith(() => ({ ...say('x'.repeat(5000)), delivery: { paceMs: 20 } }));
    const socket = await open({ 'user-agent': 'leaves/1.0' });
    socket.create({ model: 'via-chat', input: 'Hello.' });
    await until(() => socket.frames.some(({ type }) => type === 'response.output_text.delta'));
    socket.close();
    const asked = upstream.modelRequests[0]!;
    await asked.over;
    expect(asked.abortedAfterMs).toBeDefined();
    const line = await until(() =>
      gateway
        .logs()
        .slice(before)
        .find(({ status }) => status === 499),
    );
    expect(line).toMatchObject({ stream: true, websocket: true });
  });

  test('of a client that leaves midway: what it got is recorded, and what the vendor made is billed', async () => {
    const dir = join(gateway.home, 'samples-of-leavers');
    const auth = {
      keys: [{ name: 'ci', key: 'key-of-this-client' }],
      admin_keys: ['key-of-the-admin'],
    };
    const priced = {
      protocol: 'openai-chat',
      base_url: upstream.baseUrl('openai-chat'),
      keys: ['sk-upstream'],
      models: ['m1'],
      prices: { m1: { input: 1, output: 2 } },
    };
    const own = await startGateway({
      providers: { priced },
      auth,
      samples: { mode: 'all', dir },
    });
    try {
      upstream.answerWith(() => ({ ...say('word '.repeat(1000)), delivery: { paceMs: 20 } }));
      const socket = await ResponsesSocket.open(own.url, {
        authorization: 'Bearer key-of-this-client',
      });
      socket.create({ model: 'm1', input: 'A question of one who leaves.' });
      await until(() => socket.frames.some(({ type }) => type === 'response.output_text.delta'));
      socket.close();
      const row = await until(async () => {
        const headers = { authorization: 'Bearer key-of-the-admin' };
        const answer = await fetch(`${own.url}/admin/v1/spend`, { headers });
        const { data } = (await answer.json()) as { data: JsonObject[] };
        return data[0];
      });
      expect(row).toMatchObject({ key: 'ci', ended: 'client_gone', estimated: true });
      expect(Number(row.cost_nano_usd)).toBeGreaterThan(0);
      const question = 'A question of one who leaves.';
      const texts = await recordedIn(dir, 'response.output_text.delta', question);
      expect(texts.some((text) => text.includes('response.completed'))).toBe(false);
    } finally {
      await own.stop();
    }
  });

  test('of a client that leaves before its answer begins stops the vendor, and what waits is not asked', async () => {
    upstream.answerWith(() => ({ ...say('Never.'), delivery: { before: 'hang' } }));
    const socket = await open();
    for (const input of ['One.', 'Two.']) socket.create({ model: 'via-messages', input });
    const asked = await upstream.request(0);
    socket.close();
    await asked.over;
    expect(asked.abortedAfterMs).toBeDefined();
    // Another client's turn comes and goes meanwhile.
    upstream.answerWith(() => say('Here.'));
    const other = await open();
    other.create({ model: 'via-chat', input: 'Three.' });
    await other.last();
    expect(upstream.modelRequests).toHaveLength(2);
  });

  test('does not read a vendor faster than its client reads', async () => {
    const deltas = 900;
    const delta = {
      type: 'response.output_text.delta',
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
    };
    const text = 'x'.repeat(64 * 1024);
    let pulled = 0;
    function* stream() {
      const response = { id: 'resp_1', output: [] };
      yield sse({ type: 'response.created', response });
      const item = { id: 'msg_1', type: 'message', role: 'assistant', content: [] };
      yield sse({ type: 'response.output_item.added', output_index: 0, item });
      for (; pulled < deltas; pulled++) yield sse({ ...delta, delta: text });
      yield sse({ type: 'response.completed', response: { ...response, status: 'completed' } });
    }
    const vendor = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      Readable.from(stream()).pipe(response);
    });
    await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
    const base_url = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`;
    const provider = { protocol: 'openai-responses', base_url, keys: ['sk-up'], models: ['m1'] };
    const own = await startGateway({ providers: { vendor: provider }, samples: { mode: 'off' } });
    const client = await rawClient(own.url);
    try {
      client.socket.pause();
      client.ask({ type: 'response.create', model: 'm1', input: 'Hello.' });
      let before = -1;
      await until(async () => {
        const stands = pulled > 0 && pulled === before;
        before = pulled;
        await Bun.sleep(400);
        return stands;
      });
      expect(pulled).toBeLessThan(deltas / 2);
      let tail = '';
      client.socket.on('data', (chunk: Buffer) => {
        tail = chunk.toString('latin1').slice(-300);
      });
      client.socket.resume();
      await until(() => tail.includes('response.completed'));
      expect(pulled).toBe(deltas);
    } finally {
      client.socket.destroy();
      await own.stop();
      vendor.closeAllConnections();
      vendor.close();
    }
  }, 60_000);
});

describe('the end of a connection', () => {
  test('after its time: an error frame, then the close; what runs may end', async () => {
    const own = await startGateway(
      threeProviders(upstream, { limits: { websocket_minutes: 0.02 } }),
    );
    try {
      const idle = await ResponsesSocket.open(own.url);
      const busy = await ResponsesSocket.open(own.url);
      upstream.answerWith(() => ({ ...say('At last.'), delivery: { firstByteMs: 2000 } }));
      busy.create({ model: 'via-chat', input: 'Hello.' });
      expect(await idle.closed()).toMatchObject({ code: 1000 });
      const limit = { status: 400, error: { code: 'websocket_connection_limit_reached' } };
      expect(idle.frames).toMatchObject([limit]);
      await busy.closed();
      expect(busy.frames.slice(-2)).toMatchObject([{ type: 'response.completed' }, limit]);
    } finally {
      await own.stop();
    }
  });

  test('when the process stops: what runs ends first, and the code says why', async () => {
    const own = await startGateway(threeProviders(upstream));
    const idle = await ResponsesSocket.open(own.url);
    const busy = await ResponsesSocket.open(own.url);
    upstream.answerWith(() => ({ ...say('A last word.'), delivery: { paceMs: 100 } }));
    busy.create({ model: 'via-chat', input: 'Hello.' });
    await until(() => busy.frames.length > 2);
    own.signal('SIGTERM');
    expect(await idle.closed()).toMatchObject({ code: 1012 });
    expect(textOf(await busy.last())).toBe('A last word.');
    expect(await busy.closed()).toMatchObject({ code: 1012 });
    expect(await own.exited).toBe(0);
    await own.stop();
  });

  test('when its key is taken away: an error frame, then the close', async () => {
    const config = (key: string) =>
      threeProviders(upstream, { auth: { keys: [{ name: 'ci', key }] } });
    const own = await startGateway(config('key-number-one-of-this-test'));
    try {
      await expect(ResponsesSocket.open(own.url)).rejects.toThrow();
      await until(() => own.logs().some(({ status }) => status === 401));
      const auth = { authorization: 'Bearer key-number-one-of-this-test' };
      const socket = await ResponsesSocket.open(own.url, auth);
      socket.create({ model: 'via-chat', input: 'Hello.' });
      expect((await socket.last()).type).toBe('response.completed');
      await Bun.write(own.configPath, JSON.stringify(config('key-number-two-of-this-test')));
      own.signal('SIGHUP');
      await until(() => own.logs().some(({ event }) => event === 'config.reloaded'));
      socket.create({ model: 'via-chat', input: 'Hello.' });
      expect(await socket.last(1)).toMatchObject({
        status: 401,
        error: { code: 'invalid_api_key' },
      });
      expect(await socket.closed()).toMatchObject({ code: 1008 });
    } finally {
      await own.stop();
    }
  });
});

/** The texts of all files of samples, once each mark stands in one of them; files come and go while they are written. */
const recordedIn = (dir: string, ...marks: readonly string[]): Promise<readonly string[]> =>
  until(async () => {
    if (!existsSync(dir)) return false;
    const files = [...new Bun.Glob('**/*').scanSync({ cwd: dir })];
    const texts = await Promise.all(
      files.map((file) =>
        Bun.file(join(dir, file))
          .text()
          .catch(() => ''),
      ),
    );
    return marks.every((mark) => texts.some((text) => text.includes(mark))) && texts;
  });

const sse = (event: JsonObject) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

async function statusOf(path: string, fields: Record<string, string>): Promise<number> {
  const { hostname, port } = new URL(gateway.url);
  const headers = { host: '127.0.0.1', ...fields };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  const status = await until(() => /^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
  socket.destroy();
  return Number(status);
}

/** A client that decides itself when it reads. */
async function rawClient(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  const listen = (chunk: Buffer) => {
    text += chunk.toString('latin1');
  };
  socket.on('data', listen);
  socket.write(
    'GET /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  await until(() => text.includes('\r\n\r\n'));
  socket.off('data', listen);
  const ask = (frame: JsonObject) => {
    const payload = Buffer.from(JSON.stringify(frame));
    // A short masked text frame; the mask is zero.
    const head = Buffer.alloc(8);
    head[0] = 0x81;
    head[1] = 0x80 | 126;
    head.writeUInt16BE(payload.length, 2);
    socket.write(Buffer.concat([head, payload]));
  };
  return { socket, ask };
}

test('the turn state of a vendor comes as response.metadata, and goes back to the target that gave it alone', async () => {
  const own = await startGateway({
    ...threeProviders(upstream),
    routes: [
      { when: { model: 'first' }, to: ['responses/m1'] },
      { when: { model: 'second' }, to: ['other/m1'] },
    ],
    providers: {
      responses: { ...provider() },
      other: { ...provider() },
    },
  });
  const socket = await ResponsesSocket.open(own.url);
  try {
    const given = { 'x-codex-turn-state': 'state-1' };
    upstream.enqueue(
      say('One.', { delivery: { headers: given } }),
      say('Two.'),
      say('Three.'),
      say('Four.'),
    );
    socket.create({ model: 'first', input: 'a' });
    await socket.last(0);
    const told = socket.frames.filter(({ type }) => type === 'response.metadata');
    expect(told).toEqual([{ type: 'response.metadata', headers: given }]);
    const client_metadata = { turn_id: 't', ...given };
    socket.create({ model: 'first', input: 'b', client_metadata });
    await socket.last(1);
    socket.create({ model: 'second', input: 'c', client_metadata });
    await socket.last(2);
    socket.create({ model: 'first', input: 'd', client_metadata: { turn_id: 'u' } });
    await socket.last(3);
    const seen = upstream.modelRequests.map(({ headers }) => headers['x-codex-turn-state']);
    expect(seen).toEqual([undefined, 'state-1', undefined, undefined]);
    const bodies = upstream.modelRequests.map(({ body }) => JSON.stringify(body));
    expect(bodies.filter((body) => body.includes('state-1'))).toEqual([]);
    expect(bodies[1]).toContain('"client_metadata":{"turn_id":"t"}');
  } finally {
    socket.close();
    await own.stop();
  }
});

const provider = () => ({
  protocol: 'openai-responses',
  base_url: upstream.baseUrl('openai-responses'),
  keys: ['sk-upstream'],
  models: ['m1'],
});

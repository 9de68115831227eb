/** Conversations by reference over three replicas of the program: any of them takes any turn, through kills and frozen engines. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { binary, type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { cacheCommand, HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import type { Server } from '../support/engines/processes.ts';
import {
  call,
  type FakeUpstream,
  say,
  startFakeUpstream,
  toolResults,
} from '../support/fake-upstream/index.ts';
import { databaseOn } from '../support/replica-responses.ts';
import { idOf, ResponsesSocket, textOf } from '../support/responses-socket.ts';
import { until } from '../support/until.ts';

const MODELS = ['via-chat', 'via-responses', 'via-messages'] as const;
const [ANN, BOB] = ['key-of-ann', 'key-of-bob'];
const SECRET = 'a-secret-of-at-least-32-characters';
const TOOL = {
  type: 'function' as const,
  name: 'get_weather',
  description: 'The weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
};

/** Each request goes to the next one, as behind a load balancer. */
function roundRobin(gateways: readonly Gateway[]): OpenAI {
  let turn = 0;
  return clientOf('http://round.robin', (path) => gateways[turn++ % gateways.length]!.url + path);
}

function clientOf(origin: string, place = (path: string) => origin + path, apiKey = ANN): OpenAI {
  return new OpenAI({
    apiKey,
    baseURL: `${origin}/v1`,
    maxRetries: 0,
    fetch: (url, init) => {
      const { pathname, search } = new URL(String(url));
      const headers = new Headers(init?.headers as Record<string, string>);
      headers.set('connection', 'close');
      return fetch(place(pathname + search), { ...(init as RequestInit), headers });
    },
  });
}

async function turn(
  app: OpenAI,
  body: JsonObject,
  stream = false,
): Promise<OpenAI.Responses.Response> {
  if (!stream) return app.responses.create(body as never);
  const events = await app.responses.create({ ...body, stream: true } as never);
  for await (const event of events as unknown as AsyncIterable<OpenAI.Responses.ResponseStreamEvent>) {
    if (event.type === 'response.completed') return event.response;
  }
  throw new Error('no end');
}

/** The test's vendor counts its ids over all that it is asked: here, from the first one on. */
function numbered(texts: readonly string[]): readonly string[] {
  const ids = new Map<string, number>();
  return texts.map((text) =>
    text.replaceAll(/0{16,}[0-9a-z]+/g, (id) => {
      if (!ids.has(id)) ids.set(id, ids.size);
      return `#${ids.get(id)}`;
    }),
  );
}

const failureOf = async (asking: Promise<unknown>) =>
  asking.then(
    () => ({ status: 200 }),
    (error: { status: number; code: unknown; headers: Headers }) => ({
      status: error.status,
      code: error.code,
      retryAfter: error.headers.get('retry-after'),
    }),
  );

const OPERATOR = 'key-of-operator';

describe.skipIf(!HAS_CACHE || !HAS_POSTGRES)('three replicas', () => {
  let cache: Server;
  let database: DatabaseServer;
  let upstream: FakeUpstream;
  let single: Gateway;
  let replicas: Gateway[] = [];

  const auth = {
    keys: [ANN, BOB].map((key, i) => ({ name: `k${i}`, key })),
    admin_keys: [OPERATOR],
  };
  const start = () =>
    startGateway(
      threeProviders(upstream, {
        auth,
        engines: {
          cache: `redis://127.0.0.1:${cache.port}`,
          database: database.url,
          seal: [SECRET],
        },
      }),
      { patience: 60_000 },
    );
  beforeAll(async () => {
    [cache, database, upstream] = await Promise.all([
      startCache(),
      startPostgres(),
      startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] }),
      binary(),
    ]);
    single = await startGateway(threeProviders(upstream, { auth }), { patience: 60_000 });
    replicas = await Promise.all([start(), start(), start()]);
  }, 300_000);
  afterEach(() => {
    cache.thaw();
    database.thaw();
    upstream.clear();
  });
  afterAll(async () => {
    await Promise.all([single, ...replicas].map((one) => one?.stop()));
    await Promise.all([upstream?.stop(), cache?.stop(), database?.stop()]);
  });
  const engineState = async ({ url }: Gateway, engine: string) => {
    const headers = { authorization: `Bearer ${OPERATOR}` };
    const answer = await fetch(`${url}/health/engines`, { headers });
    const { engines } = (await answer.json()) as { engines: Record<string, { state: string }> };
    return engines[engine]?.state;
  };
  const heals = (engine: string) =>
    until(async () => {
      const states = await Promise.all(replicas.map((one) => engineState(one, engine)));
      return states.every((state) => state === 'up');
    });

  /** Turns with tools, references, a fork, and what the routes tell; ids by the order in which they come. */
  async function talk(app: OpenAI, model: string, stream: boolean): Promise<JsonObject> {
    upstream.clear();
    upstream.answerWith((request) => {
      const text = JSON.stringify(request.body);
      if (text.includes('weather') && toolResults(request.protocol!, request.body).size === 0) {
        return call({ name: 'get_weather', arguments: { city: 'Oslo' } });
      }
      return say(`Answer to ${text.includes('fork') ? 'the fork' : 'the rest'}.`);
    });
    const ask = { model, tools: [TOOL] } as unknown as JsonObject;
    const one = await turn(app, { ...ask, input: 'The weather in Oslo?' }, stream);
    const asked = one.output.find((item) => item.type === 'function_call')!;
    const result = { type: 'function_call_output', call_id: asked.call_id, output: 'rain' };
    const two = await turn(app, { ...ask, previous_response_id: one.id, input: [result] }, stream);
    const three = await turn(
      app,
      { ...ask, previous_response_id: two.id, input: 'And tomorrow?' },
      stream,
    );
    await turn(app, { ...ask, previous_response_id: two.id, input: 'A fork.' }, stream);
    const references = [...one.output, result, ...two.output].map((item) =>
      'id' in item && item.type !== 'function_call_output'
        ? { type: 'item_reference', id: item.id }
        : item,
    );
    await turn(
      app,
      { ...ask, input: [...references, { role: 'user', content: 'By reference.' }] } as never,
      stream,
    );
    const got = await app.responses.retrieve(three.id);
    const items = await app.responses.inputItems.list(three.id);
    await app.responses.delete(two.id);
    const gone = await failureOf(
      turn(app, { ...ask, previous_response_id: three.id, input: 'More?' }, stream),
    );
    return {
      sent: numbered(upstream.modelRequests.map(({ body }) => JSON.stringify(body))),
      text: got.output_text ?? '',
      items: items.data.map(({ type }) => type),
      gone,
    } as never;
  }

  test.each(MODELS.flatMap((model) => [false, true].map((stream) => [model, stream] as const)))(
    'send what one process sends, byte for byte (%s, streamed: %p)',
    async (model, stream) => {
      const alone = await talk(roundRobin([single]), model, stream);
      const together = await talk(roundRobin(replicas), model, stream);
      expect((alone.sent as string[]).length).toBe(5);
      expect(together).toEqual(alone);
      expect(alone.gone).toMatchObject({ status: 400, code: 'previous_response_not_found' });
      expect(upstream.refusals).toEqual([]);
    },
  );

  test('another key finds nothing, on no replica', async () => {
    upstream.answerWith(() => say('A secret of Ann.'));
    const one = await turn(roundRobin(replicas), { model: 'via-chat', input: 'Hello.' });
    const bodies = [
      { model: 'via-chat', previous_response_id: one.id, input: 'What was it?' },
      { model: 'via-chat', input: [{ type: 'item_reference', id: one.output[0]!.id }] },
    ];
    for (const { url } of replicas) {
      const bob = clientOf(url, undefined, BOB);
      for (const body of bodies) {
        expect([400, 404]).toContain((await failureOf(turn(bob, body as never))).status);
      }
      expect((await failureOf(bob.responses.retrieve(one.id))).status).toBe(404);
      expect((await failureOf(bob.responses.delete(one.id))).status).toBe(404);
    }
  });

  test('a WebSocket that reconnects to another replica goes on, warm-up included', async () => {
    upstream.answerWith(() => say('Rain in Oslo.'));
    const headers = { authorization: `Bearer ${ANN}` };
    const first = await ResponsesSocket.open(replicas[0]!.url, headers);
    first.create({ model: 'via-chat', input: 'The weather in Oslo?', store: true });
    const id = idOf(await first.last());
    first.close();
    const second = await ResponsesSocket.open(replicas[1]!.url, headers);
    second.create({
      model: 'via-chat',
      input: 'Warm up.',
      previous_response_id: id,
      generate: false,
    });
    const warm = idOf(await second.last());
    second.create({
      model: 'via-chat',
      input: 'And tomorrow?',
      previous_response_id: warm,
      store: true,
    });
    const last = await second.last(1);
    expect(textOf(last)).toBe('Rain in Oslo.');
    second.close();
    const sent = JSON.stringify(upstream.modelRequests.at(-1)?.body);
    for (const part of ['The weather in Oslo?', 'Rain in Oslo.', 'Warm up.', 'And tomorrow?']) {
      expect(sent).toContain(part);
    }
  });

  test.each([false, true])(
    'a turn follows although the replica that answered is killed at once (streamed: %p)',
    async (stream) => {
      upstream.answerWith(() => say('The word is zebra.'));
      const dying = await start();
      const one = await turn(clientOf(dying.url), { model: 'via-chat', input: 'A word.' }, stream);
      dying.signal('SIGKILL');
      const body = { model: 'via-chat', previous_response_id: one.id, input: 'Which?' };
      await turn(clientOf(replicas[0]!.url), body, stream);
      expect(JSON.stringify(upstream.modelRequests.at(-1)?.body)).toContain('The word is zebra.');
      await dying.stop();
    },
  );

  test('an emptied cache loses nothing that is in the database, and no text stands there in the clear', async () => {
    const word = 'pneumonoultramicroscopic';
    upstream.answerWith(() => say(`The word is ${word}.`));
    const app = roundRobin(replicas);
    const one = await turn(app, { model: 'via-messages', input: 'A word.' });
    const reader = databaseOn(database.port);
    const dump = await until(async () => {
      const rows = await reader.query<{ text: string }>(
        "SELECT r::text || encode(items, 'escape') || encode(response, 'escape') AS text FROM hopgate.responses r WHERE id = $1",
        [one.id],
        10_000,
      );
      return rows[0]?.text;
    });
    await reader.close();
    expect(dump).not.toContain(word);
    cacheCommand(cache.port, 'flushall');
    await turn(app, { model: 'via-messages', previous_response_id: one.id, input: 'Which?' });
    expect(JSON.stringify(upstream.modelRequests.at(-1)?.body)).toContain(word);
  });

  test('with a frozen cache, turns go on from the database', async () => {
    upstream.answerWith(() => say('The word is zebra.'));
    const app = roundRobin(replicas);
    cache.freeze();
    const one = await turn(app, { model: 'via-chat', input: 'A word.' }, true);
    const two = await turn(app, { model: 'via-chat', previous_response_id: one.id, input: '2' });
    await turn(app, { model: 'via-chat', previous_response_id: two.id, input: '3' });
    const sent = JSON.stringify(upstream.modelRequests.at(-1)?.body);
    expect(sent.split('The word is zebra.')).toHaveLength(3);
    cache.thaw();
    await heals('cache');
  });

  test('with a frozen database, the cache answers; without both, a 503 keeps the client’s state, and it heals', async () => {
    upstream.answerWith(() => say('The word is zebra.'));
    const app = roundRobin(replicas);
    database.freeze();
    const one = await turn(app, { model: 'via-chat', input: 'A word.' });
    const two = await turn(app, { model: 'via-chat', previous_response_id: one.id, input: '2' });
    expect(two.output_text).toBe('The word is zebra.');
    cacheCommand(cache.port, 'flushall');
    const body = { model: 'via-chat', previous_response_id: one.id, input: '3' };
    const away = { status: 503, code: 'stored_responses_unavailable', retryAfter: '5' };
    // The replica that made it has it still.
    const others = roundRobin(replicas.slice(1));
    for (const stream of [false, true]) {
      expect(await failureOf(turn(others, body, stream))).toEqual(away);
    }
    expect(await failureOf(others.responses.retrieve(one.id))).toEqual(away);
    const item = { type: 'item_reference', id: one.output[0]!.id };
    expect(await failureOf(turn(others, { model: 'via-chat', input: [item] } as never))).toEqual(
      away,
    );
    // What refers to nothing is served.
    expect((await turn(others, { model: 'via-chat', input: 'Hello.' })).output_text).toContain(
      'zebra',
    );
    expect((await fetch(`${replicas[0]!.url}/readyz`)).status).toBe(200);
    database.thaw();
    await heals('database');
    await until(async () => (await failureOf(turn(others, body))).status === 200);
    expect(JSON.stringify(upstream.modelRequests.at(-1)?.body)).toContain('A word.');
  });
});

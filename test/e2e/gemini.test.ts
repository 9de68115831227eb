/** Gemini through the whole gateway: addresses, keys, forms of streams, signatures, unchanged bytes. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { GoogleGenAI } from '@google/genai';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { allProviders } from '../support/binary.ts';
import {
  call,
  type FakeUpstream,
  refuse,
  say,
  signatureFor,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { startToolServers, type ToolServers, toolsOf } from '../support/tool-servers.ts';
import { CLIENT_CHATS } from './clients.ts';

const KEY = 'sk-door-0123456789';

let upstream: FakeUpstream;
let gateway: InProcess;
let locked: InProcess;
let toolServers: ToolServers;

beforeAll(async () => {
  upstream = await startFakeUpstream({
    keys: ['sk-upstream'],
    models: ['m1', 'gemini-3-m1', 'gemini-2.5-flash'],
  });
  toolServers = await startToolServers();
  const { web_search } = toolsOf(toolServers, 'declared');
  gateway = await startInProcess(allProviders(upstream, { server_tools: { web_search } }));
  locked = await startInProcess(allProviders(upstream, { auth: { keys: [KEY] } }));
});
afterEach(() => upstream.clear());
afterAll(async () => {
  await gateway?.stop();
  await locked?.stop();
  await upstream?.stop();
  await toolServers?.stop();
});

const BODY = '{ "contents" : [ {"role":"user","parts":[{"text":"hi ü"}]} ],\n "unknownToUs": 1 }';
const post = (url: string, body: string = BODY, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });

/** The parts of the model in the history of a request. */
function partsOf(request: number) {
  const { contents } = upstream.modelRequests[request]!.body as unknown as {
    contents: { role: string; parts: JsonObject[] }[];
  };
  return contents.flatMap(({ role, parts }) => (role === 'model' ? parts : []));
}

describe('onto Gemini itself', () => {
  test('a body that nothing changes goes out byte for byte, the model in the path', async () => {
    const plain = BODY.replace(/,\s*"unknownToUs": 1/, '');
    await post(`${gateway.url}/v1beta/models/via-gemini:streamGenerateContent?alt=sse`, plain);
    const { bytes, path, query } = upstream.modelRequests[0]!;
    expect(new TextDecoder().decode(bytes)).toBe(plain);
    expect(path + query).toBe('/v1beta/models/gemini-3-m1:streamGenerateContent?alt=sse');
  });

  test('a stream comes back byte for byte', async () => {
    upstream.enqueue(say('Grüße 👋', { delivery: { crlf: true, piece: 2 } }));
    const url = `${gateway.url}/v1beta/models/via-gemini:streamGenerateContent?alt=sse`;
    const got = await (await post(url, BODY.replace(/,\s*"unknownToUs": 1/, ''))).bytes();
    expect(Buffer.concat(upstream.modelRequests[0]!.sent).equals(got)).toBe(true);
  });

  test('a refusal of the vendor comes back in its own words', async () => {
    const url = `${gateway.url}/v1beta/models/via-gemini:generateContent`;
    const answer = await post(url, '{"contents":[{"role":"user","parts":[{"unknownPart":1}]}]}');
    expect(answer.status).toBe(400);
    const { error } = (await answer.json()) as { error: { message: string } };
    expect(error.message).toContain('contents[0].parts[0].data: required oneof field');
  });

  test('a field that the vendor does not know is left out, with a note', async () => {
    const answer = await post(`${gateway.url}/v1beta/models/via-gemini:generateContent`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-hopgate-notes')).toContain('stripped_after_refusal');
    expect(upstream.modelRequests.at(-1)!.body).not.toHaveProperty('unknownToUs');
  });

  test('tokens are counted by the vendor', async () => {
    const sdk = new GoogleGenAI({ apiKey: 'x', httpOptions: { baseUrl: gateway.url } });
    const { totalTokens } = await sdk.models.countTokens({
      model: 'via-gemini',
      contents: 'hello',
    });
    expect(totalTokens).toBeGreaterThan(0);
    expect(upstream.received.at(-1)?.path).toBe('/v1beta/models/gemini-3-m1:countTokens');
  });
});

describe('signatures of calls', () => {
  for (const client of ['openai-chat', 'openai-responses', 'anthropic-messages'] as const) {
    test(`${client}: the signature goes back in the part it came in, and only there`, async () => {
      upstream.enqueue(
        call(
          { name: 'get_weather', arguments: { city: 'Oslo' } },
          { name: 'get_weather', arguments: { city: 'Rome' } },
        ),
        say('Cold.'),
      );
      const chat = CLIENT_CHATS[client](gateway.url, {
        model: 'via-gemini',
        stream: true,
        tools: true,
      });
      await chat.say('Weather?');
      await chat.answer(() => 'cold');
      expect(upstream.refusals).toEqual([]);
      const { contents } = upstream.modelRequests[1]!.body as unknown as {
        contents: { parts: { functionCall?: object; thoughtSignature?: string }[] }[];
      };
      const parts = contents.flatMap(({ parts }) => parts).filter((part) => part.functionCall);
      expect(parts.map(({ thoughtSignature }) => thoughtSignature)).toEqual([
        signatureFor('get_weather {"city":"Oslo"}'),
        undefined,
      ]);
    });
  }

  const SIGNED = Buffer.from('a signature').toString('base64');
  const part = (value: JsonObject) => ({ kind: 'wire' as const, value });

  for (const client of ['openai-chat', 'openai-responses', 'anthropic-messages'] as const) {
    for (const stream of [true, false]) {
      test(`${client}: the signature of a text goes back in its part (stream: ${stream})`, async () => {
        const sent = [{ text: 'It is ' }, { text: 'cold.', thoughtSignature: SIGNED }];
        upstream.enqueue({ parts: sent.map(part) }, say('Yes.'), say('Yes!'));
        const chat = CLIENT_CHATS[client](gateway.url, { model: 'via-gemini', stream });
        expect((await chat.say('Weather?')).text).toBe('It is cold.');
        await chat.say('Sure?');
        expect(upstream.refusals).toEqual([]);
        expect(partsOf(1)).toEqual(sent);
        await chat.say('Really?');
        expect(partsOf(2)).toEqual([...sent, { text: 'Yes.' }]);
      });

      test(`${client}: a signature behind the text or the calls goes back there (stream: ${stream})`, async () => {
        const alone = { text: '', thoughtSignature: SIGNED };
        const { parts } = call({ name: 'get_weather', arguments: { city: 'Oslo' } });
        upstream.enqueue(
          { parts: [part({ text: 'Looking.' }), part(alone), ...parts] },
          { parts: [part({ text: 'More.' }), ...parts, part(alone)] },
          { parts: [part({ text: 'Cold.' }), part(alone)] },
          say('Bye.'),
        );
        const options = { model: 'via-gemini', stream, tools: true };
        const chat = CLIENT_CHATS[client](gateway.url, options);
        await chat.say('Weather?');
        await chat.answer(() => 'cold');
        await chat.answer(() => 'cold');
        await chat.say('Thanks.');
        expect(upstream.refusals).toEqual([]);
        const functionCall = expect.anything();
        const signed = { functionCall, thoughtSignature: expect.any(String) };
        expect(partsOf(3)).toEqual([
          { text: 'Looking.' },
          alone,
          signed,
          { text: 'More.' },
          signed,
          alone,
          { text: 'Cold.' },
          alone,
        ]);
      });
    }
  }

  test('a text that the client changed, and another provider, get no signature of a text', async () => {
    const sent = [{ text: 'It is icy.', thoughtSignature: SIGNED }];
    upstream.enqueue({ parts: sent.map(part) }, say('Yes.'), say('Yes.'), say('Yes.'));
    const ask = (model: string, ...history: string[]) =>
      post(
        `${gateway.url}/v1/chat/completions`,
        JSON.stringify({
          model,
          messages: ['Weather?', ...history].map((content, i) => ({
            role: i % 2 === 0 ? 'user' : 'assistant',
            content,
          })),
        }),
      );
    await ask('via-gemini');
    await ask('via-gemini', 'It is warm.', 'Sure?');
    expect(partsOf(1)).toEqual([{ text: 'It is warm.' }]);
    await ask('via-gemini', 'It is icy.', 'Sure?');
    expect(partsOf(2)).toEqual(sent);
    await ask('via-messages', 'It is icy.', 'Sure?');
    expect(JSON.stringify(upstream.modelRequests[3]!.body)).not.toContain(SIGNED);
  });

  test('a history of another model carries the documented value', async () => {
    upstream.enqueue(call({ name: 'get_weather', arguments: { city: 'Oslo' } }), refuse(400));
    const other = CLIENT_CHATS['openai-chat'](gateway.url, {
      model: 'via-messages',
      stream: false,
      tools: true,
    });
    const { calls } = await other.say('Weather?');
    upstream.clear();
    upstream.enqueue(say('Cold.'));
    const [one] = calls;
    const answer = await post(
      `${gateway.url}/v1/chat/completions`,
      JSON.stringify({
        model: 'via-gemini',
        messages: [
          { role: 'user', content: 'Weather?' },
          {
            role: 'assistant',
            tool_calls: [
              { id: one!.id, type: 'function', function: { name: one!.name, arguments: '{}' } },
            ],
          },
          { role: 'tool', tool_call_id: one!.id, content: 'cold' },
        ],
      }),
    );
    expect(answer.headers.get('x-hopgate-notes')).toContain('call_signature_skipped');
    expect(upstream.refusals).toEqual([]);
  });
});

describe('addresses', () => {
  test.each([
    '/v1beta/models/via-chat',
    '/v1/models/via-chat',
    '/v1beta1/projects/p/locations/l/publishers/google/models/via-chat',
    '/v1/projects/p/locations/l/publishers/google/models/via-chat',
    // With an API key: github.com/google-gemini/gemini-cli/issues/14523.
    '/v1beta1/publishers/google/models/via-chat',
    '/v1beta/models/chat/m1',
  ])('%s answers', async (path) => {
    const answer = await post(`${gateway.url}${path}:generateContent`);
    expect(answer.status).toBe(200);
    const { candidates } = (await answer.json()) as { candidates: { content: object }[] };
    expect(candidates[0]!.content).toMatchObject({ role: 'model' });
  });

  test('without alt=sse a stream is a JSON array of the same chunks, sent as it comes', async () => {
    upstream.enqueue(say('One, two, three.', { delivery: { piece: 4, paceMs: 20 } }));
    const answer = await post(`${gateway.url}/v1beta/models/via-messages:streamGenerateContent`);
    expect(answer.headers.get('content-type')).toContain('application/json');
    const pieces = await Array.fromAsync(answer.body!);
    expect(pieces.length).toBeGreaterThan(2);
    const chunks = JSON.parse(Buffer.concat(pieces).toString()) as {
      candidates: { content: { parts: { text: string }[] }; finishReason?: string }[];
    }[];
    const text = chunks.map(({ candidates }) => candidates[0]!.content.parts[0]!.text).join('');
    expect(text).toBe('One, two, three.');
    expect(chunks.at(-1)!.candidates[0]!.finishReason).toBe('STOP');
  });

  test('an array that is cut does not end as if it were whole', async () => {
    const cut = { at: 0.5, by: 'reset' } as const;
    upstream.enqueue(
      ...Array.from({ length: 4 }, () =>
        say('One, two, three, four.', { delivery: { piece: 4, cut } }),
      ),
    );
    const answer = await post(`${gateway.url}/v1beta/models/via-messages:streamGenerateContent`);
    const read = answer.text().then(
      (text) => text,
      () => undefined,
    );
    const text = await read;
    expect(text === undefined || text.includes('"error"')).toBe(true);
  });

  test('a method that is not served is named', async () => {
    const answer = await post(`${gateway.url}/v1beta/models/via-chat:generateAnswer`);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ error: { code: 404, status: 'NOT_FOUND' } });
  });

  test('the list of models comes in pages, and each model by its name', async () => {
    const list = async (query: string) =>
      (await (await fetch(`${gateway.url}/v1beta/models${query}`)).json()) as {
        models: { name: string }[];
        nextPageToken?: string;
      };
    const all = await list('');
    expect(all.models.map(({ name }) => name)).toContain('models/via-gemini');
    const first = await list('?pageSize=1');
    expect(first.models).toHaveLength(1);
    const second = await list(`?pageSize=1&pageToken=${first.nextPageToken}`);
    expect(second.models[0]).toEqual(all.models[1]!);
    const one = await fetch(`${gateway.url}/v1beta/models/via-gemini`);
    expect(await one.json()).toMatchObject({ name: 'models/via-gemini' });
    const none = await fetch(`${gateway.url}/v1beta/models/nowhere-at-all`);
    expect(none.status).toBe(404);
    expect(await none.json()).toMatchObject({ error: { status: 'NOT_FOUND' } });
  });
});

describe('the client’s key', () => {
  const url = (query = '') => `${locked.url}/v1beta/models/via-gemini:generateContent${query}`;
  const plain = '{"contents":[{"parts":[{"text":"hi"}]}]}';

  test.each([
    ['x-goog-api-key', '', { 'x-goog-api-key': KEY }],
    ['a bearer token', '', { authorization: `Bearer ${KEY}` }],
    ['the query', `?key=${KEY}`, {}],
  ])('may stand in %s, and goes nowhere else', async (_, query, headers) => {
    const answer = await post(url(query), plain, headers as Record<string, string>);
    expect(answer.status).toBe(200);
    const request = upstream.modelRequests[0]!;
    expect(JSON.stringify([request.headers, request.query, request.path])).not.toContain(KEY);
    expect(request.headers['x-goog-api-key']).toBe('sk-upstream');
    expect(locked.lines.join('\n')).not.toContain(KEY);
  });

  test('lists models from the query, too', async () => {
    expect((await fetch(`${locked.url}/v1beta/models?key=${KEY}`)).status).toBe(200);
    expect((await fetch(`${locked.url}/v1beta/models`)).status).toBe(401);
  });

  test('a wrong one is refused in Google’s shape, and not logged', async () => {
    const answer = await post(url('?key=sk-wrong-98765'), plain);
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({ error: { code: 401, status: 'UNAUTHENTICATED' } });
    expect(locked.lines.join('\n')).not.toContain('sk-wrong-98765');
  });
});

describe('Google’s own tools', () => {
  const asked = {
    contents: [{ parts: [{ text: 'What are retries?' }] }],
    tools: [{ googleSearch: {} }],
  };

  for (const vendor of ['chat', 'messages'] as const) {
    test(`a search is run by the gateway onto ${vendor}, and its sources are cited`, async () => {
      upstream.enqueue(
        call({ name: 'web_search', arguments: { query: 'tides' } }),
        say('They happen before the first byte [1].'),
      );
      const url = `${gateway.url}/v1beta/models/via-${vendor}:generateContent`;
      const answer = await post(url, JSON.stringify(asked));
      const { candidates } = (await answer.json()) as {
        candidates: { content: { parts: object[] }; groundingMetadata?: object }[];
      };
      expect(upstream.refusals).toEqual([]);
      expect(upstream.modelRequests).toHaveLength(2);
      expect(JSON.stringify(candidates[0]!.content.parts)).toContain('before the first byte');
      expect(candidates[0]!.groundingMetadata).toMatchObject({
        webSearchQueries: ['tides'],
        groundingChunks: [{ web: {} }],
      });
    });
  }

  const FUNCTION = { name: 'get_weather', description: 'The weather.', schema: { type: 'object' } };
  const { name, description, schema } = FUNCTION;
  const messages = [{ role: 'user', content: 'What are retries?' }];
  const BESIDE_FUNCTIONS: readonly [client: string, path: string, body: JsonObject][] = [
    [
      'chat',
      '/v1/chat/completions',
      {
        messages,
        web_search_options: {},
        tools: [{ type: 'function', function: { name, description, parameters: schema } }],
      },
    ],
    [
      'responses',
      '/v1/responses',
      {
        input: messages,
        tools: [
          { type: 'web_search' },
          { type: 'function', name, description, parameters: schema },
        ],
      },
    ],
    [
      'messages',
      '/v1/messages',
      {
        messages,
        max_tokens: 500,
        tools: [
          { type: 'web_search_20250305', name: 'web_search' },
          { name, description, input_schema: schema },
        ],
      },
    ],
  ];

  for (const [client, path, body] of BESIDE_FUNCTIONS) {
    for (const model of ['gemini/gemini-2.5-flash', 'via-gemini']) {
      test(`a search beside functions is run by the gateway (${client} onto ${model})`, async () => {
        upstream.enqueue(
          call({ name: 'web_search', arguments: { query: 'tides' } }),
          say('They happen before the first byte [1].'),
        );
        const answer = await post(`${gateway.url}${path}`, JSON.stringify({ model, ...body }));
        expect(await answer.text()).toContain('before the first byte');
        expect(answer.status).toBe(200);
        expect(upstream.refusals).toEqual([]);
        expect(upstream.modelRequests).toHaveLength(2);
        const { tools } = upstream.modelRequests[0]!.body as { tools: JsonObject[] };
        expect(tools).toHaveLength(1);
        const names = (tools[0]!.functionDeclarations as JsonObject[]).map(({ name }) => name);
        expect(names.toSorted()).toEqual(['get_weather', 'web_search']);
      });

      test(`without a search of its own the gateway leaves it out, with a note (${client} onto ${model})`, async () => {
        upstream.enqueue(say('Hm.'));
        const url = `${locked.url}${path}`;
        const headers = { authorization: `Bearer ${KEY}` };
        const answer = await post(url, JSON.stringify({ model, ...body }), headers);
        expect(answer.status).toBe(200);
        expect(answer.headers.get('x-hopgate-notes')).toContain('hosted_tool_dropped');
        expect(upstream.refusals).toEqual([]);
        expect(JSON.stringify(upstream.modelRequests[0]!.body)).toContain('get_weather');
      });
    }
  }

  for (const vendor of ['chat', 'responses', 'messages'] as const) {
    test(`a Gemini client's search beside functions is run by the gateway onto ${vendor}`, async () => {
      upstream.enqueue(
        call({ name: 'web_search', arguments: { query: 'tides' } }),
        say('They happen before the first byte [1].'),
      );
      const tools = [...asked.tools, { functionDeclarations: [{ name, description }] }];
      const answer = await post(
        `${gateway.url}/v1beta/models/via-${vendor}:generateContent`,
        JSON.stringify({ ...asked, tools }),
      );
      expect(await answer.text()).toContain('before the first byte');
      expect(upstream.refusals).toEqual([]);
      expect(upstream.modelRequests).toHaveLength(2);
      expect(JSON.stringify(upstream.modelRequests[0]!.body)).toContain('get_weather');
    });
  }

  test('a Gemini client gets the words of Google for what its model does not take together', async () => {
    const tools = [...asked.tools, { functionDeclarations: [{ name, description }] }];
    const answer = await post(
      `${gateway.url}/v1beta/models/via-gemini:generateContent`,
      JSON.stringify({ ...asked, tools }),
    );
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain('include_server_side_tool_invocations');
  });

  test('no function of the gateway pushes out a search that Google runs', async () => {
    const { web_search: _, ...others } = toolsOf(toolServers, 'force');
    const forced = await startInProcess(allProviders(upstream, { server_tools: others }));
    try {
      upstream.enqueue(say('From Google.'), say('From Google.'));
      const tools = [{ type: 'web_search_20250305', name: 'web_search' }];
      const body = { model: 'via-gemini', max_tokens: 500, messages, tools };
      const answer = await post(`${forced.url}/v1/messages`, JSON.stringify(body));
      expect(answer.status).toBe(200);
      await post(`${forced.url}/v1beta/models/via-gemini:generateContent`, JSON.stringify(asked));
      for (const request of upstream.modelRequests) {
        expect(request.body.tools).toEqual([{ googleSearch: {} }]);
      }
      expect(upstream.refusals).toEqual([]);
    } finally {
      await forced.stop();
    }
  });

  test('Google runs them itself', async () => {
    upstream.enqueue(say('From Google.'));
    await post(`${gateway.url}/v1beta/models/via-gemini:generateContent`, JSON.stringify(asked));
    expect(upstream.modelRequests[0]!.body.tools).toEqual([{ googleSearch: {} }]);
    expect(upstream.refusals).toEqual([]);
  });
});

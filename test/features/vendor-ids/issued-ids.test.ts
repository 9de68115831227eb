/** Ids that answers give out: whoever got one may name it, another key may not. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { ResponsesSocket } from '../../support/responses-socket.ts';
import { startToolServers, type ToolServers, toolsOf } from '../../support/tool-servers.ts';
import { until } from '../../support/until.ts';

const ALICE = 'a'.repeat(32);
const BOB = 'b'.repeat(32);

interface Issue {
  readonly path: string;
  readonly kind: string;
  /** What the request asks for, beside its text. */
  readonly asks: JsonObject;
  readonly whole: (id: string) => JsonObject;
  readonly events: (id: string) => readonly JsonObject[];
  /** A later request that names it. */
  readonly names: (id: string) => JsonObject;
}

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'Done.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 5, output_tokens: 5 },
};
const CODE = { type: 'code_execution_20250825', name: 'code_execution' };
const EXPIRES = '2030-01-01T00:00:00Z';

const messageEvents = (
  message: JsonObject,
  content: readonly JsonObject[],
  delta: JsonObject,
): readonly JsonObject[] => [
  {
    type: 'message_start',
    message: { ...MESSAGE, content: [], stop_reason: null, ...message } as JsonObject,
  },
  ...content.flatMap((block, index): JsonObject[] => [
    { type: 'content_block_start', index, content_block: block },
    { type: 'content_block_stop', index },
  ]),
  { type: 'content_block_start', index: content.length, content_block: { type: 'text', text: '' } },
  {
    type: 'content_block_delta',
    index: content.length,
    delta: { type: 'text_delta', text: 'Done.' },
  },
  { type: 'content_block_stop', index: content.length },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null, ...delta },
    usage: { output_tokens: 5 },
  },
  { type: 'message_stop' },
];

const made = (file_id: string): JsonObject => ({
  type: 'bash_code_execution_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: {
    type: 'bash_code_execution_result',
    stdout: '',
    stderr: '',
    return_code: 0,
    content: [{ type: 'bash_code_execution_output', file_id }],
  },
});

const response = (
  output: readonly JsonObject[],
  tools: readonly JsonObject[] = [],
): JsonObject => ({
  id: `resp_${Math.random()}`,
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [
    ...output,
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Done.', annotations: [] }],
    },
  ],
  tools,
  usage: { input_tokens: 5, output_tokens: 5, total_tokens: 10 },
});

const responseEvents = (output: readonly JsonObject[]): readonly JsonObject[] => {
  const { output: _, ...rest } = response(output);
  const all = response(output).output as readonly JsonObject[];
  return [
    { type: 'response.created', response: { ...rest, status: 'in_progress', output: [] } },
    ...all.flatMap((item, output_index): JsonObject[] => [
      { type: 'response.output_item.added', output_index, item },
      ...(item.type === 'message'
        ? [
            {
              type: 'response.output_text.delta',
              item_id: 'msg_1',
              output_index,
              content_index: 0,
              delta: 'Done.',
            },
          ]
        : []),
      { type: 'response.output_item.done', output_index, item },
    ]),
    { type: 'response.completed', response: { ...rest, output: all } },
  ] as JsonObject[];
};

const ran = (container_id: string): JsonObject => ({
  id: 'ci_1',
  type: 'code_interpreter_call',
  status: 'completed',
  code: '1',
  container_id,
  outputs: [],
});
const cited = (more: JsonObject): JsonObject => ({
  id: 'msg_0',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'x', annotations: [more] }],
});

const chunk = (delta: JsonObject, finish_reason: string | null = null): JsonObject => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
});

const spoken = (id: string): JsonObject => ({
  id,
  data: 'UklGRg==',
  transcript: 'Done.',
  expires_at: 2_000_000_000,
});

const user = (content: string | readonly JsonObject[]): JsonObject => ({ role: 'user', content });
const messages = [user('Count.')];
const input = [user('Count.')];

const ISSUES: Readonly<Record<string, Issue>> = {
  'a container of Messages, at the end': {
    path: '/v1/messages',
    kind: 'container',
    asks: { max_tokens: 99, messages, tools: [CODE] },
    whole: (id) => ({ ...MESSAGE, container: { id, expires_at: EXPIRES } }),
    events: (id) => messageEvents({}, [], { container: { id, expires_at: EXPIRES } }),
    names: (id) => ({ max_tokens: 99, messages, container: id }),
  },
  'a container of Messages, at the start, with skills': {
    path: '/v1/messages',
    kind: 'container',
    asks: { max_tokens: 99, messages, container: { skills: [] } },
    whole: (id) => ({ ...MESSAGE, container: { id, expires_at: EXPIRES, skills: [] } }),
    events: (id) => messageEvents({ container: { id, expires_at: EXPIRES } }, [], {}),
    names: (id) => ({ max_tokens: 99, messages, container: { id, skills: [] } }),
  },
  'a container of a search of Messages that filters by code': {
    path: '/v1/messages',
    kind: 'container',
    asks: {
      max_tokens: 99,
      messages,
      tools: [{ type: 'web_search_20260209', name: 'web_search' }],
    },
    whole: (id) => ({ ...MESSAGE, container: { id, expires_at: EXPIRES } }),
    events: (id) => messageEvents({}, [], { container: { id, expires_at: EXPIRES } }),
    names: (id) => ({ max_tokens: 99, messages, container: id }),
  },
  'a file that code of Messages made': {
    path: '/v1/messages',
    kind: 'file',
    asks: { max_tokens: 99, messages, tools: [CODE] },
    whole: (id) => ({ ...MESSAGE, content: [made(id), ...MESSAGE.content] }),
    events: (id) => messageEvents({}, [made(id)], {}),
    names: (id) => ({
      max_tokens: 99,
      messages: [user([{ type: 'container_upload', file_id: id }])],
    }),
  },
  'a container of the code interpreter': {
    path: '/v1/responses',
    kind: 'container',
    asks: { input, tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
    whole: (id) => response([ran(id)]),
    events: (id) => responseEvents([ran(id)]),
    names: (id) => ({ input, tools: [{ type: 'code_interpreter', container: id }] }),
  },
  'a container of a shell': {
    path: '/v1/responses',
    kind: 'container',
    asks: { input, tools: [{ type: 'shell', environment: { type: 'container_auto' } }] },
    whole: (id) => response([shell(id)]),
    events: (id) => responseEvents([shell(id)]),
    names: (id) => ({
      input,
      tools: [{ type: 'shell', environment: { type: 'container_reference', container_id: id } }],
    }),
  },
  'a file in a container of Responses': {
    path: '/v1/responses',
    kind: 'file',
    asks: { input, tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
    whole: (id) =>
      response([cited({ type: 'container_file_citation', container_id: 'cntr_x', file_id: id })]),
    events: (id) =>
      responseEvents([
        cited({ type: 'container_file_citation', container_id: 'cntr_x', file_id: id }),
      ]),
    names: (id) => ({ input: [user([{ type: 'input_file', file_id: id }])] }),
  },
  'a spoken answer of Chat': {
    path: '/v1/chat/completions',
    kind: 'audio',
    asks: { messages, modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
    whole: (id) => ({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: null, audio: spoken(id) },
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
    }),
    events: (id) => [
      chunk({ role: 'assistant', content: '' }),
      chunk({ audio: { id, transcript: 'Done.' } }),
      chunk({ audio: { data: 'UklGRg==', expires_at: 2_000_000_000 } }),
      chunk({}, 'stop'),
    ],
    names: (id) => ({ messages: [...messages, { role: 'assistant', audio: { id } }, ...messages] }),
  },
};

function shell(container_id: string): JsonObject {
  return {
    id: 'sh_1',
    type: 'shell_call',
    status: 'completed',
    call_id: 'call_1',
    action: { commands: ['ls'], max_output_length: null, timeout_ms: null },
    environment: { type: 'container_reference', container_id },
  };
}

interface Vendor {
  readonly url: string;
  readonly bodies: JsonObject[];
  /** Whole or as events, by what the request asks. */
  answer: Pick<Issue, 'whole' | 'events'>;
  id: string;
  /** Bytes of a chunk. */
  step: number;
  /** Frames that come before it waits for ever. */
  stopsAfter: number;
  stop(): void;
}

function startVendor(): Vendor {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = (await request.json()) as JsonObject;
      vendor.bodies.push(body);
      const { answer, id, step, stopsAfter } = vendor;
      if (body.stream !== true) return Response.json(answer.whole(id));
      const frames = answer
        .events(id)
        .map((one) => `${one.type ? `event: ${one.type}\n` : ''}data: ${JSON.stringify(one)}\n\n`);
      if (request.url.endsWith('/chat/completions')) frames.push('data: [DONE]\n\n');
      const bytes = Buffer.from(frames.slice(0, stopsAfter).join(''));
      const stream = new ReadableStream<Uint8Array>({
        async start(controller) {
          for (let at = 0; at < bytes.length; at += step) {
            controller.enqueue(bytes.subarray(at, at + step));
            if (at % (step * 20) === 0) await Bun.sleep(0);
          }
          if (stopsAfter >= frames.length) controller.close();
        },
      });
      return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
    },
  });
  const vendor: Vendor = {
    url: `http://127.0.0.1:${server.port}`,
    bodies: [],
    answer: ISSUES['a spoken answer of Chat']!,
    id: '',
    step: Number.MAX_SAFE_INTEGER,
    stopsAfter: Number.MAX_SAFE_INTEGER,
    stop: () => void server.stop(true),
  };
  return vendor;
}

const MODELS: Readonly<Record<string, string>> = {
  '/v1/messages': 'messages/m',
  '/v1/responses': 'responses/m',
  '/v1/chat/completions': 'chat/m',
};

const PATHS: Readonly<Record<string, string>> = {
  messages: 'anthropic-messages',
  responses: 'openai-responses',
  chat: 'openai-chat',
};

const KEYS = [
  { name: 'alice', key: ALICE },
  { name: 'bob', key: BOB },
];

const configOf = (vendor: Vendor, keys: readonly JsonObject[] = KEYS) => ({
  providers: Object.fromEntries(
    Object.entries(PATHS).map(([name, protocol]) => [
      name,
      {
        protocol,
        base_url: protocol === 'anthropic-messages' ? vendor.url : `${vendor.url}/v1`,
        keys: ['sk-vendor-key'],
        models: ['*'],
      },
    ]),
  ),
  ...(keys.length > 0 && { auth: { keys } }),
  samples: { mode: 'off' },
  retry: { attempts: 1 },
});

let vendor: Vendor;
let gateway: InProcess;
beforeAll(async () => {
  vendor = startVendor();
  gateway = await startInProcess(configOf(vendor));
});
afterAll(async () => {
  await gateway.stop();
  vendor.stop();
});
afterEach(() => {
  vendor.step = Number.MAX_SAFE_INTEGER;
  vendor.stopsAfter = Number.MAX_SAFE_INTEGER;
  vendor.bodies.length = 0;
});

let count = 0;
const newId = () => `id_${++count}`;

const ask = (path: string, key: string, body: JsonObject, at = gateway, signal?: AbortSignal) =>
  fetch(at.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
    },
    body: JSON.stringify({ model: MODELS[path]!, ...body }),
    signal: signal ?? null,
  });

/** Its id, which alice has got. */
async function issued({ path, asks, ...answer }: Issue, more: JsonObject, at = gateway) {
  vendor.answer = answer;
  vendor.id = newId();
  const answered = await ask(path, ALICE, { ...asks, ...more }, at);
  expect(await answered.text()).toContain(vendor.id);
  return vendor.id;
}

/** The status, and whether the vendor was asked. */
async function naming({ path, names }: Issue, id: string, key: string, at = gateway) {
  const before = vendor.bodies.length;
  vendor.id = newId();
  const answered = await ask(path, key, names(id), at);
  const text = await answered.text();
  return { status: answered.status, text, asked: vendor.bodies.length > before };
}

const refusalOf = ({ kind }: Issue, id: string) => ({
  status: 404,
  text: expect.stringContaining(`There is no ${kind} '${id}' that was made with this key`),
  asked: false,
});

const FORMS: Readonly<Record<string, JsonObject>> = { whole: {}, streamed: { stream: true } };

for (const [what, issue] of Object.entries(ISSUES)) {
  describe(what, () => {
    for (const [form, more] of Object.entries(FORMS)) {
      test(`${form}: another key cannot name it; its own can`, async () => {
        const id = await issued(issue, more);
        expect(await naming(issue, id, BOB)).toMatchObject(refusalOf(issue, id));
        expect(await naming(issue, id, ALICE)).toMatchObject({ status: 200, asked: true });
      });
    }

    test('is not missed where the stream comes in small pieces', async () => {
      vendor.step = 7;
      const id = await issued(issue, { stream: true });
      expect(await naming(issue, id, BOB)).toMatchObject(refusalOf(issue, id));
    });

    test('that this gateway does not know may be named by every key, again and again', async () => {
      const id = newId();
      vendor.answer = { whole: () => issue.whole(id), events: () => issue.events(id) };
      for (const key of [ALICE, BOB, ALICE]) {
        expect(await naming(issue, id, key)).toMatchObject({ status: 200, asked: true });
      }
    });
  });
}

const CONTAINER = ISSUES['a container of Messages, at the end']!;
const INTERPRETER = ISSUES['a container of the code interpreter']!;

describe('an id that an answer gave out', () => {
  test('stays with its key after a restart', async () => {
    const home = `${gateway.home}-restart`;
    const first = await startInProcess(configOf(vendor), home);
    const id = await issued(CONTAINER, { stream: true }, first);
    await first.stop();
    const second = await startInProcess(configOf(vendor), home);
    expect(await naming(CONTAINER, id, BOB, second)).toMatchObject(refusalOf(CONTAINER, id));
    await second.stop();
    await rm(home, { recursive: true, force: true });
  });

  test('is not lost where the client leaves in the middle of the answer', async () => {
    const issue = ISSUES['a container of Messages, at the start, with skills']!;
    vendor.answer = issue;
    const id = newId();
    vendor.id = id;
    vendor.stopsAfter = 3;
    const leaving = new AbortController();
    const answered = await ask(
      issue.path,
      ALICE,
      { ...issue.asks, stream: true },
      gateway,
      leaving.signal,
    );
    await answered.body!.getReader().read();
    leaving.abort();
    vendor.stopsAfter = Number.MAX_SAFE_INTEGER;
    expect(await naming(issue, id, BOB)).toMatchObject(refusalOf(issue, id));
  });

  test('on a WebSocket belongs to the key of the socket', async () => {
    vendor.answer = INTERPRETER;
    const id = newId();
    vendor.id = id;
    const open = (key: string) =>
      ResponsesSocket.open(gateway.url, { authorization: `Bearer ${key}` });
    const [alice, bob] = [await open(ALICE), await open(BOB)];
    alice.create({ model: 'responses/m', ...INTERPRETER.asks });
    expect(JSON.stringify(await alice.last())).toContain(id);
    bob.create({ model: 'responses/m', ...INTERPRETER.names(id) });
    expect(await bob.last()).toMatchObject({ type: 'error', status: 404 });
    alice.create({ model: 'responses/m', ...INTERPRETER.names(id) });
    expect(await alice.last(1)).toMatchObject({ type: 'response.completed' });
    alice.close();
    bob.close();
  });

  test('reaches the client of another protocol or not, it is tied', async () => {
    vendor.answer = CONTAINER;
    const id = newId();
    vendor.id = id;
    const tools = [{ type: 'code_interpreter', container: { type: 'auto' } }];
    await (await ask('/v1/responses', ALICE, { model: 'messages/m', input, tools })).text();
    expect(await naming(CONTAINER, id, BOB)).toMatchObject(refusalOf(CONTAINER, id));
  });

  test('cannot be named beside a second member that hides it', async () => {
    const id = await issued(CONTAINER, {});
    const text = (container: string) =>
      `{"model":"messages/m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"x"},${container}]}]}`;
    const twice = `{"type":"container_upload","file_id":"${id}","file_id":"file_mine"}`;
    const answered = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': BOB, 'content-type': 'application/json' },
      body: text(twice),
    });
    await answered.text();
    // What went out is what was read here.
    for (const body of vendor.bodies.slice(1)) expect(JSON.stringify(body)).not.toContain(id);
    const spelt = await ask('/v1/messages', BOB, { max_tokens: 9, messages, Container: id });
    expect(spelt.status).toBe(400);
  });
});

describe('what looks like an id and is none', () => {
  const OWN = { container: { id: 'prod-db' }, container_id: 'prod-db', audio: { id: 'prod-db' } };
  const CALLS: Readonly<Record<string, Pick<Issue, 'path' | 'asks' | 'whole' | 'events'>>> = {
    'arguments of a call of Messages': {
      ...CONTAINER,
      whole: () => ({
        ...MESSAGE,
        content: [{ type: 'tool_use', id: 't', name: 'docker', input: OWN }],
      }),
      events: () => messageEvents({}, [], {}),
    },
    'a schema and metadata that Responses repeats': {
      ...INTERPRETER,
      whole: () => ({
        ...response(
          [],
          [
            {
              type: 'function',
              name: 'docker',
              parameters: { type: 'object', examples: [OWN], properties: {} },
            },
          ],
        ),
        metadata: { container_id: 'prod-db' },
      }),
      events: () => responseEvents([]),
    },
    'a citation of a file search': {
      ...INTERPRETER,
      whole: () => response([cited({ type: 'file_citation', file_id: 'prod-db', index: 0 })]),
      events: () => responseEvents([]),
    },
  };
  test.each(Object.entries(CALLS))('is not taken from other keys: %s', async (_, call) => {
    vendor.answer = call;
    await (await ask(call.path, ALICE, call.asks)).text();
    for (const issue of [CONTAINER, INTERPRETER]) {
      vendor.answer = issue;
      expect(await naming(issue, 'prod-db', BOB)).toMatchObject({ status: 200, asked: true });
    }
  });
});

describe('without another key', () => {
  test.each([
    ['no keys', []],
    ['one key', [KEYS[0]!]],
  ] as const)('%s: every id goes on', async (_, keys) => {
    const alone = await startInProcess(configOf(vendor, keys));
    for (const issue of Object.values(ISSUES)) {
      const id = await issued(issue, { stream: true }, alone);
      expect(await naming(issue, id, ALICE, alone)).toMatchObject({ status: 200, asked: true });
    }
    expect(existsSync(join(alone.home, 'state', 'vendor-objects.db'))).toBe(keys.length > 0);
    await alone.stop();
  });

  test('an answer keeps its bytes where its ids are learnt', async () => {
    vendor.answer = CONTAINER;
    vendor.id = newId();
    const asks = { ...CONTAINER.asks, stream: true };
    const answered = await (await ask('/v1/messages', ALICE, asks)).text();
    const direct = await fetch(`${vendor.url}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify(asks),
    });
    expect(answered).toBe(await direct.text());
  });
});

test('a job that is fetched later ties the ids of its answer', async () => {
  const id = newId();
  const own = { ...response([ran(id)]), id: 'resp_job', background: true } as JsonObject;
  const jobs = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ method }) =>
      Response.json(method === 'GET' ? own : { ...own, status: 'queued', output: [], usage: null }),
  });
  const config = configOf(vendor) as unknown as {
    providers: Record<string, Record<string, unknown>>;
  };
  config.providers.responses = {
    ...config.providers.responses,
    base_url: `http://127.0.0.1:${jobs.port}/v1`,
    profile: 'openai',
  };
  const keeps = await startInProcess(config);
  const begun = await ask(
    '/v1/responses',
    ALICE,
    { ...INTERPRETER.asks, background: true, store: true },
    keeps,
  );
  expect(await begun.json()).toMatchObject({ id: 'resp_job', status: 'queued' });
  const fetched = await until(async () => {
    const answer = await fetch(`${keeps.url}/v1/responses/resp_job`, {
      headers: { authorization: `Bearer ${ALICE}` },
    });
    const text = await answer.text();
    return text.includes(id) && text;
  });
  expect(fetched).toContain(id);
  expect(await naming(INTERPRETER, id, BOB, keeps)).toMatchObject(refusalOf(INTERPRETER, id));
  await keeps.stop();
  await jobs.stop(true);
});

describe('behind a server tool, in the answer before the last one', () => {
  const called = { type: 'tool_use', id: 'toolu_1', name: 'stock_price', input: { symbol: 'A' } };
  const HOPS: Readonly<Record<string, Pick<Issue, 'whole' | 'events'>>> = {
    'a container of Messages, at the end': {
      whole: (id) => ({
        ...MESSAGE,
        container: { id, expires_at: EXPIRES },
        content: [called],
        stop_reason: 'tool_use',
      }),
      events: (id) =>
        messageEvents({}, [called], {
          stop_reason: 'tool_use',
          container: { id, expires_at: EXPIRES },
        }),
    },
    'a file that code of Messages made': {
      whole: (id) => ({ ...MESSAGE, content: [made(id), called], stop_reason: 'tool_use' }),
      events: (id) => messageEvents({}, [made(id), called], { stop_reason: 'tool_use' }),
    },
  };
  let tools: ToolServers;
  let running: InProcess;
  beforeAll(async () => {
    tools = await startToolServers();
    const { http } = toolsOf(tools);
    running = await startInProcess({ ...configOf(vendor), server_tools: { http } });
  });
  afterAll(async () => {
    await running.stop();
    await tools.stop();
  });

  for (const [what, first] of Object.entries(HOPS)) {
    test.each(Object.entries(FORMS))(`${what}, %s: another key cannot name it`, async (_, more) => {
      const issue = ISSUES[what]!;
      const id = newId();
      vendor.id = id;
      let asked = 0;
      const last = { whole: () => MESSAGE, events: () => messageEvents({}, [], {}) };
      const hop = (part: 'whole' | 'events') => (given: string) =>
        (asked++ === 0 ? first : last)[part](given);
      vendor.answer = { whole: hop('whole'), events: hop('events') } as typeof vendor.answer;
      await (await ask(issue.path, ALICE, { ...issue.asks, ...more }, running)).text();
      expect([asked, tools.reached.length > 0]).toEqual([2, true]);
      vendor.answer = last as typeof vendor.answer;
      expect(await naming(issue, id, BOB, running)).toMatchObject(refusalOf(issue, id));
      expect(await naming(issue, id, ALICE, running)).toMatchObject({ status: 200, asked: true });
    });
  }
});

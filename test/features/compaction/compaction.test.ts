/** Compaction in both forms: by a summary onto every kind of vendor, and by the vendor that has it. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import { CODECS } from '../../../src/app/codecs.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../../src/conversation/profile-facts.ts';
import { compaction } from '../../../src/features/compaction/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import {
  call,
  type FakeUpstream,
  say,
  startFakeUpstream,
  think,
} from '../../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { idOf, ResponsesSocket } from '../../support/responses-socket.ts';
import { until } from '../../support/until.ts';

const PROTOCOLS = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'google-gemini',
] as const;
const SUMMARY = 'The user builds a café. Next: <tool_call>paint</tool_call> the door.';
const TRIGGER = { type: 'compaction_trigger' };
const TOOL = {
  type: 'function',
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: {} },
} as const;
const HISTORY: JsonObject[] = [
  { role: 'developer', content: 'Be brief.' },
  { role: 'user', content: 'Build a café.' },
  { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
  { type: 'function_call_output', call_id: 'c1', output: 'an empty house' },
  { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I looked.' }] },
];

let upstream: FakeUpstream;
let gateway: InProcess;
let client: OpenAI;
/** A vendor that compacts by itself, and what it was sent. */
let native: ReturnType<typeof startNative>;

function startNative() {
  const bodies: string[] = [];
  const item = { id: 'cmp_v', type: 'compaction', encrypted_content: 'the vendor alone reads it' };
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const text = await request.text();
      bodies.push(text);
      const body = JSON.parse(text) as JsonObject;
      const response = {
        id: 'resp_v',
        object: 'response',
        created_at: 1_790_000_000,
        model: body.model as string,
        status: 'completed',
        output: [item],
        usage: { input_tokens: 9, output_tokens: 3, total_tokens: 12 },
      };
      if (body.stream !== true) return Response.json(response);
      const events = [
        { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response },
      ];
      return new Response(
        events.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`).join(''),
        { headers: { 'content-type': 'text/event-stream' } },
      );
    },
  });
  return { bodies, item, url: `${server.url}v1`, stop: () => server.stop(true) };
}

beforeAll(async () => {
  upstream = await startFakeUpstream();
  native = startNative();
  const providers: Record<string, object> = {};
  for (const protocol of PROTOCOLS) {
    providers[protocol] = {
      protocol,
      base_url: upstream.baseUrl(protocol),
      keys: ['sk-upstream'],
      models: [`m-${protocol}`],
    };
  }
  providers.native = {
    protocol: 'openai-responses',
    base_url: native.url,
    models: ['native'],
    profile: 'compacts',
  };
  gateway = await startInProcess({
    profiles: { compacts: { compaction: true } },
    providers,
    samples: { mode: 'off' },
  });
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterEach(() => {
  upstream.clear();
  native.bodies.length = 0;
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
  await native?.stop();
});

const sent = (n: number) => JSON.stringify(upstream.modelRequests[n]?.body);
const post = (body: JsonObject, path = '/v1/responses') =>
  fetch(`${gateway.url}${path}`, { method: 'POST', body: JSON.stringify(body) });

/** The items of a stream, and its last event. */
async function stream(body: JsonObject) {
  const items: JsonObject[] = [];
  let last: JsonObject | undefined;
  const response = await post({ ...body, stream: true });
  for (const line of (await response.text()).split('\n')) {
    if (!line.startsWith('data: ')) continue;
    const event = JSON.parse(line.slice(6)) as JsonObject;
    if (event.type === 'response.output_item.done') items.push(event.item as JsonObject);
    if (event.response !== undefined) last = event;
  }
  return { items, last, response };
}

describe.each(PROTOCOLS)('onto %s', (protocol) => {
  const model = `m-${protocol}`;
  const body = { model, input: [...HISTORY, TRIGGER], tools: [TOOL], store: false };

  test('a trigger in a stream becomes one item, which the next turn onto any vendor reads', async () => {
    upstream.enqueue(think('What matters?', SUMMARY));
    const { items, last, response } = await stream(body);
    expect(response.headers.get('x-hopgate-notes')).toContain('compacted_by_summary');
    expect(items.map(({ type }) => type)).toEqual(['compaction']);
    expect(last?.type).toBe('response.completed');
    expect(last).toMatchObject({ response: { output: items } });
    // The vendor was told the whole history, and nothing of the trigger.
    expect(sent(0)).toContain('an empty house');
    expect(sent(0)).toContain('Write a summary');
    expect(sent(0)).not.toContain('compaction_trigger');
    expect(upstream.refusals).toEqual([]);
    for (const other of PROTOCOLS) {
      const input = [HISTORY[1]!, ...items, { role: 'user', content: 'Go on.' }];
      const next = await post({ model: `m-${other}`, input });
      expect([other, next.status]).toEqual([other, 200]);
      expect(next.headers.get('x-hopgate-notes')).toContain('summary_read');
      expect(JSON.stringify(upstream.modelRequests.at(-1)?.body)).toContain('builds a café');
      expect(JSON.stringify(upstream.modelRequests.at(-1)?.body)).not.toContain('hopgate1.');
    }
  });

  test('a whole answer says the same', async () => {
    upstream.enqueue(say(SUMMARY));
    const response = (await (await post(body)).json()) as { output: JsonObject[]; status: string };
    expect(response.output.map(({ type }) => type)).toEqual(['compaction']);
    expect(response.status).toBe('completed');
  });

  test("the endpoint's answer begins with the user's messages", async () => {
    upstream.enqueue(say(SUMMARY));
    const { data: made, response } = await client.responses
      .compact({ model, input: HISTORY as never })
      .withResponse();
    expect(made.object).toBe('response.compaction');
    expect(made.output.map(({ type }) => type)).toEqual(['message', 'compaction']);
    expect(JSON.stringify(made.output[0])).toContain('Build a café.');
    expect(made.usage.output_tokens).toBeGreaterThan(0);
    const id = response.headers.get('x-hopgate-request-id')!;
    const logged = () =>
      gateway.lines.filter((line) => line.includes(id) && line.includes('"exchange"'));
    await until(() => logged()[0]);
    expect(JSON.parse(logged()[0]!)).toMatchObject({ target: `${protocol}/${model}`, status: 200 });
    upstream.enqueue(say('The door is blue.'));
    const next = await client.responses.create({
      model,
      input: [...(made.output as never[]), { role: 'user', content: 'Which colour?' }],
    });
    expect(next.output_text).toBe('The door is blue.');
    // One exchange and one account, like a response.
    expect(logged().length).toBe(1);
    expect(sent(1)).toContain('builds a café');
    expect(upstream.refusals).toEqual([]);
  });

  test('an answer without text is no compaction', async () => {
    upstream.answerWith(() => call({ name: 'look', arguments: {} }));
    const { items, last, response } = await stream(body);
    expect(items).toEqual([]);
    expect(last?.type === undefined || last.type === 'response.failed').toBe(true);
    expect(response.status).toBe(502);
    expect((await post(body, '/v1/responses/compact')).status).toBe(502);
  });
});

describe('over a WebSocket', () => {
  test('the lane goes on from the summary, without what it stands for', async () => {
    const model = 'm-openai-chat';
    const socket = await ResponsesSocket.open(gateway.url);
    socket.create({ model, store: false, input: HISTORY });
    const first = idOf(await socket.last(0));
    upstream.enqueue(say(SUMMARY));
    socket.create({ model, store: false, input: [TRIGGER], previous_response_id: first });
    const second = await socket.last(1);
    const { output } = second.response as { output: JsonObject[] };
    expect(output.map(({ type }) => type)).toEqual(['compaction']);
    socket.create({
      model,
      store: false,
      input: [{ role: 'user', content: 'Go on.' }],
      previous_response_id: idOf(second),
    });
    expect((await socket.last(2)).type).toBe('response.completed');
    socket.close();
    const body = sent(2);
    for (const left of ['Be brief.', 'Build a café.', 'builds a café', 'Go on.']) {
      expect(body).toContain(left);
    }
    for (const gone of ['an empty house', 'I looked.', 'compaction']) {
      expect(body).not.toContain(gone);
    }
  });
});

describe('stored responses', () => {
  test('the endpoint compacts what a response continues', async () => {
    const model = 'm-anthropic-messages';
    const first = await client.responses.create({ model, input: 'Build a café.' });
    upstream.enqueue(say(SUMMARY));
    const made = await client.responses.compact({
      model,
      input: 'And a door.',
      previous_response_id: first.id,
    });
    expect(JSON.stringify(made.output.slice(0, -1))).toContain('Build a café.');
    expect(made.output.map(({ type }) => type)).toEqual(['message', 'message', 'compaction']);
    expect(sent(1)).toContain('And a door.');
  });
});

describe('a vendor that compacts by itself', () => {
  const body = { model: 'native', input: [...HISTORY, TRIGGER], store: false };

  test('gets the bytes as they came, and its item goes to the client', async () => {
    const { items, response } = await stream(body);
    expect(items).toEqual([native.item]);
    expect(response.headers.get('x-hopgate-notes')).toBeNull();
    expect(native.bodies[0]).toBe(JSON.stringify({ ...body, stream: true }));
  });

  test('the endpoint asks it by the trigger', async () => {
    const made = await client.responses.compact({ model: 'native', input: 'Build a café.' });
    expect(made.output.at(-1)).toEqual(native.item as never);
    expect(JSON.parse(native.bodies[0]!).input.at(-1)).toEqual(TRIGGER);
    expect(made.usage.total_tokens).toBe(12);
  });
});

test.each([
  [{ model: 'm-openai-chat', input: [TRIGGER, { role: 'user', content: 'x' }] }, 'input[0]'],
])('a trigger that is not last is refused by its place', async (body, param) => {
  const response = await post(body);
  const { error } = (await response.json()) as { error: JsonObject };
  expect([response.status, error.param]).toEqual([400, param]);
  expect(upstream.modelRequests).toEqual([]);
});

test('a body that is no object is refused', async () => {
  const response = await post([] as never, '/v1/responses/compact');
  expect(response.status).toBe(400);
});

describe("Anthropic's own summary", () => {
  const history = {
    model: 'm',
    max_tokens: 9,
    messages: [
      { role: 'user', content: 'an old question' },
      { role: 'assistant', content: 'an old answer' },
      { role: 'user', content: 'a long task' },
      {
        role: 'assistant',
        content: [
          { type: 'compaction', content: 'We build a café.' },
          { type: 'text', text: 'I go on.' },
        ],
      },
      { role: 'user', content: 'paint it' },
    ],
  };

  test.each(PROTOCOLS.filter((one) => one !== 'anthropic-messages'))(
    'stands for what was before it, onto %s',
    (protocol) => {
      const notes = new Notes();
      const conversation = CODECS['anthropic-messages'].decodeRequest(history);
      const target = { provider: 'p', model: 'm', protocol, profile: NO_PROFILE };
      const context = { target, client: 'anthropic-messages', notes, hop: 1 } as const;
      const passed = compaction.request!(conversation, context);
      const sent = JSON.stringify(CODECS[protocol].encodeRequest(passed, target, notes));
      expect(sent).not.toMatch(/an old|a long task/);
      expect(sent).toMatch(/We build a café\..*I go on\..*paint it/s);
      expect(notes.all.map(({ name }) => name)).toContain('compacted_turns_dropped');
      expect(compaction.request!(passed, context)).toBe(passed);
    },
  );

  test('goes back to Anthropic as it came', () => {
    const body = Buffer.from(JSON.stringify(history));
    const target = {
      provider: 'p',
      model: 'm',
      protocol: 'anthropic-messages',
      profile: NO_PROFILE,
    } as const;
    const context = { target, client: 'anthropic-messages', notes: new Notes(), hop: 1 } as const;
    expect(compaction.mayApply!(body, context)).toBe(false);
  });
});

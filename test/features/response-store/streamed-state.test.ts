/** A conversation by reference, as the AI SDK holds it, over vendors without storage: every pipeline, every split. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { bytewise, everySplit, whole } from '../../support/chunkings.ts';
import {
  type Answer,
  type Delivery,
  type FakeUpstream,
  startFakeUpstream,
} from '../../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';

let upstream: FakeUpstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  const keys = ['sk-up'];
  gateway = await startInProcess({
    providers: {
      responses: {
        protocol: 'openai-responses',
        base_url: upstream.baseUrl('openai-responses'),
        keys,
        models: ['responses'],
      },
      chat: {
        protocol: 'openai-chat',
        base_url: upstream.baseUrl('openai-chat'),
        keys,
        models: ['chat'],
      },
      messages: {
        protocol: 'anthropic-messages',
        base_url: upstream.baseUrl('anthropic-messages'),
        keys,
        models: ['messages'],
      },
    },
    samples: { mode: 'off' },
  });
});
afterEach(() => upstream.clear());
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const TOOLS = [
  {
    type: 'function' as const,
    name: 'get_weather',
    description: 'The weather in a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    strict: false,
  },
];
const WORDS = 'Oslo is cold — 奥斯陆很冷.';
const CALL = { kind: 'call', name: 'get_weather', arguments: '{"city":"Oslo"}' } as const;
const ANSWERS: Readonly<Record<string, Answer['parts']>> = {
  text: [{ kind: 'text', text: WORDS }],
  'a call': [CALL],
  'reasoning, text and two calls': [
    { kind: 'reasoning', text: 'They ask for Oslo.' },
    { kind: 'text', text: WORDS },
    CALL,
    { ...CALL, arguments: '{"city":"Bergen"}' },
  ],
  'a leaked call behind a text and a call': [
    { kind: 'text', text: 'First I look at Bergen.' },
    { ...CALL, arguments: '{"city":"Bergen"}' },
    {
      kind: 'text',
      text: 'Now Oslo.\n<tool_call>{"name":"get_weather","arguments":{"city":"Oslo"}}</tool_call>',
    },
  ],
};

interface Turn {
  readonly id: string;
  readonly items: readonly OpenAI.Responses.ResponseOutputItem[];
}

async function ask(body: JsonObject, stream: boolean): Promise<Turn> {
  const app = new OpenAI({ apiKey: 'none', baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  if (!stream) {
    const { id, output } = await app.responses.create(body as never);
    return { id, items: output };
  }
  const events = (await app.responses.create({
    ...body,
    stream: true,
  } as never)) as unknown as AsyncIterable<OpenAI.Responses.ResponseStreamEvent>;
  const items: OpenAI.Responses.ResponseOutputItem[] = [];
  let id = '';
  for await (const event of events) {
    // The AI SDK reads the id from the first event and items from the item-done events.
    if (event.type === 'response.created') id = event.response.id;
    if (event.type === 'response.output_item.done') items.push(event.item);
  }
  return { id, items };
}

/** The second turn by references and by the response's id: the vendor gets the full history. */
async function secondTurn(model: string, tools: boolean, stream: boolean, parts: Answer['parts']) {
  const first = await ask({ model, input: 'Weather?', ...(tools ? { tools: TOOLS } : {}) }, stream);
  const results = first.items.flatMap((item) =>
    item.type === 'function_call'
      ? [{ type: 'function_call_output', call_id: item.call_id, output: 'minus three' }]
      : [],
  );
  const go = { role: 'user', content: 'Go on.' };
  const references = first.items.map(({ id }) => ({ type: 'item_reference', id: id ?? '' }));
  const declared = tools ? { tools: TOOLS } : {};
  for (const more of [
    { input: [{ role: 'user', content: 'Weather?' }, ...references, ...results, go] },
    { previous_response_id: first.id, input: [...results, go] },
  ]) {
    await ask({ model, ...declared, ...more }, stream);
    const received = JSON.stringify(upstream.modelRequests.at(-1)!.body);
    expect(received).not.toContain('item_reference');
    for (const part of parts) {
      if (part.kind === 'text') expect(received).toContain(part.text.split('\n')[0]!);
      if (part.kind === 'call') expect(received).toContain(part.name);
    }
    if (results.length > 0) expect(received).toContain('minus three');
  }
  return first;
}

const play = (parts: Answer['parts'], delivery: Delivery = {}) =>
  upstream.answerWith(() => ({ parts, delivery }));

describe.each(['responses', 'chat', 'messages'])('over %s', (model) => {
  describe.each([true, false])('streamed: %p', (stream) => {
    test.each(Object.keys(ANSWERS))('%s', async (name) => {
      for (const tools of [false, true]) {
        if (!tools && name !== 'text') continue;
        play(ANSWERS[name]!);
        const { items } = await secondTurn(model, tools, stream, ANSWERS[name]!);
        expect(items.length).toBeGreaterThan(0);
        upstream.clear();
      }
    });
  });
});

test('a vendor whose events have no names and other ids than OpenAI’s', async () => {
  play(ANSWERS.text!, { bareData: true });
  await secondTurn('responses', true, true, ANSWERS.text!);
  const frame = (type: string, more: object) => `data: ${JSON.stringify({ type, ...more })}\n\n`;
  const item = {
    id: 'msg-7',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: WORDS, annotations: [] }],
  };
  const response = { id: 'abc-1', object: 'response', created_at: 1, model: 'm', output: [] };
  const raw =
    frame('response.created', { response: { ...response, status: 'in_progress' } }) +
    frame('response.output_item.added', { output_index: 0, item: { ...item, content: [] } }) +
    frame('response.output_text.delta', { output_index: 0, content_index: 0, delta: WORDS }) +
    frame('response.output_item.done', { output_index: 0, item }) +
    // Some vendors leave out the items at the end.
    frame('response.completed', { response: { ...response, status: 'completed' } });
  upstream.enqueue({ raw });
  const first = await ask({ model: 'responses', input: 'Weather?', tools: TOOLS }, true);
  expect(first).toMatchObject({ id: 'abc-1', items: [{ id: 'msg-7' }] });
  for (const more of [
    { input: [{ type: 'item_reference', id: 'msg-7' }] },
    { input: 'on', previous_response_id: 'abc-1' },
  ]) {
    await ask({ model: 'responses', tools: TOOLS, ...more }, true);
    expect(JSON.stringify(upstream.modelRequests.at(-1)!.body)).toContain(WORDS);
  }
});

test('every split of the stream gives the same state', async () => {
  const parts = ANSWERS['reasoning, text and two calls']!;
  let bytes = new Uint8Array();
  play(parts, {
    split: (all) => {
      bytes = Uint8Array.from(all);
      return [all];
    },
  });
  await ask({ model: 'responses', input: 'Weather?', tools: TOOLS }, true);
  for (const { cut } of [whole, bytewise, ...everySplit(bytes, 40)]) {
    for (const tools of [true, false]) {
      play(tools ? parts : ANSWERS.text!, { split: (all) => cut(all) });
      await secondTurn('responses', tools, true, tools ? parts : ANSWERS.text!);
    }
  }
}, 60_000);

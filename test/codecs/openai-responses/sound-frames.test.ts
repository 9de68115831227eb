/**
 * Streams of Responses as relays and local servers spoil them: each client of the protocol still gets the whole answer.
 * Sources: src/codecs/openai-responses/stream/sound-frames.ts, and github.com/BerriAI/litellm/pull/24445,
 * github.com/BerriAI/litellm/issues/37852, github.com/open-webui/open-webui/pull/27800,
 * github.com/decolua/9router/issues/705, github.com/tashfeenahmed/freellmapi/pull/846.
 */

import { describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { leakedCalls } from '../../../src/features/leaked-calls/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { scriptedGateway } from '../../gateway/scripted.ts';

const ARGS = '{"cmd":"ls"}';
const message = (text: string, more: JsonObject = {}): JsonObject => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: text === '' ? [] : [{ type: 'output_text', text, annotations: [] }],
  ...more,
});
const call = (args: JsonObject[string], more: JsonObject = {}): JsonObject => ({
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_1',
  name: 'run',
  arguments: args,
  status: 'completed',
  ...more,
});
const response = (status: string, output: readonly JsonObject[]): JsonObject => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status,
  model: 'm',
  output,
  usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
});

type Event = JsonObject | '[DONE]';
const event = (type: string, more: JsonObject): JsonObject => ({
  type: `response.${type}`,
  ...more,
});
const created = event('created', { response: response('in_progress', []) });
const added = (item: JsonObject, output_index = 0) =>
  event('output_item.added', { output_index, item: { ...item, status: 'in_progress' } });
const done = (item: JsonObject, output_index = 0) =>
  event('output_item.done', { output_index, item });
const at = (output_index = 0) => ({ item_id: 'msg_1', output_index, content_index: 0 });
const EMPTY_PART = { type: 'output_text', text: '', annotations: [] };
const part = (index = 0) => event('content_part.added', { ...at(index), part: EMPTY_PART });
const says = (delta: string, index = 0) => event('output_text.delta', { ...at(index), delta });
const said = (text: string) => event('output_text.done', { ...at(), text });
const input = (delta: string, output_index = 0) =>
  event('function_call_arguments.delta', { item_id: 'fc_1', output_index, delta });
const completed = (...output: JsonObject[]) =>
  event('completed', { response: response('completed', output) });

const BEGUN = message('');
const HELLO = message('Hello');
const CALLED = call('');
const CALL = call(ARGS);
const without = (given: JsonObject, ...keys: string[]): JsonObject =>
  Object.fromEntries(Object.entries(given).filter(([key]) => !keys.includes(key)));

const TEXT = [added(BEGUN), part(), says('Hel'), says('lo'), said('Hello'), done(HELLO)];
const RUN = [added(CALLED), input('{"cmd":'), input('"ls"}'), done(CALL)];

/** Each event with ids of its own, as GitHub Copilot sends them. */
const rotated = (events: readonly JsonObject[], kind = 'msg'): readonly JsonObject[] =>
  events.map((one, i) => {
    const id = `${kind}_${i + 1}`;
    if (one.item !== undefined) return { ...one, item: { ...(one.item as JsonObject), id } };
    return { ...one, item_id: id };
  });

const WRONG_TEXTS: Readonly<Record<string, readonly Event[]>> = {
  'no content_part.added': [created, ...TEXT.toSpliced(1, 1), completed(HELLO)],
  'no output_item.added': [created, ...TEXT.slice(1), completed(HELLO)],
  'nothing but deltas before the end': [created, says('Hel'), says('lo'), completed(HELLO)],
  'no deltas': [created, added(BEGUN), part(), said('Hello'), done(HELLO), completed(HELLO)],
  'a finished item alone': [created, done(HELLO), completed(HELLO)],
  'the text alone': [created, said('Hello'), completed(HELLO)],
  'all of it in the end': [created, completed(HELLO)],
  'an end without output': [created, ...TEXT, completed()],
  'an end that has no list': [
    created,
    ...TEXT,
    event('completed', { response: without(response('completed', []), 'output') }),
  ],
  'a finished item alone, and an end without output': [created, done(HELLO), completed()],
  'no finished item, and an end without output': [created, ...TEXT.slice(0, -1), completed()],
  'deltas alone, and an end without output': [created, says('Hel'), says('lo'), completed()],
  'deltas within their part alone, and an end without output': [
    created,
    ...TEXT.slice(0, 4),
    completed(),
  ],
  'a finished item that lost it': [created, ...TEXT.slice(0, 4), done(BEGUN), completed(BEGUN)],
  'response.done': [created, ...TEXT, event('done', { response: response('completed', [HELLO]) })],
  'response.done without a status': [
    created,
    ...TEXT,
    event('done', { response: without(response('', [HELLO]), 'status') }),
  ],
  'an end in progress': [
    created,
    ...TEXT,
    event('completed', { response: response('in_progress', [HELLO]) }),
  ],
  '[DONE] in place of the end': [created, ...TEXT, '[DONE]'],
  'ids that change': [
    created,
    ...TEXT.slice(0, -1),
    done(message('Hello', { id: 'msg_2' })),
    completed(message('Hello', { id: 'msg_3' })),
  ],
  'another id in each event': [created, ...rotated(TEXT), completed(message('Hello', { id: 'x' }))],
  'another id of the response at the end': [
    created,
    ...TEXT,
    event('completed', { response: { ...response('completed', [HELLO]), id: 'resp_2' } }),
  ],
  'no response.created': [...TEXT, completed(HELLO)],
  'response.in_progress in its place': [
    event('in_progress', { response: response('in_progress', []) }),
    ...TEXT,
    completed(HELLO),
  ],
  'no indexes': [
    created,
    ...TEXT.map((one) => without(one, 'output_index', 'content_index')),
    completed(HELLO),
  ],
  'an index of its own at the end': [
    created,
    ...TEXT.slice(0, -1),
    done(HELLO, 3),
    completed(HELLO),
  ],
  'parts that are counted for each delta': [
    created,
    added(BEGUN),
    part(),
    { ...says('Hel'), content_index: 1 },
    { ...says('lo'), content_index: 2 },
    done(HELLO),
    completed(HELLO),
  ],
};
const THOUGHT: JsonObject = { type: 'reasoning', id: 'rs_1', summary: [] };
const thinks = (type: string, more: JsonObject) =>
  event(type, { item_id: 'rs_1', output_index: 0, ...more });
/** A thought, and the text behind it. */
const behind = (...thought: JsonObject[]): readonly JsonObject[] => [
  created,
  added(THOUGHT),
  ...thought,
  added(BEGUN, 1),
  part(1),
  says('Hel', 1),
  says('lo', 1),
  done(HELLO, 1),
  completed({ ...THOUGHT, status: 'completed' }, HELLO),
];
const THINKING = thinks('reasoning_text.delta', { content_index: 0, delta: 'hm' });
const THOUGHT_PART: JsonObject = { type: 'reasoning_text', text: 'hm' };
const READ_THOUGHT: JsonObject = { ...THOUGHT, content: [THOUGHT_PART] };

/** Each of them says `hm`, then `Hello`. */
const WRONG_THOUGHTS: Readonly<Record<string, readonly JsonObject[]>> = {
  'no content_part.added': behind(THINKING, done(READ_THOUGHT)),
  'a part for each delta': behind(
    thinks('reasoning_text.delta', { content_index: 8, delta: 'h' }),
    thinks('reasoning_text.delta', { content_index: 9, delta: 'm' }),
    done(READ_THOUGHT),
  ),
  'vLLM’s names': behind(
    thinks('reasoning_part.added', { content_index: 0, part: { ...THOUGHT_PART, text: '' } }),
    THINKING,
    thinks('reasoning_part.done', { content_index: 0, part: THOUGHT_PART }),
    done(READ_THOUGHT),
  ),
  'a summary without its part': behind(
    thinks('reasoning_summary_text.delta', { summary_index: 0, delta: 'hm' }),
    done({ ...THOUGHT, summary: [{ type: 'summary_text', text: 'hm' }] }),
  ),
  'another id in each event': behind(
    ...rotated(
      [
        thinks('content_part.added', { content_index: 0, part: { ...THOUGHT_PART, text: '' } }),
        THINKING,
        done(READ_THOUGHT),
      ],
      'rs_0',
    ),
  ),
  'the same id for the text': behind(
    thinks('content_part.added', { content_index: 0, part: { ...THOUGHT_PART, text: '' } }),
    THINKING,
    done(READ_THOUGHT),
  ).map((one) => JSON.parse(JSON.stringify(one).replaceAll('msg_1', 'rs_1')) as JsonObject),
  'the text within it': [
    created,
    added(THOUGHT),
    thinks('content_part.added', { content_index: 0, part: { ...THOUGHT_PART, text: '' } }),
    THINKING,
    done(READ_THOUGHT),
    says('Hel'),
    says('lo'),
    completed(READ_THOUGHT, message('Hello', { id: 'msg_2' })),
  ],
};
const WRONG_CALLS: Readonly<Record<string, readonly Event[]>> = {
  'no indexes, no ids of items': [
    created,
    ...RUN.map((one) => {
      const item = one.item === undefined ? {} : { item: without(one.item as JsonObject, 'id') };
      return { ...without(one, 'output_index', 'item_id'), ...item };
    }),
    completed(without(CALL, 'id')),
  ],
  'another id in each event': [created, ...rotated(RUN, 'fc'), completed(CALL)],
  'another call_id at the end': [
    created,
    ...RUN.slice(0, -1),
    done(call(ARGS, { call_id: 'call_2' })),
    completed(call(ARGS, { call_id: 'call_2' })),
  ],
  'no call_id': [
    created,
    added(without(CALLED, 'call_id')),
    input(ARGS),
    done(without(CALL, 'call_id')),
    completed(without(CALL, 'call_id')),
  ],
  'an object for arguments': [
    created,
    added(CALLED),
    done(call({ cmd: 'ls' })),
    completed(call({ cmd: 'ls' })),
  ],
  'arguments that end, no finished call, and an end without output': [
    created,
    ...RUN.slice(0, -1),
    event('function_call_arguments.done', { ...at(), item_id: 'fc_1', arguments: ARGS }),
    completed(),
  ],
  // https://github.com/NousResearch/hermes-agent/issues/92764
  'deltas alone, and an end without output': [created, ...RUN.slice(0, -1), completed()],
  // https://github.com/BigPizzaV3/CodexPlusPlus/issues/614
  'a finished call that lost its name': [
    created,
    ...RUN.slice(0, -1),
    done(call(ARGS, { name: '' })),
    completed(call(ARGS, { name: '' })),
  ],
  'a finished call that lost its arguments': [
    created,
    ...RUN.slice(0, -1),
    done(call('')),
    completed(call('')),
  ],
  'a finished call alone': [created, done(CALL), completed(CALL)],
  'an end without output': [created, ...RUN, completed()],
  'all of it in the end': [created, completed(CALL)],
};
const RIGHT: Readonly<Record<string, readonly Event[]>> = {
  text: [created, ...TEXT, completed(HELLO)],
  'a call': [created, ...RUN, completed(CALL)],
  'both, one within the other': [
    created,
    added(BEGUN),
    part(),
    says('Hel'),
    added(CALLED, 1),
    input(ARGS, 1),
    says('lo'),
    done(HELLO),
    done(CALL, 1),
    completed(HELLO, CALL),
    '[DONE]',
  ],
  'an answer that a limit cut off': [
    created,
    ...TEXT.slice(0, 3),
    done(message('Hel', { status: 'incomplete' })),
    event('incomplete', {
      response: response('incomplete', [message('Hel', { status: 'incomplete' })]),
    }),
  ],
};

const sse = (events: readonly Event[]) =>
  events
    .map((one, i) =>
      one === '[DONE]'
        ? 'data: [DONE]\n\n'
        : `event: ${one.type}\ndata: ${JSON.stringify({ type: one.type, sequence_number: i, ...one })}\n\n`,
    )
    .join('');
const pieces = (text: string, size: number) =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
    text.slice(i * size, (i + 1) * size),
  );

const TOOLS = [{ type: 'function', name: 'run', parameters: { type: 'object' }, strict: false }];
/** With and without a feature that reads the answer. */
const WAYS = { forwarded: [], read: [leakedCalls(() => {})] };

async function through(
  events: readonly Event[],
  size: number,
  way: keyof typeof WAYS,
  profile = 'none',
) {
  const script = [{ sse: pieces(sse(events), size) }];
  const gateway = scriptedGateway('openai-responses', script, WAYS[way], '', { profile });
  const asked = { model: 'm', input: 'hi', stream: true, tools: TOOLS };
  const { text, reset } = await gateway.ask('openai-responses', asked);
  expect(reset).toBe(false);
  return { text, notes: gateway.summaries[0]?.notes.map(({ name }) => name) };
}

/** What clients go by: official helpers by each event, Codex by finished items, others by the last event. */
async function read(text: string) {
  const answer = new Response(text, { headers: { 'content-type': 'text/event-stream' } });
  const client = new OpenAI({ apiKey: 'x', fetch: () => Promise.resolve(answer) });
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  const stream = client.responses.stream({ model: 'm', input: 'hi' });
  for await (const one of stream) events.push(one as OpenAI.Responses.ResponseStreamEvent);
  const last = events.at(-1);
  const items = events.filter((one) => one.type === 'response.output_item.done');
  const begun = events.filter((one) => one.type === 'response.output_item.added');
  return {
    thoughts: events
      .map((one) =>
        one.type === 'response.reasoning_text.delta' ||
        one.type === 'response.reasoning_summary_text.delta'
          ? one.delta
          : '',
      )
      .join(''),
    deltas: events
      .map((one) => (one.type === 'response.output_text.delta' ? one.delta : ''))
      .join(''),
    begun: begun.map(({ output_index, item }) => [output_index, item.id]),
    items: items.map(({ item }) => item),
    ended: items.map(({ output_index, item }) => [output_index, item.id]),
    output: last?.type === 'response.completed' ? last.response.output : last,
    // The end that stands in for a lost one has none.
    numbers: events.flatMap((one) => one.sequence_number ?? []),
  };
}

test.each(['openai', 'azure-responses'])(
  'what %s streams is not looked through, even for what is wrong elsewhere',
  async (profile) => {
    const [, events] = Object.entries(WRONG_TEXTS)[0]!;
    const seen = await through(events, 7, 'forwarded', profile);
    expect(seen).toEqual({ text: sse(events), notes: [] });
  },
);

for (const way of ['forwarded', 'read'] as const) {
  describe(`${way}`, () => {
    test.each(Object.entries(WRONG_TEXTS))('text with %s', async (_, events) => {
      for (const size of [1, 50, 10_000]) {
        const { text, notes } = await through(events, size, way);
        const got = await read(text);
        expect(got.deltas).toBe('Hello');
        expect(got.items).toMatchObject([{ content: [{ text: 'Hello' }] }]);
        expect(got.output).toMatchObject([{ id: 'msg_1', content: [{ text: 'Hello' }] }]);
        expect(got.ended).toEqual([[0, 'msg_1']]);
        expect(got.begun).toEqual(got.ended);
        expect(got.numbers).toEqual(got.numbers.map((_, i) => i));
        expect(notes).toContain('stream_mended');
      }
    });

    test.each(Object.entries(WRONG_THOUGHTS))('a thought with %s', async (_, events) => {
      for (const size of [1, 50, 10_000]) {
        const { text, notes } = await through(events, size, way);
        const got = await read(text);
        expect([got.thoughts, got.deltas]).toEqual(['hm', 'Hello']);
        expect(got.ended).toEqual([
          [0, 'rs_1'],
          [1, expect.stringMatching(/^msg_/)],
        ]);
        expect(got.begun).toEqual(got.ended);
        expect(notes).toContain('stream_mended');
      }
    });

    test.each(Object.entries(WRONG_CALLS))('a call with %s', async (_, events) => {
      for (const size of [1, 50, 10_000]) {
        const { text, notes } = await through(events, size, way);
        const got = await read(text);
        const call_id = expect.stringMatching(/^(call|fc)_1$/);
        const wanted = [{ call_id, name: 'run', arguments: ARGS }];
        expect(got.items).toMatchObject(wanted);
        expect(got.output).toMatchObject(wanted);
        expect(got.ended).toEqual([[0, expect.stringMatching(/^fc_/)]]);
        expect(got.begun).toEqual(got.ended);
        expect(notes).toContain('stream_mended');
      }
    });

    test.each(Object.entries(RIGHT))(
      '%s that is right: the bytes are the vendor’s',
      async (_, events) => {
        for (const size of [1, 50, 10_000]) {
          const { text, notes } = await through(events, size, way);
          expect(text).toBe(sse(events));
          expect(notes).toEqual([]);
        }
      },
    );
  });
}

test('a text whose fault comes in its middle is whole in the finished item', async () => {
  const late = { ...says('\n"lo"'), content_index: 1 };
  const events = [created, added(BEGUN), part(), says('Hel\n'), says('中'), late, completed()];
  const { text } = await through(events, 50, 'forwarded');
  const { output } = await read(text);
  expect(output).toMatchObject([{ content: [{ text: 'Hel\n中\n"lo"' }] }]);
});

test.each(['failed', 'cancelled'])(
  'an end that says completed of a response that is %s',
  async (status) => {
    const failed = { ...response(status, []), error: { code: 'server_error', message: 'boom' } };
    const events = [created, ...TEXT, event('completed', { response: failed })];
    const { text } = await through(events, 50, 'forwarded');
    expect(text).toContain('event: response.failed\ndata: {"type":"response.failed"');
    expect(text).not.toContain('response.completed');
  },
);

describe('clients of other protocols', () => {
  const ASKED: Readonly<Record<string, JsonObject>> = {
    'anthropic-messages': { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
    'openai-chat': { messages: [{ role: 'user', content: 'hi' }] },
    'google-gemini': { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  };
  const told = async (client: string, events: readonly Event[]) => {
    const gateway = scriptedGateway('openai-responses', [{ sse: [sse(events)] }]);
    const asked = { model: 'm', stream: true, ...ASKED[client] };
    return (await gateway.ask(client as ProtocolName, asked)).text;
  };
  const words = (text: string) =>
    [...text.matchAll(/"(?:text|content|partial_json|arguments|cmd)":"((?:[^"\\]|\\.)*)"/g)]
      .map(([, word]) => word)
      .join('');
  for (const [kind, table] of [
    ['text', WRONG_TEXTS],
    ['a call', WRONG_CALLS],
  ] as const) {
    for (const client of Object.keys(ASKED)) {
      test.each(Object.entries(table))(`${client}: ${kind} with %s`, async (_, events) => {
        const right = await told(client, RIGHT[kind]!);
        const got = await told(client, events);
        expect(words(got)).toBe(words(right));
        // Only a response that says its id gives it to the client.
        const hasId = JSON.stringify(events[0]).includes('"resp_1"');
        const end = (text: string) =>
          (hasId ? text : text.replaceAll(/"responseId":"[^"]*"/g, '')).slice(-40);
        expect(end(got)).toBe(end(right));
      });
    }
  }
});

/** Calls in a form that clients of the vendor's own protocol cannot use are rewritten; all others keep their bytes. */

import { describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { scriptedGateway } from '../scripted.ts';
import { WAYS } from './ways.ts';

const SCHEMA = { type: 'object', properties: { a: { type: 'integer' } } };
const CHAT = {
  model: 'm',
  messages: [{ role: 'user', content: 'hi' }],
  tools: [{ type: 'function', function: { name: 'run', parameters: SCHEMA } }],
};
const RESPONSES = {
  model: 'm',
  input: 'hi',
  tools: [
    { type: 'custom', name: 'apply_patch' },
    { type: 'function', name: 'run', parameters: SCHEMA },
  ],
};

const sse = (values: readonly object[], named = false) =>
  values
    .map((value) => {
      const event = named ? `event: ${(value as JsonObject).type}\n` : '';
      return `${event}data: ${JSON.stringify(value)}\n\n`;
    })
    .join('');

/** What the client reads of a stream. */
const read = (text: string): readonly JsonObject[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)));

interface Piece {
  readonly index?: number;
  readonly id?: string;
  readonly type?: undefined;
  readonly function?: { readonly name?: string; readonly arguments?: unknown };
}
const chunk = (delta: object, finish: string | null = null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const chatStream = (pieces: readonly object[]) =>
  `${sse([
    chunk({ role: 'assistant', content: 'So.' }),
    ...pieces.map((piece) => chunk({ tool_calls: [{ type: 'function', ...piece }] })),
    chunk({}, 'tool_calls'),
  ])}data: [DONE]\n\n`;

/** The calls as the official SDKs put them together: by index. */
function joined(text: string) {
  const calls: { id: string; name: string; arguments: string }[] = [];
  for (const value of read(text)) {
    const { choices } = value as unknown as {
      choices: readonly { delta: { tool_calls?: Piece[] } }[];
    };
    for (const piece of choices[0]?.delta.tool_calls ?? []) {
      expect(typeof piece.index).toBe('number');
      calls[piece.index!] ??= { id: '', name: '', arguments: '' };
      const call = calls[piece.index!]!;
      call.id += piece.id ?? '';
      call.name += piece.function?.name ?? '';
      call.arguments += piece.function?.arguments ?? '';
      expect(typeof (piece.function?.arguments ?? '')).toBe('string');
    }
  }
  return calls;
}

const named = (args: unknown) => ({ name: 'run', arguments: args });
const ODD: Readonly<Record<string, readonly Piece[]>> = {
  'no id': [{ index: 0, function: named('{"a":1}') }],
  'an empty id': [{ index: 0, id: '', function: named('{"a":1}') }],
  'no index': [{ id: 'x', function: named('{"a":1}') }],
  // Mistral.
  'no type': [{ index: 0, id: 'x', type: undefined, function: named('{"a":1}') }],
  'neither, in pieces': [{ function: named('{"a"') }, { function: { arguments: ':1}' } }],
  'arguments as an object': [{ index: 0, id: 'x', function: named({ a: 1 }) }],
  'every call has the index 0': [
    { index: 0, id: 'x', function: named('{"a":1}') },
    { index: 0, id: 'y', function: named('{"a":1}') },
  ],
  'two calls with one id': [
    { index: 0, id: 'x', function: named('{"a":1}') },
    { index: 1, id: 'x', function: named('{"a":1}') },
  ],
};

/** One call, whose later pieces repeat what clients append (github.com/AstrBotDevs/AstrBot/pull/7765). */
const REPEATED: Readonly<Record<string, readonly Piece[]>> = {
  'id and name in each piece': [
    { index: 0, id: 'x', function: named('{"a"') },
    { index: 0, id: 'x', function: named(':1') },
    { index: 0, id: 'x', function: named('}') },
  ],
  'the id alone': [
    { index: 0, id: 'x', function: named('{"a"') },
    { index: 0, id: 'x', function: { arguments: ':1}' } },
  ],
  'the name alone': [
    { index: 0, id: 'x', function: named('{"a"') },
    { index: 0, function: named(':1}') },
  ],
  'a last piece without arguments': [
    { index: 0, id: 'x', function: named('{"a":1}') },
    { index: 0, id: 'x', function: named('') },
  ],
};

/** One call, whose later pieces take its name or type back. */
const UNSAID: Readonly<Record<string, readonly object[]>> = {
  'an empty name': [
    { index: 0, id: 'x', function: named('') },
    { index: 0, id: '', function: { name: '', arguments: '{"a":1}' } },
  ],
  'a name of null': [
    { index: 0, id: 'x', function: named('') },
    { index: 0, function: { name: null, arguments: '{"a":1}' } },
  ],
  'an empty type': [
    { index: 0, id: 'x', function: named('') },
    { index: 0, type: '', function: { arguments: '{"a":1}' } },
  ],
  'a type of null': [
    { index: 0, id: 'x', function: named('') },
    { index: 0, type: null, function: { arguments: '{"a":1}' } },
  ],
};
const STRICT = CHAT.tools.map((tool) => ({
  type: 'function' as const,
  function: { ...tool.function, strict: true },
}));

/** The calls as OpenAI's own client reads them where a tool is strict, or what it throws. */
const strictly = (text: string) => {
  const answer = new Response(text, { headers: { 'content-type': 'text/event-stream' } });
  const client = new OpenAI({ apiKey: 'x', fetch: () => Promise.resolve(answer) });
  return client.chat.completions
    .stream({ model: 'm', messages: [{ role: 'user', content: 'hi' }], tools: STRICT })
    .finalChatCompletion()
    .then(
      ({ choices }) => choices[0]?.message.tool_calls,
      (error: Error) => error.message,
    );
};

/** One call, whose pieces are counted as calls of their own, or bring its name in parts. */
const IN_PARTS: Readonly<Record<string, readonly Piece[]>> = {
  // https://github.com/continuedev/continue/pull/5849
  'the name in two pieces': [
    { index: 0, id: 'x', function: { name: 'r', arguments: '' } },
    { index: 0, function: { name: 'un', arguments: '' } },
    { index: 0, function: { arguments: '{"a":1}' } },
  ],
  'the name in two pieces, the second with arguments': [
    { index: 0, id: 'x', function: { name: 'ru', arguments: '' } },
    { index: 0, function: { name: 'n', arguments: '{"a":1}' } },
  ],
  'the name in two pieces, the id in each': [
    { index: 0, id: 'x', function: { name: 'r', arguments: '' } },
    { index: 0, id: 'x', function: { name: 'un', arguments: '' } },
    { index: 0, id: 'x', function: { arguments: '{"a":1}' } },
  ],
  'the name in two pieces, without an index': [
    { id: 'x', function: { name: 'r', arguments: '' } },
    { id: 'x', function: { name: 'un', arguments: '{"a":1}' } },
  ],
  // https://github.com/NousResearch/hermes-agent/issues/5254
  'an id for each piece': [
    { id: 'x', function: named('') },
    { id: 'y', function: { name: '', arguments: '{"a"' } },
    { id: 'z', function: { name: '', arguments: ':1}' } },
  ],
  'an id and an index for each piece': [
    { index: 0, id: 'x', function: named('') },
    { index: 1, id: 'y', function: { arguments: '{"a"' } },
    { index: 2, id: 'z', function: { arguments: ':1}' } },
  ],
};

describe.each(WAYS)('%s', (_, FEATURES) => {
  describe('Chat to Chat', () => {
    test.each(Object.entries(IN_PARTS))('streamed in parts, %s: one call', async (_, pieces) => {
      const gateway = scriptedGateway('openai-chat', [{ sse: [chatStream(pieces)] }], FEATURES);
      const { text } = await gateway.ask('openai-chat', { ...CHAT, stream: true });
      expect(joined(text)).toEqual([{ id: 'x', name: 'run', arguments: '{"a":1}' }]);
    });

    test.each(Object.entries(REPEATED))('streamed: repeated: %s', async (_, pieces) => {
      const gateway = scriptedGateway('openai-chat', [{ sse: [chatStream(pieces)] }], FEATURES);
      const { text } = await gateway.ask('openai-chat', { ...CHAT, stream: true });
      expect(joined(text)).toEqual([{ id: 'x', name: 'run', arguments: '{"a":1}' }]);
      expect(gateway.summaries[0]?.notes.map(({ name }) => name)).toContain('tool_call_rewritten');
    });

    for (const [name, pieces] of Object.entries(ODD)) {
      test(`streamed: ${name}`, async () => {
        const gateway = scriptedGateway('openai-chat', [{ sse: [chatStream(pieces)] }], FEATURES);
        const { status, text } = await gateway.ask('openai-chat', { ...CHAT, stream: true });
        expect(status).toBe(200);
        const calls = joined(text);
        const count = pieces.filter((piece) => piece.function?.name !== undefined).length;
        expect(await strictly(text)).toMatchObject(calls.map(() => ({ type: 'function' })));
        expect(calls.map((call) => [call.name, JSON.parse(call.arguments)])).toEqual(
          Array.from({ length: count }, () => ['run', { a: 1 }]),
        );
        expect(new Set(calls.map(({ id }) => id)).size).toBe(count);
        expect(calls.every(({ id }) => id !== '')).toBe(true);
        expect(gateway.summaries[0]?.notes.map(({ name }) => name)).toContain(
          'tool_call_rewritten',
        );
      });
    }

    const whole = (calls: readonly object[]) => ({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: null, tool_calls: calls },
          finish_reason: 'tool_calls',
        },
      ],
    });
    const WHOLE: Readonly<Record<string, readonly object[]>> = {
      'no id': [{ type: 'function', function: named('{"a":1}') }],
      'no type': [{ id: 'x', function: named('{"a":1}') }],
      'arguments as an object': [{ type: 'function', id: 'x', function: named({ a: 1 }) }],
      'two calls with one id': [
        { type: 'function', id: 'x', function: named('{"a":1}') },
        { type: 'function', id: 'x', function: named('{"a":1}') },
      ],
    };
    for (const [name, given] of Object.entries(WHOLE)) {
      test(`whole: ${name}`, async () => {
        const gateway = scriptedGateway('openai-chat', [{ json: whole(given) }], FEATURES);
        const { text } = await gateway.ask('openai-chat', CHAT);
        const calls = JSON.parse(text).choices[0].message.tool_calls as (Piece & { id: string })[];
        expect(calls.map((call) => call.function?.arguments)).toEqual(given.map(() => '{"a":1}'));
        expect(calls.map(({ type }) => type as unknown)).toEqual(given.map(() => 'function'));
        expect(new Set(calls.map(({ id }) => id || undefined)).size).toBe(given.length);
        expect(gateway.summaries[0]?.notes.map(({ name }) => name)).toContain(
          'tool_call_rewritten',
        );
      });
    }

    for (const [name, pieces] of Object.entries(UNSAID)) {
      test(`streamed, with a strict tool: ${name}`, async () => {
        const given = chatStream(pieces);
        expect(await strictly(given)).toBe(
          'Chat completion stream contains a changed tool call identity',
        );
        const gateway = scriptedGateway(
          'openai-chat',
          [{ sse: [given] }, { sse: [given] }],
          FEATURES,
        );
        const { text } = await gateway.ask('openai-chat', { ...CHAT, stream: true, tools: STRICT });
        expect(await strictly(text)).toMatchObject([
          { id: 'x', type: 'function', function: { name: 'run', arguments: '{"a":1}' } },
        ]);
        const loose = await gateway.ask('openai-chat', { ...CHAT, stream: true });
        expect(loose.text).toBe(given);
      });
    }

    test('usual calls keep their bytes', async () => {
      const usual = chatStream([
        // Anthropic's endpoint counts from 1.
        { index: 1, id: 'x', function: named('') },
        { index: 1, function: { arguments: '{"a":1}' } },
        { index: 2, id: 'y', function: named('{"a":2}') },
      ]);
      const gateway = scriptedGateway(
        'openai-chat',
        [{ sse: [usual] }, { json: whole([{ id: 'x', type: 'function', function: named('{}') }]) }],
        FEATURES,
      );
      const asked = await gateway.ask('openai-chat', { ...CHAT, stream: true });
      expect(asked.text).toBe(usual);
      const once = await gateway.ask('openai-chat', CHAT);
      expect(JSON.parse(once.text)).toEqual(
        whole([{ id: 'x', type: 'function', function: named('{}') }]),
      );
      expect(gateway.summaries.flatMap(({ notes }) => notes)).toEqual([]);
    });
  });

  const PATCH = '*** Begin Patch\n*** End Patch';
  const item = (name: string, args: string) => ({
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name,
    arguments: args,
    status: 'completed',
  });
  const response = (output: readonly object[]) => ({
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'm',
    status: 'completed',
    output,
  });
  const responsesStream = (call: ReturnType<typeof item>) =>
    sse(
      [
        { type: 'response.created', sequence_number: 0, response: response([]) },
        {
          type: 'response.output_item.added',
          sequence_number: 1,
          output_index: 0,
          item: { ...call, arguments: '', status: 'in_progress' },
        },
        {
          type: 'response.function_call_arguments.delta',
          sequence_number: 2,
          output_index: 0,
          item_id: 'fc_1',
          delta: call.arguments,
        },
        { type: 'response.output_item.done', sequence_number: 3, output_index: 0, item: call },
        { type: 'response.completed', sequence_number: 4, response: response([call]) },
      ],
      true,
    );

  describe('Responses to Responses: a function call for a freeform tool', () => {
    for (const args of [JSON.stringify({ input: PATCH }), JSON.stringify({ patch: PATCH })]) {
      const call = item('apply_patch', args);
      const wanted = {
        type: 'custom_tool_call',
        call_id: 'call_1',
        name: 'apply_patch',
        input: PATCH,
      };

      test(`whole: ${args}`, async () => {
        const gateway = scriptedGateway('openai-responses', [{ json: response([call]) }], FEATURES);
        const { text } = await gateway.ask('openai-responses', RESPONSES);
        expect(JSON.parse(text).output).toEqual([expect.objectContaining(wanted)]);
        expect(gateway.summaries[0]?.notes.map(({ name }) => name)).toEqual([
          'tool_call_rewritten',
        ]);
      });

      test(`streamed: ${args}`, async () => {
        const script = [{ sse: [responsesStream(call)] }];
        const gateway = scriptedGateway('openai-responses', script, FEATURES);
        const { text } = await gateway.ask('openai-responses', { ...RESPONSES, stream: true });
        const events = read(text);
        const done = events.find(({ type }) => type === 'response.output_item.done');
        expect(done?.item).toEqual(expect.objectContaining(wanted));
        const last = events.at(-1) as { response: { output: readonly object[] } };
        expect(last.response.output).toEqual([expect.objectContaining(wanted)]);
        expect(text).not.toContain('function_call_arguments');
      });
    }

    test('a call of a function keeps its bytes', async () => {
      const usual = responsesStream(item('run', '{"a":1}'));
      const gateway = scriptedGateway('openai-responses', [{ sse: [usual] }], FEATURES);
      const { text } = await gateway.ask('openai-responses', { ...RESPONSES, stream: true });
      expect(text).toBe(usual);
    });
  });

  // https://github.com/inflaborg/ccrelay/pull/119: Claude Code takes the input from deltas alone.
  describe('Messages to Messages: the input in the start of the block', () => {
    const MESSAGES = {
      model: 'm',
      max_tokens: 9,
      stream: true,
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ name: 'run', input_schema: SCHEMA }],
    };
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      usage,
    };
    const stream = (input: object, ...deltas: readonly string[]) =>
      sse(
        [
          {
            type: 'message_start',
            message: { ...message, stop_reason: null, stop_sequence: null },
          },
          {
            type: 'content_block_start',
            index: 0,
            content_block: { type: 'tool_use', id: 'toolu_1', name: 'run', input },
          },
          ...deltas.map((partial_json) => ({
            type: 'content_block_delta',
            index: 0,
            delta: { type: 'input_json_delta', partial_json },
          })),
          { type: 'content_block_stop', index: 0 },
          {
            type: 'message_delta',
            delta: { stop_reason: 'tool_use', stop_sequence: null },
            usage: { output_tokens: 2 },
          },
          { type: 'message_stop' },
        ],
        true,
      );
    const inputs = (text: string) =>
      read(text).flatMap(({ delta, content_block: block }) => [
        ...((delta as JsonObject | undefined)?.partial_json === undefined
          ? []
          : [(delta as JsonObject).partial_json]),
        ...(block === undefined ? [] : [(block as JsonObject).input]),
      ]);

    test.each([
      ['alone', stream({ a: 1 })],
      ['and in a delta', stream({ a: 1 }, '{"a":1}')],
    ])('%s', async (_, given) => {
      const gateway = scriptedGateway('anthropic-messages', [{ sse: [given] }], FEATURES);
      const { text } = await gateway.ask('anthropic-messages', MESSAGES);
      expect(inputs(text)).toEqual([{}, '{"a":1}']);
      expect(gateway.summaries[0]?.notes.map(({ name }) => name)).toEqual(['tool_call_rewritten']);
    });

    test('usual calls keep their bytes', async () => {
      const given = stream({}, '', '{"a"', ':1}');
      const gateway = scriptedGateway('anthropic-messages', [{ sse: [given] }], FEATURES);
      expect((await gateway.ask('anthropic-messages', MESSAGES)).text).toBe(given);
    });
  });
});

/** Vendors that use an id again in every answer: clients can tell the calls apart, and the vendor gets its own ids. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { CODECS } from '../../../src/app/codecs.ts';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { ReplyBuilder, replyEvents } from '../../../src/conversation/reply-builder.ts';
import type { Target } from '../../../src/conversation/target.ts';
import {
  unwrapCallId,
  unwrapRepeatedId,
  wrapCallId,
  wrapRepeatedId,
} from '../../../src/conversation/tools/call-ids.ts';
import type { Conversation, ProtocolName } from '../../../src/conversation/types.ts';
import { uniqueCallIds, vendorCallIds } from '../../../src/features/call-ids/index.ts';
import type { FeatureContext } from '../../../src/features/feature.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { eventsOf, play } from '../leaked-calls/transcript.ts';

// Kimi K2 and K3 count from 0 in every answer: https://github.com/MoonshotAI/Kimi-K2/blob/main/docs/tool_call_guidance.md
const KIMI = 'functions.list_dir:0';
const SCHEMA = { type: 'object', properties: { path: { type: 'string' } } };

const ids = fc.oneof(
  fc.constantFrom(KIMI, 'call_0', '调用', 'toolu_hg1_x', wrapCallId(KIMI), wrapRepeatedId('a', 3)),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
);

test('a wrapped id gives its id back, for every id and count, and differs from all others', () => {
  const count = fc.nat(1_000_000);
  fc.assert(
    fc.property(ids, count, ids, count, (a, i, b, j) => {
      const wrapped = wrapRepeatedId(a, i);
      expect(unwrapRepeatedId(wrapped)).toBe(a);
      expect(unwrapRepeatedId(wrapRepeatedId(wrapped, j))).toBe(wrapped);
      expect(wrapped === wrapRepeatedId(b, j)).toBe(a === b && i === j);
      // Messages takes it as it is, in both directions.
      expect(wrapCallId(wrapped)).toBe(wrapped);
      expect(unwrapCallId(wrapped)).toBe(wrapped);
      expect(unwrapCallId(wrapCallId(a))).toBe(a);
    }),
  );
});

test('ids that are no wrapped ones stay', () => {
  for (const id of [
    '',
    KIMI,
    'toolu_hg2_',
    'toolu_hg2_1_',
    'toolu_hg2_01_YQ',
    'toolu_hg2_1_Y!',
    'toolu_hg2_x_YQ',
    'toolu_hg2_1_YR',
  ])
    expect(unwrapRepeatedId(id)).toBe(id);
});

/** A client that runs `list_dir` again and again: its next body, and the ids of the calls in an answer. */
interface Client {
  body(): JsonObject;
  /** Takes an answer, and adds it and the results of its calls to the history. */
  take(answer: JsonObject): readonly string[];
}

const objects = (value: Json | undefined) => (value ?? []) as readonly JsonObject[];

const CLIENTS: Readonly<Record<ProtocolName, () => Client>> = {
  'anthropic-messages'() {
    const messages: JsonObject[] = [{ role: 'user', content: 'go' }];
    return {
      body: () => ({
        model: 'm',
        max_tokens: 99,
        messages,
        tools: [{ name: 'list_dir', input_schema: SCHEMA }],
      }),
      take({ content }) {
        const calls = objects(content).filter(({ type }) => type === 'tool_use');
        messages.push({ role: 'assistant', content });
        const results = calls.map(({ id }) => ({
          type: 'tool_result',
          tool_use_id: id,
          content: `R ${id}`,
        }));
        messages.push({ role: 'user', content: results as Json });
        return calls.map(({ id }) => String(id));
      },
    };
  },
  'openai-chat'() {
    const messages: JsonObject[] = [{ role: 'user', content: 'go' }];
    return {
      body: () => ({
        model: 'm',
        messages,
        tools: [{ type: 'function', function: { name: 'list_dir', parameters: SCHEMA } }],
      }),
      take({ choices }) {
        const message = objects(choices)[0]!.message as JsonObject;
        const calls = objects(message.tool_calls);
        messages.push(message);
        for (const { id } of calls)
          messages.push({ role: 'tool', tool_call_id: id, content: `R ${id}` });
        return calls.map(({ id }) => String(id));
      },
    };
  },
  'openai-responses'() {
    const input: JsonObject[] = [{ role: 'user', content: 'go' }];
    return {
      body: () => ({
        model: 'm',
        input,
        store: false,
        tools: [{ type: 'function', name: 'list_dir', parameters: SCHEMA }],
      }),
      take({ output }) {
        const calls = objects(output).filter(({ type }) => type === 'function_call');
        input.push(...objects(output));
        for (const { call_id } of calls)
          input.push({ type: 'function_call_output', call_id, output: `R ${call_id}` });
        return calls.map(({ call_id }) => String(call_id));
      },
    };
  },
  'google-gemini'() {
    const contents: JsonObject[] = [{ role: 'user', parts: [{ text: 'go' }] }];
    return {
      body: () => ({
        model: 'm',
        contents,
        tools: [{ functionDeclarations: [{ name: 'list_dir', parametersJsonSchema: SCHEMA }] }],
      }),
      take({ candidates }) {
        const content = objects(candidates)[0]!.content as JsonObject;
        const calls = objects(content.parts).flatMap(({ functionCall }) =>
          functionCall === undefined ? [] : [functionCall as JsonObject],
        );
        contents.push(content);
        const parts = calls.map(({ id, name }) => ({
          functionResponse: { id, name, response: { output: `R ${id}` } },
        }));
        contents.push({ role: 'user', parts: parts as Json });
        return calls.map(({ id }) => String(id));
      },
    };
  },
};

/** A vendor's answer with calls of these ids. */
const ANSWERS: Readonly<
  Record<ProtocolName, (ids: readonly string[], turn: number) => JsonObject>
> = {
  'anthropic-messages': (given, turn) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: given.map((id, i) => ({
      type: 'tool_use',
      id,
      name: 'list_dir',
      input: { path: `${turn}.${i}` },
    })),
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  }),
  'openai-chat': (given, turn) => ({
    id: 'c',
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, tool_calls: callsOf(given, turn) as Json },
        finish_reason: 'tool_calls',
      },
    ],
  }),
  'openai-responses': (given, turn) => ({
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    model: 'm',
    output: given.map((call_id, i) => ({
      type: 'function_call',
      id: `fc_${turn}_${i}`,
      call_id,
      name: 'list_dir',
      arguments: `{"path":"${turn}.${i}"}`,
      status: 'completed',
    })),
  }),
  'google-gemini': (given, turn) => ({
    responseId: 'r',
    candidates: [
      {
        index: 0,
        content: {
          role: 'model',
          parts: given.map((id, i) => ({
            functionCall: { id, name: 'list_dir', args: { path: `${turn}.${i}` } },
          })),
        },
        finishReason: 'STOP',
      },
    ],
  }),
};

const callsOf = (given: readonly string[], turn: number): readonly JsonObject[] =>
  given.map((id, i) => ({
    index: i,
    id,
    type: 'function',
    function: { name: 'list_dir', arguments: `{"path":"${turn}.${i}"}` },
  }));

/** The Chat answer as a stream. */
const framesOf = (given: readonly string[], turn: number): readonly string[] => [
  ...callsOf(given, turn).map((call) =>
    JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta: { tool_calls: [call] } }] }),
  ),
  JSON.stringify({
    id: 'c',
    model: 'm',
    choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }],
  }),
  '[DONE]',
];

/** Each answer of a vendor as the client gets it; `sent` collects what the vendor was sent. */
function exchange(
  client: ProtocolName,
  vendor: ProtocolName,
  body: JsonObject,
  sent: JsonObject[],
) {
  const target: Target = { provider: 'p', model: 'm', protocol: vendor, profile: { name: 'none' } };
  const notes = new Notes();
  const context: FeatureContext = { target, client, notes, hop: 1 };
  const request = CODECS[client].decodeRequest(JSON.parse(JSON.stringify(body)) as Json);
  const known = vendorCallIds.request!(request, context);
  const paired = toolPairing.request!(known, context);
  sent.push(CODECS[vendor].encodeRequest(paired, target, notes));
  const interceptor = uniqueCallIds.intercept!(paired, context);
  const upstream = { sent: paired, target, notes };
  return {
    notes,
    request,
    answer(events: Iterable<StreamEvent>): JsonObject {
      const fold = new ReplyBuilder();
      for (const event of events) fold.push((interceptor?.event(event) ?? event) as StreamEvent);
      const from = { request, requestId: 'req_1_a', provider: 'p', notes };
      return CODECS[client].encodeReply(fold.reply, from);
    },
    whole: (given: readonly string[], turn: number) =>
      replyEvents(CODECS[vendor].decodeReply(ANSWERS[vendor](given, turn), upstream)),
    streamed(given: readonly string[], turn: number): StreamEvent[] {
      const decoder = CODECS[vendor].decodeStream(upstream);
      const frames = framesOf(given, turn).map((data) => ({ data, event: undefined }));
      return [...frames.flatMap((frame) => [...decoder.push(frame as never)]), ...decoder.end()];
    },
  };
}

/** The ids of calls and of results in a body, in order. */
function idsIn(body: JsonObject): readonly string[] {
  const found: string[] = [];
  JSON.stringify(body.messages ?? body.input ?? body.contents, (_key, value: Json) => {
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
    const one = value as JsonObject;
    const named = one.name === 'list_dir' || one.type === 'function';
    const id = one.call_id ?? one.tool_call_id ?? one.tool_use_id ?? (named ? one.id : undefined);
    if (typeof id === 'string') found.push(id);
    return value;
  });
  return found;
}

const PAIRS = (Object.keys(CLIENTS) as ProtocolName[]).flatMap((client) =>
  (Object.keys(ANSWERS) as ProtocolName[])
    .filter((vendor) => vendor !== client)
    .map((vendor) => [client, vendor] as const),
);

describe.each(PAIRS)('%s client, %s vendor', (client, vendor) => {
  const forms = vendor === 'openai-chat' ? (['whole', 'streamed'] as const) : (['whole'] as const);
  for (const form of forms) {
    // Messages accepts no other characters, so its vendors do not write Kimi's ids.
    const base = vendor === 'anthropic-messages' ? 'list_dir_0' : KIMI;
    for (const given of [[base], [base, `${base.slice(0, -1)}1`]]) {
      test(`${given.length} a turn, ${form}: no id twice for the client, the vendor's own for the vendor`, () => {
        const side = CLIENTS[client]();
        const seen: string[] = [];
        const sent: JsonObject[] = [];
        for (let turn = 1; turn <= 5; turn++) {
          const one = exchange(client, vendor, side.body(), sent);
          seen.push(...side.take(one.answer(one[form](given, turn))));
          expect(one.notes.all.filter(({ name }) => name === 'call_id_repeated')).toHaveLength(
            turn === 1 ? 0 : given.length,
          );
        }
        exchange(client, vendor, side.body(), sent);
        expect(seen).toHaveLength(5 * given.length);
        expect(new Set(seen).size).toBe(seen.length);
        const last = idsIn(sent.at(-1)!);
        expect(last).toHaveLength(2 * seen.length);
        if (vendor === 'anthropic-messages') expect(new Set(last).size).toBe(seen.length);
        else expect(new Set(last)).toEqual(new Set(given));
        // The results stand where their calls do.
        const results = [...JSON.stringify(sent.at(-1)).matchAll(/"R ([^"\\]+)/g)];
        expect(results.map(([, id]) => id!)).toEqual(seen);
      });
    }
  }
});

test('a history whose beginning the client dropped gets no id twice', () => {
  const side = CLIENTS['openai-responses']();
  const sent: JsonObject[] = [];
  const turn = (body: JsonObject) => {
    const one = exchange('openai-responses', 'openai-chat', body, sent);
    return side.take(one.answer(one.whole([KIMI], 1)))[0]!;
  };
  const seen = [turn(side.body()), turn(side.body()), turn(side.body())];
  const body = side.body();
  const input = objects(body.input);
  for (const from of [3, 5]) {
    const kept = [input[0]!, ...input.slice(from)];
    const id = turn({ ...body, input: kept as Json });
    expect(JSON.stringify(kept)).not.toContain(`"${id}"`);
  }
  expect(new Set(seen).size).toBe(3);
});

test('in a hop behind server tools, whose history has the vendor’s ids, no id of the client comes again', () => {
  const side = CLIENTS['anthropic-messages']();
  const sent: JsonObject[] = [];
  const seen: string[] = [];
  for (let turn = 1; turn <= 3; turn++) {
    const one = exchange('anthropic-messages', 'openai-chat', side.body(), sent);
    seen.push(...side.take(one.answer(one.whole([KIMI], turn))));
  }
  const target: Target = {
    provider: 'p',
    model: 'm',
    protocol: 'openai-chat',
    profile: { name: 'none' },
  };
  const context = { target, client: 'anthropic-messages', notes: new Notes(), hop: 2 } as const;
  const unwrapped = CODECS['openai-chat'].decodeRequest(sent.at(-1)!);
  const head = {
    type: 'tool-call',
    id: KIMI,
    name: 'list_dir',
    kind: 'function',
    by: 'client',
  } as const;
  const event = uniqueCallIds.intercept!(unwrapped, context)!.event({
    type: 'block-start',
    index: 0,
    head,
  });
  const { id } = (event as { readonly head: typeof head }).head;
  expect(unwrapRepeatedId(id)).toBe(KIMI);
  expect([...seen, KIMI]).not.toContain(id);
});

test('an id that a vendor uses twice in one answer, and one that is an envelope already, come back unchanged or new', () => {
  const taken = wrapRepeatedId('x', 7);
  for (const client of ['anthropic-messages', 'openai-responses', 'google-gemini'] as const) {
    const side = CLIENTS[client]();
    const sent: JsonObject[] = [];
    const first = exchange(client, 'openai-chat', side.body(), sent);
    const seen = [...side.take(first.answer(first.whole([taken, KIMI, KIMI], 1)))];
    const second = exchange(client, 'openai-chat', side.body(), sent);
    seen.push(...side.take(second.answer(second.whole([taken, KIMI, KIMI], 2))));
    expect(new Set(seen).size).toBe(6);
    exchange(client, 'openai-chat', side.body(), sent);
    expect(idsIn(sent.at(-1)!).filter((id) => id === taken)).toHaveLength(4);
    expect(idsIn(sent.at(-1)!).filter((id) => id === KIMI)).toHaveLength(4);
  }
});

test('calls that a model writes as text get a new id each, whatever id stands in the text', () => {
  const text = `<|tool_calls_section_begin|><|tool_call_begin|>${KIMI}<|tool_call_argument_begin|>{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>`;
  const tools = [{ type: 'function', name: 'list_dir', schema: SCHEMA }] as const;
  const given = [1, 2, 3].map(() => play(eventsOf([{ text: [text] }]), { tools }).raw[0]!.id);
  expect(new Set(given).size).toBe(3);
});

test('two calls of one id that are open at once keep the ids that tell them apart', () => {
  const side = CLIENTS['openai-responses']();
  const wrapped = wrapRepeatedId(KIMI, 1);
  const call = (call_id: string) => ({
    type: 'function_call',
    call_id,
    name: 'list_dir',
    arguments: '{}',
  });
  const result = (call_id: string, output: string) => ({
    type: 'function_call_output',
    call_id,
    output,
  });
  const input = [
    ...objects(side.body().input),
    call(KIMI),
    call(wrapped),
    result(wrapped, 'second'),
    result(KIMI, 'first'),
  ];
  const sent: JsonObject[] = [];
  exchange('openai-responses', 'openai-chat', { ...side.body(), input: input as Json }, sent);
  const results = objects(sent[0]!.messages).filter(({ role }) => role === 'tool');
  const calls = objects(sent[0]!.messages).flatMap((one) => objects(one.tool_calls));
  expect(calls.map(({ id }) => String(id))).toEqual([KIMI, wrapped]);
  expect(Object.fromEntries(results.map((one) => [one.tool_call_id, one.content]))).toEqual({
    [KIMI]: 'first',
    [wrapped]: 'second',
  });
});

test('the same nodes come out for the same nodes, so that a session’s next turn finds them', () => {
  const side = CLIENTS['openai-responses']();
  const sent: JsonObject[] = [];
  for (let turn = 1; turn <= 3; turn++) {
    const one = exchange('openai-responses', 'openai-chat', side.body(), sent);
    side.take(one.answer(one.whole([KIMI], turn)));
  }
  const target: Target = {
    provider: 'p',
    model: 'm',
    protocol: 'openai-chat',
    profile: { name: 'none' },
  };
  const context = { target, client: 'openai-responses', notes: new Notes(), hop: 1 } as const;
  const history: Conversation = CODECS['openai-responses'].decodeRequest(side.body() as Json);
  const [a, b] = [0, 1].map(() => vendorCallIds.request!({ ...history }, context).turns);
  expect(a!.every((turn, at) => turn === b![at])).toBe(true);
  expect(a).not.toEqual(history.turns as never);
});

test('of a vendor that speaks the client’s protocol, ids stay', () => {
  const context = {
    target: { provider: 'p', model: 'm', protocol: 'openai-chat', profile: { name: 'none' } },
    client: 'openai-chat',
    notes: new Notes(),
    hop: 1,
  } as const;
  expect(uniqueCallIds.mayApply!(Buffer.from('"tools"'), context)).toBe(false);
  expect(vendorCallIds.mayApply!(Buffer.from('"tools"'), context)).toBe(false);
});

describe('the whole gateway', () => {
  const bodies: JsonObject[] = [];
  const vendor = Bun.serve({
    port: 0,
    async fetch(request) {
      const body = (await request.json()) as JsonObject;
      bodies.push(body);
      const turn = objects(body.messages).filter(({ role }) => role === 'assistant').length;
      if (body.stream !== true) return Response.json(ANSWERS['openai-chat']([KIMI], turn));
      const text = framesOf([KIMI], turn)
        .map((data) => `data: ${data}\n\n`)
        .join('');
      return new Response(text, { headers: { 'content-type': 'text/event-stream' } });
    },
  });
  let gateway: InProcess;
  beforeAll(async () => {
    gateway = await startInProcess({
      providers: {
        up: { protocol: 'openai-chat', base_url: vendor.url.origin, keys: ['sk'], models: ['m'] },
      },
      samples: { mode: 'off' },
    });
  });
  afterAll(async () => {
    await gateway?.stop();
    await vendor.stop(true);
  });

  const ID = /"(?:tool_use","id|call_id)":"([^"]+)"/g;
  for (const [client, path] of [
    ['anthropic-messages', '/v1/messages'],
    ['openai-responses', '/v1/responses'],
  ] as const) {
    for (const stream of [false, true]) {
      test(`${client}, ${stream ? 'streamed' : 'whole'}: four turns, four ids`, async () => {
        const side = CLIENTS[client]();
        const seen = new Set<string>();
        for (let turn = 1; turn <= 4; turn++) {
          const response = await fetch(`${gateway.url}${path}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ ...side.body(), stream }),
          });
          const text = await response.text();
          expect(response.status).toBe(200);
          const id = [...text.matchAll(ID)][0]![1]!;
          seen.add(id);
          side.take(
            client === 'anthropic-messages'
              ? {
                  content: [{ type: 'tool_use', id, name: 'list_dir', input: { path: `${turn}` } }],
                }
              : {
                  output: [
                    { type: 'function_call', call_id: id, name: 'list_dir', arguments: '{}' },
                  ],
                },
          );
        }
        expect(seen.size).toBe(4);
        expect(new Set(idsIn(bodies.at(-1)!))).toEqual(new Set([KIMI]));
      });
    }
  }
});

/** Encoding of Responses streams: event order, tool kinds and namespaces, seals and failures. */

import { describe, expect, test } from 'bun:test';
import { openaiResponses } from '../../../../src/codecs/openai-responses/index.ts';
import { GatewayError } from '../../../../src/conversation/errors.ts';
import type { BlockHead, StreamEvent } from '../../../../src/conversation/events.ts';
import { openSeal, SEAL_ENVELOPE_PREFIX, wrapUnsealed } from '../../../../src/conversation/seal.ts';
import { toolNames } from '../../../../src/conversation/tools/tool-names.ts';
import type { Sealed } from '../../../../src/conversation/types.ts';
import type { SseFrame } from '../../../../src/lib/bytes/sse.ts';
import type { JsonObject } from '../../../../src/lib/json/json.ts';
import { block, finish, PLAIN, SEALING, start, write } from '../builders.ts';
import { client, conversation } from '../material.ts';
import { readBySdk } from '../sdk.ts';
import { checkSkeleton, eventsOfText } from '../skeleton.ts';

const types = (sse: string) => eventsOfText(sse).map((e) => e.type.replace('response.', ''));
const output = (sse: string) => checkSkeleton(sse).output as readonly JsonObject[];

const TEXT: BlockHead = { type: 'text' };
const REASONING: BlockHead = { type: 'reasoning' };
const call = (name: string, more: object = {}): BlockHead => ({
  type: 'tool-call',
  id: 'call_1',
  name,
  kind: 'function',
  by: 'client',
  ...more,
});

describe('the structure of a stream', () => {
  test('a text stream has every event in order', () => {
    const sse = write([start, ...block(0, TEXT, 'Hel', 'lo "x"\n'), ...finish('stop')]);
    expect(types(sse)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]);
    expect(output(sse)).toEqual([
      {
        id: 'msg_1763474589000_abc123_0',
        type: 'message',
        status: 'completed',
        content: [{ type: 'output_text', annotations: [], logprobs: [], text: 'Hello "x"\n' }],
        role: 'assistant',
      },
    ]);
  });

  test('reasoning and a call come one after the other', () => {
    const sse = write([
      start,
      ...block(0, REASONING, 'a', { type: 'delta', text: 'b', newPart: true }),
      ...block(1, call('go'), '{"a"', ':1}'),
      ...finish('tool-calls'),
    ]);
    expect(types(sse)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ]);
    expect(output(sse).map((item) => item.type)).toEqual(['reasoning', 'function_call']);
  });

  test("the response repeats the request's settings, and has every key that the official type requires", () => {
    const body = {
      ...PLAIN,
      instructions: 'Be brief.',
      tools: [{ type: 'function', name: 'go', parameters: {}, strict: false }],
      tool_choice: 'required',
      temperature: 0.5,
      top_p: 0.9,
      parallel_tool_calls: false,
      text: { verbosity: 'low' },
      reasoning: { effort: 'high' },
      metadata: { a: 'b' },
      store: false,
      previous_response_id: 'resp_0',
      max_output_tokens: 99,
    };
    const usage = { input: 10, cacheRead: 5, output: 7, reasoning: 3 };
    const sse = write(
      [start, ...block(0, TEXT, 'x'), { type: 'usage', usage }, ...finish('stop')],
      body,
    );
    const last = checkSkeleton(sse);
    expect(last).toMatchObject({
      id: 'resp_1763474589000_abc123',
      object: 'response',
      created_at: 1763474589,
      model: 'vendor-model',
      error: null,
      incomplete_details: null,
      instructions: 'Be brief.',
      tools: body.tools,
      tool_choice: 'required',
      temperature: 0.5,
      top_p: 0.9,
      parallel_tool_calls: false,
      text: { format: { type: 'text' }, verbosity: 'low' },
      reasoning: { effort: 'high', summary: null },
      metadata: { a: 'b' },
      store: false,
      previous_response_id: 'resp_0',
      max_output_tokens: 99,
      usage: {
        input_tokens: 15,
        input_tokens_details: { cached_tokens: 5 },
        output_tokens: 10,
        output_tokens_details: { reasoning_tokens: 3 },
        total_tokens: 25,
      },
    });
  });

  test("an upstream's own response id stays, and item ids are short enough to be sent back", () => {
    const long = `resp_${'a'.repeat(200)}`;
    const last = checkSkeleton(
      write([{ type: 'start', id: long, model: 'm' }, ...block(0, TEXT, 'x'), ...finish('stop')]),
    );
    expect(last.id).toBe(long);
    const [item] = last.output as readonly { id: string }[];
    expect(item!.id.length).toBeLessThanOrEqual(64);
  });

  test('no text from an upstream can break out of its frame', () => {
    const wire = { protocol: 'openai-responses', value: { type: 'x', a: 1 } } as const;
    const sse = write([
      { type: 'start', id: 'resp_"},\n\ndata: 1', model: 'm' },
      { type: 'opaque', name: 'x\n\nevent: response.completed', wire },
      { type: 'opaque', name: 'codex.rate_limits', wire },
      ...block(0, TEXT, 'x'),
      ...finish('stop'),
    ]);
    checkSkeleton(sse);
    expect(types(sse)[2]).toBe('codex.rate_limits');
  });

  test('texts split by citations are parts of one message; sources of a whole part follow its text', () => {
    const citation = { url: 'https://a', title: 'A' };
    const sse = write([
      start,
      ...block(0, TEXT, 'plain '),
      ...block(1, TEXT, { type: 'citation', citation }, 'cited'),
      ...block(2, TEXT, 'x', { type: 'citation', citation: { ...citation, start: 0, end: 1 } }),
      ...finish('stop'),
    ]);
    const [item] = output(sse);
    expect(output(sse)).toHaveLength(1);
    expect(item!.content).toMatchObject([
      { text: 'plain ', annotations: [] },
      {
        text: 'cited',
        annotations: [{ type: 'url_citation', start_index: 0, end_index: 5, url: 'https://a' }],
      },
      { text: 'x', annotations: [{ start_index: 0, end_index: 1 }] },
    ]);
    const order = types(sse);
    expect(order.indexOf('output_text.annotation.added')).toBeGreaterThan(
      order.indexOf('output_text.delta'),
    );
  });

  test('log-probabilities arrive with a delta and appear in the part', () => {
    const content = [{ token: 'x', logprob: -0.1 }];
    const sse = write([
      start,
      ...block(0, TEXT, 'x', { type: 'logprobs', content }),
      ...finish('stop'),
    ]);
    expect(output(sse)[0]!.content).toMatchObject([{ text: 'x', logprobs: content }]);
    const deltas = eventsOfText(sse).filter((e) => e.type === 'response.output_text.delta');
    expect(deltas.map((e) => [e.delta, e.logprobs]) as unknown[]).toEqual([
      ['x', []],
      ['', content],
    ]);
  });

  test('a keep-alive is a comment, legal before the start', () => {
    const encoder = openaiResponses.encodeStream(client(conversation(PLAIN)));
    const sse = [
      encoder.ping(),
      encoder.event(start),
      encoder.ping(),
      ...finish('stop').map((event) => encoder.event(event)),
    ];
    expect(sse[0]).toStartWith(':');
    checkSkeleton(sse.slice(1).join(''));
  });

  test('in a long silence every fourth one is an event, as Codex reads no comments', () => {
    const encoder = openaiResponses.encodeStream(client(conversation(PLAIN)));
    const early = Array.from({ length: 9 }, () => encoder.ping());
    expect(early.every((ping) => ping.startsWith(':'))).toBe(true);
    const before = encoder.event(start);
    const silence = Array.from({ length: 8 }, () => encoder.ping());
    const events = silence.filter((ping) => !ping.startsWith(':'));
    expect(events.length).toBe(2);
    const rest = finish('stop').map((event) => encoder.event(event));
    const numbers = eventsOfText([before, ...silence, ...rest].join('')).map(
      ({ sequence_number: number }) => number,
    );
    expect(numbers).toEqual(numbers.map((_, i) => i));
    expect(eventsOfText(events.join('')).map(({ type }) => type)).toEqual([
      'keepalive',
      'keepalive',
    ]);
    expect(encoder.ping()).toStartWith(':');
  });

  test("behind a vendor's own frames it goes on in their numbers", () => {
    const encoder = openaiResponses.encodeStream(client(conversation(PLAIN)));
    const pings = Array.from({ length: 4 }, () => {
      encoder.follow!([{ event: 'x', data: '{"type":"x","sequence_number":7}' } as SseFrame]);
      return encoder.ping();
    });
    expect(pings.at(-1)).toBe(
      'event: keepalive\ndata: {"type":"keepalive","sequence_number":8}\n\n',
    );
  });
});

describe('calls keep the declared kind and namespace', () => {
  test.each([
    [
      'function',
      call('go', { namespace: 'ns' }),
      '{}',
      { type: 'function_call', name: 'go', namespace: 'ns', arguments: '{}', call_id: 'call_1' },
    ],
    [
      'custom',
      call('exec', { kind: 'custom', namespace: 'functions' }),
      'let x;',
      {
        type: 'custom_tool_call',
        name: 'exec',
        namespace: 'functions',
        input: 'let x;',
        call_id: 'call_1',
      },
    ],
    [
      'tool search',
      call('tool_search', { kind: 'tool-search' }),
      '{"query":"q"}',
      {
        type: 'tool_search_call',
        execution: 'client',
        call_id: 'call_1',
        arguments: { query: 'q' },
      },
    ],
  ] as const)('%s', (_, head, input, expected) => {
    const sse = write([start, ...block(0, head, input), ...finish('tool-calls')]);
    expect(output(sse)[0]).toMatchObject(expected);
    if ('namespace' in expected) {
      const first = eventsOfText(sse).find((e) => e.type === 'response.output_item.added');
      expect((first!.item as JsonObject).namespace).toBe(expected.namespace);
    }
  });

  test('missing arguments become an empty object, with a delta for it', () => {
    const sse = write([start, ...block(0, call('go')), ...finish('tool-calls')]);
    expect(output(sse)[0]!.arguments).toBe('{}');
    expect(types(sse)).toContain('function_call_arguments.delta');
  });

  test('a call without an id gets one, the same in added and done', () => {
    const sse = write([start, ...block(0, call('go', { id: '' }), '{}'), ...finish('tool-calls')]);
    expect(output(sse)[0]!.call_id).toStartWith('call_');
  });

  test("Codex's namespaced tools survive a flat vendor", () => {
    const request = conversation({
      ...PLAIN,
      input: [
        { type: 'message', role: 'user', content: 'hi' },
        {
          type: 'additional_tools',
          role: 'developer',
          tools: [
            {
              type: 'namespace',
              name: 'functions',
              tools: [
                { type: 'custom', name: 'exec' },
                { type: 'function', name: 'wait', parameters: {} },
              ],
            },
          ],
        },
      ],
      tools: [
        {
          type: 'namespace',
          name: 'multi_agent_v1',
          tools: [{ type: 'function', name: 'spawn_agent' }],
        },
      ],
    });
    const names = toolNames(request.tools, 64);
    const flat = ['multi_agent_v1__spawn_agent', 'functions__exec', 'functions__wait'];
    expect([
      names.flat('spawn_agent', 'multi_agent_v1'),
      names.flat('exec', 'functions'),
      names.flat('wait', 'functions'),
    ]).toEqual(flat);
    // The calls that a Chat decoder reads from the flat names, as a Responses client must get them.
    const events = flat.flatMap((name, i) =>
      block(i, { type: 'tool-call', id: `c${i}`, by: 'client', ...names.original(name) }, '{}'),
    );
    expect(output(write([start, ...events, ...finish('tool-calls')]))).toMatchObject([
      { type: 'function_call', namespace: 'multi_agent_v1', name: 'spawn_agent' },
      { type: 'custom_tool_call', namespace: 'functions', name: 'exec' },
      { type: 'function_call', namespace: 'functions', name: 'wait' },
    ]);
  });
});

describe('seals', () => {
  const sealed = (value: Partial<Sealed>): object => ({
    type: 'sealed',
    sealed: { protocol: 'openai-responses', kind: 'encrypted', value: 'gAAA', ...value },
  });
  const payload = (body: JsonObject, ...inner: readonly (string | object)[]) =>
    output(write([start, ...block(0, REASONING, ...inner), ...finish('stop')], body))[0]
      ?.encrypted_content;

  test("the vendor's own seal goes out unchanged", () => {
    expect(payload(SEALING, 'x', sealed({}))).toBe('gAAA');
  });

  test("another protocol's seal goes into an envelope that opens again", () => {
    const signature = {
      protocol: 'anthropic-messages',
      provider: 'claude',
      kind: 'signature',
      value: 'sig',
    } as const;
    const carried = payload(SEALING, 'x', sealed(signature)) as string;
    expect(openSeal(carried)).toEqual(signature);
  });

  test('unsealed reasoning gets an envelope that names its maker', () => {
    expect(payload(SEALING, 'x')).toBe(wrapUnsealed('openai-chat', 'vendor'));
  });

  test('a client that did not ask for seals gets none', () => {
    expect(payload(PLAIN, 'x', sealed({}))).toBeUndefined();
    expect(payload({ ...PLAIN, store: false }, 'x', sealed({}))).toBe('gAAA');
  });

  test('redacted thinking is an item without a summary, and none if it cannot be carried', () => {
    const redacted: BlockHead = {
      type: 'whole',
      block: {
        type: 'reasoning',
        text: '',
        sealed: { protocol: 'anthropic-messages', kind: 'redacted', value: 'data' },
      },
    };
    const events = [start, ...block(0, redacted), ...finish('stop')];
    expect(output(write(events, SEALING))[0]).toMatchObject({ type: 'reasoning', summary: [] });
    expect(output(write(events))).toEqual([]);
  });

  test('text and seal come back for the vendor that made them', () => {
    const [item] = output(
      write([start, ...block(0, REASONING, 'because'), ...finish('stop')], SEALING),
    );
    const { turns } = conversation({ model: 'm', input: [item!] });
    expect(turns[0]!.blocks[0]).toEqual({
      type: 'reasoning',
      text: 'because',
      sealed: { protocol: 'openai-chat', provider: 'vendor', kind: 'signature', value: '' },
    });
    expect(`${item!.encrypted_content}`).toStartWith(SEAL_ENVELOPE_PREFIX);
  });
});

describe('endings', () => {
  const end = (reason: Parameters<typeof finish>[0], ...blocks: StreamEvent[]) => {
    const { status, incomplete_details } = checkSkeleton(
      write([start, ...blocks, ...finish(reason)]),
    );
    return { status, reason: (incomplete_details as JsonObject | null)?.reason };
  };
  const refusal = block(0, { type: 'refusal' }, 'No.');

  test('every finish reason has its ending', () => {
    expect(end('stop')).toEqual({ status: 'completed', reason: undefined });
    expect(end('pause')).toEqual({ status: 'incomplete', reason: 'max_output_tokens' });
    expect(end('length')).toEqual({ status: 'incomplete', reason: 'max_output_tokens' });
    expect(end('content-filter')).toEqual({ status: 'incomplete', reason: 'content_filter' });
    expect(end('refusal', ...refusal)).toEqual({ status: 'completed', reason: undefined });
    expect(end('refusal')).toEqual({ status: 'incomplete', reason: 'content_filter' });
  });

  test('a refusal is a separate kind of part', () => {
    const sse = write([start, ...refusal, ...finish('refusal')]);
    expect(output(sse)[0]!.content).toEqual([{ type: 'refusal', refusal: 'No.' }]);
    expect(types(sse)).toContain('refusal.delta');
  });

  test.each([
    ['overloaded', 'server_error'],
    ['upstream', 'server_error'],
    ['internal', 'server_error'],
    ['timeout', 'server_error'],
    ['rate_limit', 'rate_limit_exceeded'],
    ['quota', 'insufficient_quota'],
    ['context_overflow', 'context_length_exceeded'],
    ['content_filter', 'invalid_prompt'],
  ] as const)('a %s failure becomes %s, never an overload', async (kind, code) => {
    const encoder = openaiResponses.encodeStream(client(conversation(PLAIN)));
    const error = new GatewayError(kind, 'It broke.', { code: 'server_is_overloaded' });
    const sse =
      [start, ...block(0, TEXT, 'half').slice(0, 2)].map((event) => encoder.event(event)).join('') +
      encoder.fail(error);
    const events = eventsOfText(sse);
    expect(events.at(-2)).toMatchObject({
      type: 'error',
      code,
      message: 'It broke.',
      param: null,
      error: { code, message: 'It broke.' },
    });
    expect(events.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code, message: 'It broke.' } },
    });
    expect(sse).not.toContain('server_is_overloaded');
    expect(encoder.event({ type: 'end' }) + encoder.fail(error)).toBe('');
    await expect(readBySdk(sse)).rejects.toThrow('It broke.');
  });

  test('a failure before any content still begins with response.created', () => {
    const encoder = openaiResponses.encodeStream(client(conversation(PLAIN)));
    const events = eventsOfText(encoder.fail(new GatewayError('upstream', 'No.')));
    expect(events.map((e) => e.type)).toEqual([
      'response.created',
      'response.in_progress',
      'error',
      'response.failed',
    ]);
    expect(events.map((e) => e.sequence_number) as number[]).toEqual([0, 1, 2, 3]);
  });
});

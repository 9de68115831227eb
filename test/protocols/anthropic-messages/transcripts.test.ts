/** Streams and replies that are out of the ordinary, told event by event. */

import { describe, expect, test } from 'bun:test';
import type { Reply, StreamEvent } from '../../../src/conversation/events.ts';
import { Fold, unfold } from '../../../src/conversation/fold.ts';
import { CARRIER_PREFIX, openSeal } from '../../../src/conversation/seal.ts';
import type { Block, Conversation, Tool } from '../../../src/conversation/types.ts';
import { isObject, type JsonObject } from '../../../src/lib/json.ts';
import { SseParser } from '../../../src/lib/sse.ts';
import { anthropicMessages } from '../../../src/protocols/anthropic-messages/index.ts';
import { bytes, client, EMPTY, eventsOf, sse, upstream } from './recorded.ts';

const START = {
  type: 'message_start',
  message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 5, output_tokens: 1 } },
};
const done = (reason: string) => ({ type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 9 } });
const STOP = { type: 'message_stop' };
const open = (index: number, block: JsonObject) => ({ type: 'content_block_start', index, content_block: block });
const delta = (index: number, change: JsonObject) => ({ type: 'content_block_delta', index, delta: change });
const close = (index: number) => ({ type: 'content_block_stop', index });
const say = (index: number, text: string) => delta(index, { type: 'text_delta', text });

const decode = (events: readonly JsonObject[], sent: Conversation = EMPTY) =>
  eventsOf([bytes(sse(...events))], upstream(sent));

/** What was sent to the client, as events. */
function encode(events: readonly StreamEvent[], asked: Conversation = EMPTY) {
  const context = client(asked);
  const encoder = anthropicMessages.encodeStream(context);
  const text = events.map((event) => encoder.event(event)).join('');
  const frames = new SseParser().push(bytes(text));
  return { sent: frames.map(({ data }) => JSON.parse(data ?? '') as JsonObject), notes: context.notes.summary(), text };
}

const types = (events: readonly StreamEvent[]) => events.map(({ type }) => type).join(' ');
const begin: StreamEvent = { type: 'start', id: 'chatcmpl-1.x', model: 'glm' };
const finish = (reason: 'stop' | 'tool-calls' | 'length' = 'stop'): readonly StreamEvent[] => [
  { type: 'finish', reason },
  { type: 'end' },
];

describe('decoding a stream', () => {
  test('text with escapes, padding and unknown fields is read like any other', () => {
    const raw = (text: string) =>
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${text}}      }\n\n`;
    const text = sse(START, open(0, { type: 'text', text: '' })) + raw('"a\\"b"') + raw('"日本"') + raw('"\\\\"') + raw('""') + raw('"x","extra":"y"') + sse(close(0), done('end_turn'), STOP);
    const texts = eventsOf([bytes(text)]).flatMap((event) => (event.type === 'delta' ? [event.text] : []));
    expect(texts).toEqual(['a"b', '日本', '\\', 'x']);
  });

  test('message_delta overwrites the counts of message_start; thinking is told apart', () => {
    const events = decode([
      { ...START, message: { ...START.message, usage: { input_tokens: 5, cache_read_input_tokens: 7, cache_creation_input_tokens: 2, cache_creation: { ephemeral_1h_input_tokens: 1 }, output_tokens: 1, service_tier: 'standard' } } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { input_tokens: null, output_tokens: 30, output_tokens_details: { thinking_tokens: 20 }, server_tool_use: { web_search_requests: 2 } } },
      STOP,
    ]);
    expect(events.find(({ type }) => type === 'usage')).toEqual({
      type: 'usage',
      usage: { input: 5, cacheRead: 7, cacheWrite: 2, cacheWrite1h: 1, output: 10, reasoning: 20, hosted: { web_search_requests: 2 } },
    });
    expect(events[0]).toMatchObject({ type: 'start', rest: { service_tier: 'standard' } });
  });

  test('the terminal alone is missing: complete; the stop reason is missing too: cut', () => {
    const said = [START, open(0, { type: 'text', text: '' }), say(0, 'a'), close(0)];
    expect(types(decode([...said, done('end_turn')]))).toBe('start block-start delta block-stop usage finish end');
    expect(types(decode(said))).toBe('start block-start delta block-stop');
    expect(types(decode(said.slice(0, 3)))).toBe('start block-start delta block-stop');
    expect(types(decode([...said, STOP]))).toBe('start block-start delta block-stop finish end');
  });

  test('lost starts and stops are made good', () => {
    const events = decode([START, say(0, 'a'), open(1, { type: 'tool_use', id: 't', name: 'f', input: {} }), delta(1, { type: 'input_json_delta', partial_json: '{}' }), done('tool_use'), STOP]);
    expect(types(events)).toBe('start block-start delta block-stop block-start delta block-stop usage finish end');
  });

  test('input of a call that was never opened is an upstream failure', () => {
    expect(() => decode([START, delta(0, { type: 'input_json_delta', partial_json: '{' })])).toThrow(
      expect.objectContaining({ kind: 'upstream' }),
    );
  });

  test('a frame that is not JSON is an upstream failure', () => {
    expect(() => eventsOf([bytes('event: message_start\ndata: {"type"\n\n')])).toThrow(
      expect.objectContaining({ kind: 'upstream' }),
    );
  });

  test('frames without event lines, pings, [DONE] and what follows the end do no harm', () => {
    const text = sse(START, { type: 'ping' }).replaceAll(/event: .*\n/g, '') + sse(done('end_turn'), STOP, START) + 'data: [DONE]\n\n';
    expect(types(eventsOf([bytes(text)]))).toBe('start usage finish end');
  });

  test('whole input in the start of a call is taken when no delta repeats it', () => {
    const block = { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } };
    const inputs = (events: readonly StreamEvent[]) => events.flatMap((event) => (event.type === 'delta' ? [event.text] : []));
    expect(inputs(decode([START, open(0, block), close(0), done('tool_use'), STOP]))).toEqual(['{"a":1}']);
    expect(inputs(decode([START, open(0, block), delta(0, { type: 'input_json_delta', partial_json: '{"a":2}' }), close(0), STOP]))).toEqual(['{"a":2}']);
  });

  test('namespaces and freeform tools come back as what they were declared', () => {
    const tools: readonly Tool[] = [
      { type: 'function', name: 'spawn', namespace: 'agents' },
      { type: 'custom', name: 'apply_patch' },
    ];
    const events = decode(
      [
        START,
        open(0, { type: 'tool_use', id: 'a', name: 'agents__spawn', input: {} }),
        delta(0, { type: 'input_json_delta', partial_json: '{"x":' }),
        delta(0, { type: 'input_json_delta', partial_json: '1}' }),
        close(0),
        open(1, { type: 'tool_use', id: 'b', name: 'apply_patch', input: {} }),
        delta(1, { type: 'input_json_delta', partial_json: '{"input":"*** Be' }),
        delta(1, { type: 'input_json_delta', partial_json: 'gin\\n"}' }),
        close(1),
        done('tool_use'),
        STOP,
      ],
      { ...EMPTY, tools },
    );
    const fold = new Fold();
    for (const event of events) fold.push(event);
    expect(fold.reply.blocks).toMatchObject([
      { type: 'tool-call', id: 'a', name: 'spawn', namespace: 'agents', kind: 'function', input: '{"x":1}' },
      { type: 'tool-call', id: 'b', name: 'apply_patch', kind: 'custom', input: '*** Begin\n' },
    ]);
    const whole = anthropicMessages.decodeReply(
      { id: 'msg_1', model: 'm', content: [{ type: 'tool_use', id: 'b', name: 'apply_patch', input: { input: 'x' } }], stop_reason: 'tool_use' },
      upstream({ ...EMPTY, tools }),
    );
    expect(whole.blocks[0]).toMatchObject({ kind: 'custom', input: 'x' });
  });

  test("a client's own function in a hosted tool's clothes is the client's to run", () => {
    const tools: readonly Tool[] = [{ type: 'function', name: 'Bash' }];
    const events = decode([START, open(0, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'Bash', input: {} }), close(0), done('tool_use'), STOP], { ...EMPTY, tools });
    expect(events[1]).toMatchObject({ head: { type: 'tool-call', name: 'Bash', by: 'client' } });
  });

  test('a call keeps what has no meaning here for the way back', () => {
    const block = { type: 'tool_use', id: 't', name: 'f', input: {}, caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_1' } };
    const { sent } = encode(decode([START, open(0, block), close(0), done('tool_use'), STOP]));
    expect(sent[1]?.content_block).toEqual(block);
  });

  test('an unknown delta of an open block goes on to clients of the same protocol', () => {
    const { sent } = encode(decode([START, open(0, { type: 'text', text: '' }), say(0, 'a'), delta(0, { type: 'mood_delta', mood: 'good' }), close(0), done('end_turn'), STOP]));
    expect(sent[3]).toEqual(delta(0, { type: 'mood_delta', mood: 'good' }));
  });
});

describe('encoding a stream for a Messages client', () => {
  test('a Chat answer: text, a call, an id of this protocol, totals at the end', () => {
    const { sent } = encode([
      { ...begin, rest: { system_fingerprint: 'fp', service_tier: 'default' } },
      { type: 'block-start', index: 0, head: { type: 'text' } },
      { type: 'delta', index: 0, text: 'Hi "you"\u2028' },
      { type: 'block-stop', index: 0 },
      { type: 'block-start', index: 1, head: { type: 'tool-call', id: 'call_1', name: 'f', kind: 'function', by: 'client' } },
      { type: 'delta', index: 1, text: '{"a":1}' },
      { type: 'block-stop', index: 1 },
      { type: 'finish', reason: 'stop' },
      { type: 'usage', usage: { input: 3, cacheRead: 4, output: 5, reasoning: 2 } },
      { type: 'end' },
    ]);
    expect(sent).toEqual([
      { type: 'message_start', message: { id: 'msg_chatcmpl-1x', type: 'message', role: 'assistant', model: 'glm', content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 0, output_tokens: 1 } } },
      open(0, { type: 'text', text: '' }),
      say(0, 'Hi "you"\u2028'),
      close(0),
      open(1, { type: 'tool_use', id: 'call_1', name: 'f', input: {} }),
      delta(1, { type: 'input_json_delta', partial_json: '{"a":1}' }),
      close(1),
      {
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null },
        usage: { input_tokens: 3, cache_creation_input_tokens: 0, cache_read_input_tokens: 4, output_tokens: 7, output_tokens_details: { thinking_tokens: 2 } },
      },
      STOP,
    ]);
  });

  const thinking = (...events: readonly StreamEvent[]) =>
    encode([
      begin,
      { type: 'block-start', index: 0, head: { type: 'reasoning' } },
      ...events,
      { type: 'block-stop', index: 0 },
      ...finish(),
    ]).sent;
  const text: StreamEvent = { type: 'delta', index: 0, text: 'hmm' };
  const signatures = (sent: readonly JsonObject[]) =>
    sent.flatMap(({ delta }) => (isObject(delta) && delta.type === 'signature_delta' ? [String(delta.signature)] : []));

  test('thinking has exactly one signature, last: the own, the carried or a minted one', () => {
    const own = thinking(text, { type: 'sealed', index: 0, sealed: { protocol: 'anthropic-messages', kind: 'signature', value: 'early' } }, { type: 'sealed', index: 0, sealed: { protocol: 'anthropic-messages', kind: 'signature', value: 'late' } });
    expect(signatures(own)).toEqual(['late']);
    expect(own.at(-4)).toEqual(delta(0, { type: 'signature_delta', signature: 'late' }));
    const sealed = { protocol: 'openai-responses', provider: 'oa', kind: 'encrypted', value: 'gAAA' } as const;
    const [carried] = signatures(thinking({ type: 'sealed', index: 0, sealed }));
    expect(openSeal(carried ?? '')).toEqual(sealed);
    const [minted] = signatures(thinking(text));
    expect(openSeal(minted ?? '')).toEqual({ protocol: 'openai-chat', provider: 'up', kind: 'signature', value: '' });
  });

  test('parts of a summary are paragraphs; blocks that say nothing are not opened', () => {
    const sent = thinking({ ...text, newPart: true } as StreamEvent, { type: 'delta', index: 0, text: 'more', newPart: true });
    expect(sent.flatMap(({ delta }) => (isObject(delta) && delta.thinking ? [delta.thinking] : []))).toEqual(['hmm', '\n\nmore']);
    expect(thinking().map(({ type }) => type)).toEqual(['message_start', 'message_delta', 'message_stop']);
  });

  test('redacted reasoning is given whole, another vendor\'s under a carrier', () => {
    const block: Block = { type: 'reasoning', text: '', sealed: { protocol: 'anthropic-messages', kind: 'redacted', value: 'data' } };
    const foreign: Block = { ...block, sealed: { protocol: 'openai-responses', kind: 'redacted', value: 'x' } };
    const { sent } = encode([begin, { type: 'block-start', index: 0, head: { type: 'whole', block } }, { type: 'block-stop', index: 0 }, { type: 'block-start', index: 1, head: { type: 'whole', block: foreign } }, { type: 'block-stop', index: 1 }, ...finish()]);
    expect(sent[1]).toEqual(open(0, { type: 'redacted_thinking', data: 'data' }));
    expect((sent[3]?.content_block as JsonObject).data).toStartWith(CARRIER_PREFIX);
  });

  const callWith = (input: readonly string[], kind: 'function' | 'custom' = 'function') => {
    const { sent } = encode([
      begin,
      { type: 'block-start', index: 0, head: { type: 'tool-call', id: '', name: 'f', kind, by: 'client' } },
      ...input.map((text): StreamEvent => ({ type: 'delta', index: 0, text })),
      { type: 'block-stop', index: 0 },
      ...finish(),
    ]);
    const json = sent.flatMap(({ delta }) => (isObject(delta) && delta.type === 'input_json_delta' ? [String(delta.partial_json)] : []));
    return { json: json.join(''), id: String((sent[1]?.content_block as JsonObject).id) };
  };

  test('a call without arguments says {}, one without id gets one, freeform text is wrapped', () => {
    expect(callWith([]).json).toBe('{}');
    expect(callWith(['']).json).toBe('{}');
    expect(callWith([]).id).toMatch(/^toolu_[0-9a-f]{24}$/);
    const halves = ['a"\n', '\ud83d', '\ude00'];
    expect(JSON.parse(callWith(halves, 'custom').json)).toEqual({ input: 'a"\n😀' });
    expect(JSON.parse(callWith([], 'custom').json)).toEqual({ input: '' });
  });

  test('a refusal is text and a stop reason', () => {
    const { sent } = encode([begin, { type: 'block-start', index: 0, head: { type: 'refusal' } }, { type: 'delta', index: 0, text: 'No.' }, { type: 'block-stop', index: 0 }, ...finish()]);
    expect(sent[2]).toEqual(say(0, 'No.'));
    expect(sent.at(-2)).toMatchObject({ delta: { stop_reason: 'refusal' } });
  });

  test('stop reasons: calls decide between tool_use and end_turn, a cap stays a cap', () => {
    const reason = (events: readonly StreamEvent[]) => (encode([begin, ...events]).sent.at(-2)?.delta as JsonObject).stop_reason;
    expect(reason(finish('tool-calls'))).toBe('end_turn');
    expect(reason(finish('length'))).toBe('max_tokens');
    expect(reason([{ type: 'finish', reason: 'stop-sequence', stopSequence: 'X' }, { type: 'end' }])).toBe('stop_sequence');
    expect(reason([{ type: 'finish', reason: 'context-overflow' }, { type: 'end' }])).toBe('model_context_window_exceeded');
    expect(reason([{ type: 'finish', reason: 'content-filter' }, { type: 'end' }])).toBe('refusal');
    expect(reason([{ type: 'finish', reason: 'pause' }, { type: 'end' }])).toBe('pause_turn');
    expect(reason([{ type: 'end' }])).toBe('end_turn');
  });

  test('a citation behind its text is still told', () => {
    const { sent } = encode([begin, { type: 'block-start', index: 0, head: { type: 'text' } }, { type: 'delta', index: 0, text: 'a' }, { type: 'citation', index: 0, citation: { url: 'https://x', title: 't', start: 0, end: 1 } }, { type: 'block-stop', index: 0 }, ...finish()]);
    expect(sent[3]).toEqual(delta(0, { type: 'citations_delta', citation: { type: 'web_search_result_location', cited_text: '', url: 'https://x', title: 't', encrypted_index: '' } }));
  });

  test('a ping may come first, and nothing but silence after the end', () => {
    const encoder = anthropicMessages.encodeStream(client());
    expect(encoder.ping()).toBe('event: ping\ndata: {"type":"ping"}\n\n');
    expect(encoder.event({ type: 'end' })).toContain('message_start');
    expect(encoder.ping()).toBe('');
    expect(encoder.event({ type: 'end' })).toBe('');
  });

  test('what another wire calls opaque is not passed on', () => {
    const wire = { protocol: 'openai-responses', value: { type: 'x' } } as const;
    expect(encode([begin, { type: 'opaque', name: 'x', wire }, ...finish()]).sent).toHaveLength(3);
  });
});

describe('a web search of another protocol', () => {
  const asked: Conversation = {
    ...EMPTY,
    tools: [{ type: 'hosted', name: 'web_search', kind: 'web_search_20250305', options: {} }],
  };
  const call: Block = { type: 'tool-call', id: 'ws_1-x', name: 'web_search', kind: 'function', input: '{"type":"search","query":"bun"}', by: 'provider' };
  const found: Block = {
    type: 'tool-result',
    callId: 'ws_1-x',
    kind: 'function',
    content: [{ type: 'opaque', name: 'source', wire: { protocol: 'openai-responses', value: { type: 'url', url: 'https://bun.sh', title: 'Bun' } } }],
    isError: false,
    by: 'provider',
  };
  const reply = (...blocks: readonly Block[]): Reply => ({ id: 'r', model: 'm', blocks, finish: 'stop' });
  const use = { type: 'server_tool_use', id: 'srvtoolu_ws_1_x', name: 'web_search' };
  const hits = (content: unknown) => ({ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_ws_1_x', content });
  const hit = { type: 'web_search_result', title: 'Bun', url: 'https://bun.sh', encrypted_content: '', page_age: null };
  const answer: Block = { type: 'text', text: 'See Bun.' };

  test('is told in this wire\'s words to a client that declared it', () => {
    const expected = [{ ...use, input: { query: 'bun' } }, hits([hit]), { type: 'text', text: 'See Bun.' }];
    const whole = anthropicMessages.encodeReply(reply(call, found, answer), client(asked));
    expect(whole.content as unknown).toEqual(expected);
    expect(whole.stop_reason).toBe('end_turn');
    const { sent } = encode([...unfold(reply(call, found, answer))], asked);
    expect(sent.slice(1, 6)).toEqual([
      open(0, { ...use, input: {} }),
      delta(0, { type: 'input_json_delta', partial_json: '{"query":"bun"}' }),
      close(0),
      open(1, hits([hit]) as JsonObject),
      close(1),
    ]);
  });

  test('without a result of its own gets an empty one, since a call without is refused later', () => {
    const whole = anthropicMessages.encodeReply(reply(call, answer), client(asked));
    expect((whole.content as readonly unknown[])[1]).toEqual(hits([]));
    for (const blocks of [[call, answer], [call]]) {
      const { sent } = encode([...unfold(reply(...blocks))], asked);
      expect(sent[4]).toEqual(open(1, hits([]) as JsonObject));
    }
  });

  test('that failed says so', () => {
    const failed = { ...found, isError: true } as Block;
    const whole = anthropicMessages.encodeReply(reply(call, failed), client(asked));
    expect((whole.content as readonly unknown[])[1]).toEqual(hits({ type: 'web_search_tool_result_error', error_code: 'unavailable' }));
  });

  test('is left out, with notes, for a client that never asked for it', () => {
    const context = client();
    const whole = anthropicMessages.encodeReply(reply(call, found, answer), context);
    expect(whole.content as unknown).toEqual([{ type: 'text', text: 'See Bun.' }]);
    expect(context.notes.summary()).toBe('content_dropped=2');
    const { sent, notes } = encode([...unfold(reply(call, found, answer))]);
    expect(sent[1]).toEqual(open(0, { type: 'text', text: '' }));
    expect(notes).toBe('content_dropped=2');
  });
});

describe('digests', () => {
  const digest = (...events: readonly JsonObject[]) => anthropicMessages.digestStream(new SseParser().push(bytes(sse(...events))));

  test('an empty answer is complete and says nothing', () => {
    expect(digest(START, open(0, { type: 'text', text: '' }), close(0), done('end_turn'), STOP)).toEqual({
      complete: true,
      semantic: false,
      usage: { input: 5, output: 9 },
      finish: 'stop',
    });
  });

  test('a cut stream is not complete; a failed one says why', () => {
    expect(digest(START, open(0, { type: 'text', text: '' }), say(0, 'x'))).toMatchObject({ complete: false, semantic: true });
    const failed = digest(START, { type: 'error', error: { type: 'overloaded_error', message: 'x' } });
    expect(failed.complete).toBe(false);
    expect(failed.error?.kind).toBe('overloaded');
  });

  test('a call without text is something', () => {
    expect(digest(START, open(0, { type: 'tool_use', id: 'a', name: 'f', input: {} })).semantic).toBe(true);
  });

  test('bodies that are no message', () => {
    expect(anthropicMessages.digestReply('x')).toEqual({ complete: false, semantic: false });
    expect(anthropicMessages.digestReply({ type: 'error', error: { type: 'api_error', message: 'm' } })).toMatchObject({ complete: false, error: { kind: 'upstream' } });
  });
});

test('models are listed as the vendor lists them', () => {
  expect(anthropicMessages.encodeModels([{ id: 'claude-a', provider: 'p', created: 0 }, { id: 'b', provider: 'p', created: 1 }])).toEqual({
    data: [
      { type: 'model', id: 'claude-a', display_name: 'claude-a', created_at: '1970-01-01T00:00:00.000Z' },
      { type: 'model', id: 'b', display_name: 'b', created_at: '1970-01-01T00:00:01.000Z' },
    ],
    has_more: false,
    first_id: 'claude-a',
    last_id: 'b',
  });
  expect(anthropicMessages.encodeModels([])).toEqual({ data: [], has_more: false, first_id: null, last_id: null });
});

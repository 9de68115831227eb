/** Encoding of Messages streams. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../../src/codecs/anthropic-messages/index.ts';
import type { StreamEvent } from '../../../../src/conversation/events.ts';
import { openSeal, SEAL_ENVELOPE_PREFIX } from '../../../../src/conversation/seal.ts';
import type { Block } from '../../../../src/conversation/types.ts';
import { isObject, type JsonObject } from '../../../../src/lib/json/json.ts';
import { client } from '../recorded.ts';
import { begin, close, delta, encode, finish, open, STOP, say } from '../scenes.ts';

describe('encoding a stream for a Messages client', () => {
  test('a Chat answer: text, a call, an id of this protocol, totals at the end', () => {
    const { sent } = encode([
      { ...begin, rest: { system_fingerprint: 'fp', service_tier: 'default' } },
      { type: 'block-start', index: 0, head: { type: 'text' } },
      { type: 'delta', index: 0, text: 'Hi "you"\u2028' },
      { type: 'block-stop', index: 0 },
      {
        type: 'block-start',
        index: 1,
        head: { type: 'tool-call', id: 'call_1', name: 'f', kind: 'function', by: 'client' },
      },
      { type: 'delta', index: 1, text: '{"a":1}' },
      { type: 'block-stop', index: 1 },
      { type: 'finish', reason: 'stop' },
      { type: 'usage', usage: { input: 3, cacheRead: 4, output: 5, reasoning: 2 } },
      { type: 'end' },
    ]);
    expect(sent).toEqual([
      {
        type: 'message_start',
        message: {
          id: 'msg_chatcmpl-1x',
          type: 'message',
          role: 'assistant',
          model: 'glm',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 0, output_tokens: 1 },
        },
      },
      open(0, { type: 'text', text: '' }),
      say(0, 'Hi "you"\u2028'),
      close(0),
      open(1, { type: 'tool_use', id: 'call_1', name: 'f', input: {} }),
      delta(1, { type: 'input_json_delta', partial_json: '{"a":1}' }),
      close(1),
      {
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null },
        usage: {
          input_tokens: 3,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 4,
          output_tokens: 7,
          output_tokens_details: { thinking_tokens: 2 },
        },
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
    sent.flatMap(({ delta }) =>
      isObject(delta) && delta.type === 'signature_delta' ? [String(delta.signature)] : [],
    );

  test('thinking has exactly one signature, last: the original, a carried or a minted one', () => {
    const own = thinking(
      text,
      {
        type: 'sealed',
        index: 0,
        sealed: { protocol: 'anthropic-messages', kind: 'signature', value: 'early' },
      },
      {
        type: 'sealed',
        index: 0,
        sealed: { protocol: 'anthropic-messages', kind: 'signature', value: 'late' },
      },
    );
    expect(signatures(own)).toEqual(['late']);
    expect(own.at(-4)).toEqual(delta(0, { type: 'signature_delta', signature: 'late' }));
    const sealed = {
      protocol: 'openai-responses',
      provider: 'oa',
      kind: 'encrypted',
      value: 'gAAA',
    } as const;
    const [carried] = signatures(thinking({ type: 'sealed', index: 0, sealed }));
    expect(openSeal(carried ?? '')).toEqual(sealed);
    const [minted] = signatures(thinking(text));
    expect(openSeal(minted ?? '')).toEqual({
      protocol: 'openai-chat',
      provider: 'up',
      kind: 'signature',
      value: '',
    });
  });

  test('parts of a summary are paragraphs; empty blocks are not opened', () => {
    const sent = thinking({ ...text, newPart: true } as StreamEvent, {
      type: 'delta',
      index: 0,
      text: 'more',
      newPart: true,
    });
    expect(
      sent.flatMap(({ delta }) => (isObject(delta) && delta.thinking ? [delta.thinking] : [])),
    ).toEqual(['hmm', '\n\nmore']);
    expect(thinking().map(({ type }) => type)).toEqual([
      'message_start',
      'message_delta',
      'message_stop',
    ]);
  });

  test("redacted reasoning is sent whole, another vendor's in an envelope", () => {
    const block: Block = {
      type: 'reasoning',
      text: '',
      sealed: { protocol: 'anthropic-messages', kind: 'redacted', value: 'data' },
    };
    const foreign: Block = {
      ...block,
      sealed: { protocol: 'openai-responses', kind: 'redacted', value: 'x' },
    };
    const { sent } = encode([
      begin,
      { type: 'block-start', index: 0, head: { type: 'whole', block } },
      { type: 'block-stop', index: 0 },
      { type: 'block-start', index: 1, head: { type: 'whole', block: foreign } },
      { type: 'block-stop', index: 1 },
      ...finish(),
    ]);
    expect(sent[1]).toEqual(open(0, { type: 'redacted_thinking', data: 'data' }));
    expect((sent[3]!.content_block as JsonObject).data).toStartWith(SEAL_ENVELOPE_PREFIX);
  });

  const callWith = (input: readonly string[], kind: 'function' | 'custom' = 'function') => {
    const { sent } = encode([
      begin,
      {
        type: 'block-start',
        index: 0,
        head: { type: 'tool-call', id: '', name: 'f', kind, by: 'client' },
      },
      ...input.map((text): StreamEvent => ({ type: 'delta', index: 0, text })),
      { type: 'block-stop', index: 0 },
      ...finish(),
    ]);
    const json = sent.flatMap(({ delta }) =>
      isObject(delta) && delta.type === 'input_json_delta' ? [String(delta.partial_json)] : [],
    );
    return { json: json.join(''), id: String((sent[1]!.content_block as JsonObject).id) };
  };

  test('a call without arguments gets {}, one without an id gets one, freeform text is wrapped', () => {
    expect(callWith([]).json).toBe('{}');
    expect(callWith(['']).json).toBe('{}');
    expect(callWith([]).id).toMatch(/^toolu_[0-9a-f]{24}$/);
    const halves = ['a"\n', '\ud83d', '\ude00'];
    expect(JSON.parse(callWith(halves, 'custom').json)).toEqual({ input: 'a"\n😀' });
    expect(JSON.parse(callWith([], 'custom').json)).toEqual({ input: '' });
  });

  test('a refusal is text and a stop reason', () => {
    const { sent } = encode([
      begin,
      { type: 'block-start', index: 0, head: { type: 'refusal' } },
      { type: 'delta', index: 0, text: 'No.' },
      { type: 'block-stop', index: 0 },
      ...finish(),
    ]);
    expect(sent[2]).toEqual(say(0, 'No.'));
    expect(sent.at(-2)).toMatchObject({ delta: { stop_reason: 'refusal' } });
  });

  test('stop reasons: calls decide between tool_use and end_turn, a token limit stays one', () => {
    const reason = (events: readonly StreamEvent[]) =>
      (encode([begin, ...events]).sent.at(-2)!.delta as JsonObject).stop_reason;
    expect(reason(finish('tool-calls'))).toBe('end_turn');
    expect(reason(finish('length'))).toBe('max_tokens');
    expect(
      reason([{ type: 'finish', reason: 'stop-sequence', stopSequence: 'X' }, { type: 'end' }]),
    ).toBe('stop_sequence');
    expect(reason([{ type: 'finish', reason: 'context-overflow' }, { type: 'end' }])).toBe(
      'model_context_window_exceeded',
    );
    expect(reason([{ type: 'finish', reason: 'content-filter' }, { type: 'end' }])).toBe('refusal');
    expect(reason([{ type: 'finish', reason: 'pause' }, { type: 'end' }])).toBe('pause_turn');
    expect(reason([{ type: 'end' }])).toBe('end_turn');
  });

  test('a citation after its text is still emitted', () => {
    const { sent } = encode([
      begin,
      { type: 'block-start', index: 0, head: { type: 'text' } },
      { type: 'delta', index: 0, text: 'a' },
      { type: 'citation', index: 0, citation: { url: 'https://x', title: 't', start: 0, end: 1 } },
      { type: 'block-stop', index: 0 },
      ...finish(),
    ]);
    expect(sent[3]).toEqual(
      delta(0, {
        type: 'citations_delta',
        citation: {
          type: 'web_search_result_location',
          cited_text: '',
          url: 'https://x',
          title: 't',
          encrypted_index: '',
        },
      }),
    );
  });

  test('a ping may come first, and nothing comes after the end', () => {
    const encoder = anthropicMessages.encodeStream(client());
    expect(encoder.ping()).toBe('event: ping\ndata: {"type":"ping"}\n\n');
    expect(encoder.event({ type: 'end' })).toContain('message_start');
    expect(encoder.ping()).toBe('');
    expect(encoder.event({ type: 'end' })).toBe('');
  });

  test('opaque events of another protocol are dropped', () => {
    const wire = { protocol: 'openai-responses', value: { type: 'x' } } as const;
    expect(encode([begin, { type: 'opaque', name: 'x', wire }, ...finish()]).sent).toHaveLength(3);
  });
});

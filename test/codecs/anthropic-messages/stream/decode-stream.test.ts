/** Decoding of unusual Messages streams. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../../src/codecs/anthropic-messages/index.ts';
import type { StreamEvent } from '../../../../src/conversation/events.ts';
import { ReplyBuilder } from '../../../../src/conversation/reply-builder.ts';
import type { Tool } from '../../../../src/conversation/types.ts';
import { bytes, EMPTY, eventsOf, sse, upstream } from '../recorded.ts';
import { close, decode, delta, done, encode, open, START, STOP, say, types } from '../scenes.ts';

describe('decoding a stream', () => {
  test('text with escapes, padding and unknown fields is read like any other', () => {
    const raw = (text: string) =>
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${text}}      }\n\n`;
    const text =
      sse(START, open(0, { type: 'text', text: '' })) +
      raw('"a\\"b"') +
      raw('"日本"') +
      raw('"\\\\"') +
      raw('""') +
      raw('"x","extra":"y"') +
      sse(close(0), done('end_turn'), STOP);
    const texts = eventsOf([bytes(text)]).flatMap((event) =>
      event.type === 'delta' ? [event.text] : [],
    );
    expect(texts).toEqual(['a"b', '日本', '\\', 'x']);
  });

  test('message_delta overwrites the counts of message_start; thinking tokens are separate', () => {
    const events = decode([
      {
        ...START,
        message: {
          ...START.message,
          usage: {
            input_tokens: 5,
            cache_read_input_tokens: 7,
            cache_creation_input_tokens: 2,
            cache_creation: { ephemeral_1h_input_tokens: 1 },
            output_tokens: 1,
            service_tier: 'standard',
          },
        },
      },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: {
          input_tokens: null,
          output_tokens: 30,
          output_tokens_details: { thinking_tokens: 20 },
          server_tool_use: { web_search_requests: 2 },
        },
      },
      STOP,
    ]);
    expect(events.find(({ type }) => type === 'usage')).toEqual({
      type: 'usage',
      usage: {
        input: 5,
        cacheRead: 7,
        cacheWrite: 2,
        cacheWrite1h: 1,
        output: 10,
        reasoning: 20,
        hosted: { web_search_requests: 2 },
        serviceTier: 'standard',
      },
    });
    expect(events[0]).toMatchObject({ type: 'start', rest: { service_tier: 'standard' } });
  });

  test('a stream without its terminal event is complete; without a stop reason it is cut', () => {
    const messages = [START, open(0, { type: 'text', text: '' }), say(0, 'a'), close(0)];
    expect(types(decode([...messages, done('end_turn')]))).toBe(
      'start block-start delta block-stop usage finish end',
    );
    expect(types(decode(messages))).toBe('start block-start delta block-stop');
    expect(types(decode(messages.slice(0, 3)))).toBe('start block-start delta block-stop');
    expect(types(decode([...messages, STOP]))).toBe(
      'start block-start delta block-stop finish end',
    );
  });

  test('lost starts and stops are replaced', () => {
    const events = decode([
      START,
      say(0, 'a'),
      open(1, { type: 'tool_use', id: 't', name: 'f', input: {} }),
      delta(1, { type: 'input_json_delta', partial_json: '{}' }),
      done('tool_use'),
      STOP,
    ]);
    expect(types(events)).toBe(
      'start block-start delta block-stop block-start delta block-stop usage finish end',
    );
  });

  test('input of a call that was never opened is an upstream error', () => {
    expect(() =>
      decode([START, delta(0, { type: 'input_json_delta', partial_json: '{' })]),
    ).toThrow(expect.objectContaining({ kind: 'upstream' }));
  });

  test('a frame that is not JSON is an upstream error', () => {
    expect(() => eventsOf([bytes('event: message_start\ndata: {"type"\n\n')])).toThrow(
      expect.objectContaining({ kind: 'upstream' }),
    );
  });

  test('frames without event lines, pings, [DONE] and events after the end are harmless', () => {
    const text =
      sse(START, { type: 'ping' }).replaceAll(/event: .*\n/g, '') +
      sse(done('end_turn'), STOP, START) +
      'data: [DONE]\n\n';
    expect(types(eventsOf([bytes(text)]))).toBe('start usage finish end');
  });

  test("whole input in a call's start event is read when no delta repeats it", () => {
    const block = { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } };
    const inputs = (events: readonly StreamEvent[]) =>
      events.flatMap((event) => (event.type === 'delta' ? [event.text] : []));
    expect(inputs(decode([START, open(0, block), close(0), done('tool_use'), STOP]))).toEqual([
      '{"a":1}',
    ]);
    expect(
      inputs(
        decode([
          START,
          open(0, block),
          delta(0, { type: 'input_json_delta', partial_json: '{"a":2}' }),
          close(0),
          STOP,
        ]),
      ),
    ).toEqual(['{"a":2}']);
  });

  test('namespaces and freeform tools come back as declared', () => {
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
    const fold = new ReplyBuilder();
    for (const event of events) fold.push(event);
    expect(fold.reply.blocks).toMatchObject([
      {
        type: 'tool-call',
        id: 'a',
        name: 'spawn',
        namespace: 'agents',
        kind: 'function',
        input: '{"x":1}',
      },
      { type: 'tool-call', id: 'b', name: 'apply_patch', kind: 'custom', input: '*** Begin\n' },
    ]);
    const whole = anthropicMessages.decodeReply(
      {
        id: 'msg_1',
        model: 'm',
        content: [{ type: 'tool_use', id: 'b', name: 'apply_patch', input: { input: 'x' } }],
        stop_reason: 'tool_use',
      },
      upstream({ ...EMPTY, tools }),
    );
    expect(whole.blocks[0]).toMatchObject({ kind: 'custom', input: 'x' });
  });

  test("a client's own function under a hosted tool's name is the client's to run", () => {
    const tools: readonly Tool[] = [{ type: 'function', name: 'Bash' }];
    const events = decode(
      [
        START,
        open(0, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'Bash', input: {} }),
        close(0),
        done('tool_use'),
        STOP,
      ],
      { ...EMPTY, tools },
    );
    expect(events[1]).toMatchObject({ head: { type: 'tool-call', name: 'Bash', by: 'client' } });
  });

  test('a call keeps its other fields for the same protocol', () => {
    const block = {
      type: 'tool_use',
      id: 't',
      name: 'f',
      input: {},
      caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_1' },
    };
    const { sent } = encode(decode([START, open(0, block), close(0), done('tool_use'), STOP]));
    expect(sent[1]?.content_block).toEqual(block);
  });

  test('an unknown delta of an open block goes on to clients of the same protocol', () => {
    const { sent } = encode(
      decode([
        START,
        open(0, { type: 'text', text: '' }),
        say(0, 'a'),
        delta(0, { type: 'mood_delta', mood: 'good' }),
        close(0),
        done('end_turn'),
        STOP,
      ]),
    );
    expect(sent[3]).toEqual(delta(0, { type: 'mood_delta', mood: 'good' }));
  });
});

/** Web searches of other protocols for a Messages client, digests, and the list of models. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import type { Reply } from '../../../src/conversation/events.ts';
import { replyEvents } from '../../../src/conversation/reply-builder.ts';
import type { Block, Conversation } from '../../../src/conversation/types.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { bytes, client, EMPTY, sse } from './recorded.ts';
import { close, delta, done, encode, open, START, STOP, say } from './scenes.ts';

describe('a web search of another protocol', () => {
  const request: Conversation = {
    ...EMPTY,
    tools: [{ type: 'hosted', name: 'web_search', kind: 'web_search_20250305', options: {} }],
  };
  const call: Block = {
    type: 'tool-call',
    id: 'ws_1-x',
    name: 'web_search',
    kind: 'function',
    input: '{"type":"search","query":"bun"}',
    by: 'provider',
  };
  const found: Block = {
    type: 'tool-result',
    callId: 'ws_1-x',
    kind: 'function',
    content: [
      {
        type: 'opaque',
        name: 'source',
        wire: {
          protocol: 'openai-responses',
          value: { type: 'url', url: 'https://bun.sh', title: 'Bun' },
        },
      },
    ],
    isError: false,
    by: 'provider',
  };
  const reply = (...blocks: readonly Block[]): Reply => ({
    id: 'r',
    model: 'm',
    blocks,
    finish: 'stop',
  });
  const use = { type: 'server_tool_use', id: 'srvtoolu_ws_1_x', name: 'web_search' };
  const hits = (content: unknown) => ({
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_ws_1_x',
    content,
  });
  const hit = {
    type: 'web_search_result',
    title: 'Bun',
    url: 'https://bun.sh',
    encrypted_content: '',
    page_age: null,
  };
  const answer: Block = { type: 'text', text: 'See Bun.' };

  test("a search is sent in this protocol's blocks to a client that declared it", () => {
    const expected = [
      { ...use, input: { query: 'bun' } },
      hits([hit]),
      { type: 'text', text: 'See Bun.' },
    ];
    const whole = anthropicMessages.encodeReply(reply(call, found, answer), client(request));
    expect(whole.content as unknown).toEqual(expected);
    expect(whole.stop_reason).toBe('end_turn');
    const { sent } = encode([...replyEvents(reply(call, found, answer))], request);
    expect(sent.slice(1, 6)).toEqual([
      open(0, { ...use, input: {} }),
      delta(0, { type: 'input_json_delta', partial_json: '{"query":"bun"}' }),
      close(0),
      open(1, hits([hit]) as JsonObject),
      close(1),
    ]);
  });

  test('a search without a result gets an empty one, since the API refuses a call without one', () => {
    const whole = anthropicMessages.encodeReply(reply(call, answer), client(request));
    expect((whole.content as readonly unknown[])[1]).toEqual(hits([]));
    for (const blocks of [[call, answer], [call]]) {
      const { sent } = encode([...replyEvents(reply(...blocks))], request);
      expect(sent[4]).toEqual(open(1, hits([]) as JsonObject));
    }
  });

  test('a failed search says so', () => {
    const failed = { ...found, isError: true } as Block;
    const whole = anthropicMessages.encodeReply(reply(call, failed), client(request));
    expect((whole.content as readonly unknown[])[1]).toEqual(
      hits({ type: 'web_search_tool_result_error', error_code: 'unavailable' }),
    );
  });

  test('a search is left out, with notes, for a client that did not declare it', () => {
    const context = client();
    const whole = anthropicMessages.encodeReply(reply(call, found, answer), context);
    expect(whole.content as unknown).toEqual([{ type: 'text', text: 'See Bun.' }]);
    expect(context.notes.summary()).toBe('content_dropped=2');
    const { sent, notes } = encode([...replyEvents(reply(call, found, answer))]);
    expect(sent[1]).toEqual(open(0, { type: 'text', text: '' }));
    expect(notes).toBe('content_dropped=2');
  });
});

describe('digests', () => {
  const digest = (...events: readonly JsonObject[]) =>
    anthropicMessages.digestStream(new SseParser().push(bytes(sse(...events))));

  test('an empty answer is complete and has no content', () => {
    expect(
      digest(START, open(0, { type: 'text', text: '' }), close(0), done('end_turn'), STOP),
    ).toEqual({
      complete: true,
      semantic: false,
      usage: { input: 5, output: 9 },
      counted: true,
      model: 'm',
      finish: 'stop',
    });
  });

  test('a cut stream is not complete; a failed one has its error', () => {
    expect(digest(START, open(0, { type: 'text', text: '' }), say(0, 'x'))).toMatchObject({
      complete: false,
      semantic: true,
    });
    const failed = digest(START, {
      type: 'error',
      error: { type: 'overloaded_error', message: 'x' },
    });
    expect(failed.complete).toBe(false);
    expect(failed.error?.kind).toBe('overloaded');
  });

  test('a call without text is content', () => {
    expect(
      digest(START, open(0, { type: 'tool_use', id: 'a', name: 'f', input: {} })).semantic,
    ).toBe(true);
  });

  test('bodies that are not a message are failures', () => {
    expect(anthropicMessages.digestReply('x')).toEqual({ complete: false, semantic: false });
    expect(
      anthropicMessages.digestReply({ type: 'error', error: { type: 'api_error', message: 'm' } }),
    ).toMatchObject({ complete: false, error: { kind: 'upstream' } });
  });
});

test("models have the vendor's list shape", () => {
  expect(
    anthropicMessages.encodeModels([
      { id: 'claude-a', provider: 'p', created: 0 },
      { id: 'b', provider: 'p', created: 1 },
    ]),
  ).toEqual({
    data: [
      {
        type: 'model',
        id: 'claude-a',
        display_name: 'claude-a',
        created_at: '1970-01-01T00:00:00.000Z',
      },
      { type: 'model', id: 'b', display_name: 'b', created_at: '1970-01-01T00:00:01.000Z' },
    ],
    has_more: false,
    first_id: 'claude-a',
    last_id: 'b',
  });
  expect(anthropicMessages.encodeModels([])).toEqual({
    data: [],
    has_more: false,
    first_id: null,
    last_id: null,
  });
});

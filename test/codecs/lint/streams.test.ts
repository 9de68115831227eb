/** Streams with one fault each: every rule of the three stream linters finds its fault. */

import { describe, expect, test } from 'bun:test';
import { lintStream as lintMessages } from '../../../src/codecs/anthropic-messages/lint/lint-stream.ts';
import { lintStream as lintChat } from '../../../src/codecs/openai-chat/lint/lint-stream.ts';
import { lintStream as lintResponses } from '../../../src/codecs/openai-responses/lint/lint-stream.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { lintBytes, rulesIn, rulesOf, sse } from './rules.ts';

type Event = JsonObject | string;
type Damage = readonly [rule: string, make: (events: Event[]) => Event[]];

/** `set(2, {…})` changes members of event 2; a function changes deep members. */
const set =
  (at: number, more: JsonObject) =>
  (events: Event[]): Event[] =>
    events.with(at, { ...(events[at] as JsonObject), ...more });
const drop = (at: number) => (events: Event[]) => events.toSpliced(at, 1);
const put =
  (at: number, ...more: Event[]) =>
  (events: Event[]) =>
    events.toSpliced(at, 0, ...more);
const twice = (at: number) => (events: Event[]) => events.toSpliced(at, 0, events[at]!);

const start: JsonObject = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 1 },
  },
};
const message = (more: JsonObject) =>
  set(0, { message: { ...(start.message as JsonObject), ...more } });
const block = (index: number, content_block: JsonObject) => ({
  type: 'content_block_start',
  index,
  content_block,
});
const delta = (index: number, value: JsonObject) => ({
  type: 'content_block_delta',
  index,
  delta: value,
});
const stop = (index: number) => ({ type: 'content_block_stop', index });
const MESSAGES: Event[] = [
  start,
  block(0, { type: 'thinking', thinking: '', signature: '' }),
  delta(0, { type: 'thinking_delta', thinking: 'hm' }),
  delta(0, { type: 'signature_delta', signature: 'EqQB' }),
  stop(0),
  { type: 'ping' },
  block(1, { type: 'tool_use', id: 't1', name: 'look', input: {} }),
  delta(1, { type: 'input_json_delta', partial_json: '{"a":' }),
  delta(1, { type: 'input_json_delta', partial_json: '1}' }),
  stop(1),
  {
    type: 'message_delta',
    delta: { stop_reason: 'tool_use', stop_sequence: null },
    usage: { output_tokens: 9 },
  },
  { type: 'message_stop' },
];
const MESSAGES_DAMAGE: readonly Damage[] = [
  ['not-json', put(1, 'hello')],
  ['event-name', put(1, '{"type":"ping"}')],
  ['after-end', put(12, { type: 'ping' })],
  ['start-first', drop(0)],
  ['start-once', twice(0)],
  ['start-missing', () => [{ type: 'ping' }]],
  ['start-shape', message({ role: 'user' })],
  ['start-shape', message({ content: [{}] })],
  ['start-shape', message({ stop_reason: 'end_turn' })],
  ['usage-missing', message({ usage: { input_tokens: 3 } })],
  ['usage-count', message({ usage: { input_tokens: -3, output_tokens: 1 } })],
  ['usage-shrinks', message({ usage: { input_tokens: 3, output_tokens: 10 } })],
  ['block-after-delta', put(11, block(2, { type: 'text', text: '' }), stop(2))],
  ['block-open', drop(4)],
  [
    'block-index',
    (events) =>
      set(9, { index: 2 })(
        set(8, { index: 2 })(set(7, { index: 2 })(set(6, { index: 2 })(events))),
      ),
  ],
  ['call-shape', set(6, { content_block: { type: 'tool_use', input: {} } })],
  ['delta-index', set(7, { index: 0 })],
  ['delta-type', set(2, { delta: { type: 'text_delta', text: 'x' } })],
  ['stop-index', twice(9)],
  ['input-json', drop(8)],
  ['signature-count', drop(3)],
  ['block-unclosed', drop(9)],
  ['delta-once', twice(10)],
  ['delta-missing', drop(10)],
  ['stop-reason', set(10, { delta: { stop_reason: 'stop' } })],
  ['stop-reason', (events) => events.toSpliced(6, 4)],
  ['stop-missing', drop(11)],
  ['error-shape', put(5, { type: 'error' })],
  ['unknown-event', put(5, { type: 'response.created' })],
];

const chunk = (more: JsonObject, rest: JsonObject = {}): JsonObject => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta: {}, finish_reason: null, ...more }],
  ...rest,
});
const fragment = (index: number, more: JsonObject) =>
  chunk({ delta: { tool_calls: [{ index, ...more }] } });
const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
const CHAT: Event[] = [
  chunk({ delta: { role: 'assistant', content: '' } }),
  chunk({ delta: { content: 'Hi' } }),
  fragment(0, { id: 'a', type: 'function', function: { name: 'look', arguments: '' } }),
  fragment(0, { function: { arguments: '{"a":1}' } }),
  fragment(1, { id: 'b', type: 'function', function: { name: 'look', arguments: '{}' } }),
  chunk({ finish_reason: 'tool_calls' }),
  chunk({}, { choices: [], usage }),
  '[DONE]',
];
const CHAT_DAMAGE: readonly Damage[] = [
  ['not-json', put(1, 'hello')],
  ['done-once', twice(7)],
  ['after-end', put(8, chunk({}))],
  ['object', set(0, { object: 'text_completion' })],
  ['id-missing', set(0, { id: '' })],
  ['id-changed', set(3, { id: 'c2' })],
  ['model-missing', set(3, { model: undefined })],
  [
    'usage-shrinks',
    put(
      7,
      chunk(
        {},
        { choices: [], usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 } },
      ),
    ),
  ],
  ['usage-count', set(6, { usage: { prompt_tokens: 5 } })],
  ['usage-total', set(6, { usage: { ...usage, total_tokens: 9 } })],
  ['usage-part', set(6, { usage: { ...usage, prompt_tokens_details: { cached_tokens: 6 } } })],
  ['choices', set(3, { choices: null })],
  ['choice-index', put(1, chunk({ index: undefined }))],
  ['delta', put(1, chunk({ delta: undefined }))],
  ['after-finish', put(6, chunk({ delta: { content: 'more' } }))],
  ['content-type', put(1, chunk({ delta: { content: 3 } }))],
  ['finish-once', put(6, chunk({ finish_reason: 'stop' }))],
  ['finish-reason', set(5, { choices: [{ index: 0, delta: {}, finish_reason: 'end_turn' }] })],
  ['finish-reason', (events) => events.toSpliced(2, 3)],
  [
    'call-index',
    put(2, fragment(1, { id: 'x', type: 'function', function: { name: 'f', arguments: '{}' } })),
  ],
  ['call-arguments', put(4, fragment(0, { function: { arguments: { a: 1 } } }))],
  ['call-id', drop(2)],
  ['call-name', drop(2)],
  ['call-id-changed', put(3, fragment(0, { id: 'z', function: { arguments: '' } }))],
  ['empty', () => ['[DONE]']],
  ['role-missing', drop(0)],
  ['finish-missing', drop(5)],
  ['done-missing', drop(7)],
  ['arguments-json', put(4, fragment(0, { function: { arguments: '}' } }))],
];

const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  status: 'in_progress',
  output: [],
  usage: null,
};
const TEXT = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Hi' }],
};
const CALL = {
  id: 'fc_1',
  type: 'function_call',
  call_id: 'call_1',
  name: 'look',
  arguments: '{}',
  status: 'completed',
};
const THOUGHT = { id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] };
const numbered = (events: Event[]): Event[] =>
  events.map((event, i) => (typeof event === 'string' ? event : { sequence_number: i, ...event }));
const RESPONSES: Event[] = [
  { type: 'response.created', response: RESPONSE },
  { type: 'response.in_progress', response: RESPONSE },
  { type: 'response.output_item.added', output_index: 0, item: { ...THOUGHT, summary: [] } },
  {
    type: 'response.reasoning_summary_part.added',
    output_index: 0,
    item_id: 'rs_1',
    summary_index: 0,
  },
  {
    type: 'response.reasoning_summary_text.delta',
    output_index: 0,
    item_id: 'rs_1',
    summary_index: 0,
    delta: 'hm',
  },
  { type: 'response.output_item.done', output_index: 0, item: THOUGHT },
  {
    type: 'response.output_item.added',
    output_index: 1,
    item: { ...TEXT, status: 'in_progress', content: [] },
  },
  {
    type: 'response.content_part.added',
    output_index: 1,
    item_id: 'msg_1',
    content_index: 0,
    part: { type: 'output_text', text: '' },
  },
  {
    type: 'response.output_text.delta',
    output_index: 1,
    item_id: 'msg_1',
    content_index: 0,
    delta: 'Hi',
  },
  {
    type: 'response.output_text.done',
    output_index: 1,
    item_id: 'msg_1',
    content_index: 0,
    text: 'Hi',
  },
  { type: 'response.output_item.done', output_index: 1, item: TEXT },
  { type: 'response.output_item.added', output_index: 2, item: { ...CALL, arguments: '' } },
  { type: 'response.function_call_arguments.delta', output_index: 2, item_id: 'fc_1', delta: '{}' },
  { type: 'response.output_item.done', output_index: 2, item: CALL },
  {
    type: 'response.completed',
    response: {
      ...RESPONSE,
      status: 'completed',
      output: [THOUGHT, TEXT, CALL],
      usage: { input_tokens: 5, output_tokens: 3, total_tokens: 8 },
    },
  },
];
const ended = (more: JsonObject) =>
  set(14, { response: { ...((RESPONSES[14] as JsonObject).response as JsonObject), ...more } });
const RESPONSES_DAMAGE: readonly Damage[] = [
  ['done-early', put(3, '[DONE]')],
  ['not-json', put(3, 'hello')],
  ['event-name', put(3, '{"type":"response.in_progress","sequence_number":3}')],
  ['sequence', set(4, { sequence_number: 9 })],
  ['after-end', twice(14)],
  ['start-first', drop(0)],
  ['start-once', twice(0)],
  ['start-missing', () => [{ type: 'response.in_progress', response: RESPONSE }]],
  ['start-shape', set(0, { response: { ...RESPONSE, output: [CALL] } })],
  ['output-index', (events) => events.toSpliced(2, 4)],
  ['item-shape', set(2, { item: {} })],
  ['item-not-open', drop(6)],
  ['item-not-done', drop(10)],
  ['item-changed', set(13, { item: { ...CALL, type: 'custom_tool_call' } })],
  ['item-id-changed', set(8, { item_id: 'msg_2' })],
  ['content-index', set(7, { content_index: 1 })],
  ['summary-index', set(3, { summary_index: 1 })],
  ['part-not-added', drop(7)],
  ['part-type', set(7, { part: { type: 'refusal' } })],
  ['done-differs', set(9, { text: 'Ho' })],
  ['done-differs', set(13, { item: { ...CALL, arguments: '{"a":1}' } })],
  ['end-shape', set(14, { response: undefined })],
  ['end-status', ended({ status: 'failed' })],
  ['id-changed', ended({ id: 'resp_2' })],
  ['end-output', ended({ output: [TEXT] })],
  ['usage-missing', ended({ usage: undefined })],
  ['usage-count', ended({ usage: {} })],
  ['usage-total', ended({ usage: { input_tokens: 5, output_tokens: 3, total_tokens: 9 } })],
  [
    'usage-part',
    ended({
      usage: {
        input_tokens: 5,
        output_tokens: 3,
        total_tokens: 8,
        output_tokens_details: { reasoning_tokens: 4 },
      },
    }),
  ],
  ['end-missing', drop(14)],
];

const PROTOCOLS = [
  ['anthropic-messages', lintMessages, MESSAGES, MESSAGES_DAMAGE, true],
  ['openai-chat', lintChat, CHAT, CHAT_DAMAGE, false],
  ['openai-responses', lintResponses, RESPONSES, RESPONSES_DAMAGE, true],
] as const;

for (const [name, linter, events, damages, named] of PROTOCOLS) {
  const bytes = (list: Event[]) => sse(name === 'openai-responses' ? numbered(list) : list, named);

  describe(name, () => {
    test('a correct stream has no findings', () => {
      expect(lintBytes(linter(), bytes([...events]))).toEqual([]);
    });

    for (const [rule, damage] of damages) {
      test(`finds ${rule}`, () => {
        const found = lintBytes(linter(), bytes(damage([...events])));
        expect(rulesOf(found)).toContain(rule);
        for (const { at } of found) expect(at).toMatch(/^\/\d+(\/[^/]+)*$/);
      });
    }

    test('every rule has an example here', () => {
      const known = rulesIn(name, /^lint-(stream|usage)/);
      expect(known.filter((rule) => !damages.some(([one]) => one === rule))).toEqual([]);
      expect(known.length).toBeGreaterThan(20);
    });

    test("a vendor's error ends a stream, which needs no other ending", () => {
      const error =
        name === 'openai-chat'
          ? { error: { message: 'x' } }
          : { type: 'error', error: { type: 'x', message: 'x' } };
      expect(lintBytes(linter(), bytes([events[0]!, error]))).toEqual([]);
    });

    test('a stream cut at any place is never complete', () => {
      const whole = bytes([...events]);
      for (let end = 1; end < whole.length - 2; end += 7) {
        expect(lintBytes(linter(), whole.subarray(0, end)).length).toBeGreaterThan(0);
      }
    });
  });
}

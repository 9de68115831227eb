/** Call ids follow the rules of the client's protocol, and their vendor gets them back unchanged. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import { unwrapCallId, wrapCallId } from '../../src/conversation/tools/call-ids.ts';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import { PROTOCOLS, run } from '../features/tool-pairing/support.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

const LEGAL = /^[a-zA-Z0-9_-]+$/;
const ODD = ['functions.f:0', 'call|1', 'id with space', '调用一', 'a/b', 'toolu_hg1_x', '\u0000'];

const ids = fc.oneof(
  fc.constantFrom(...ODD),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
  fc.string({ minLength: 1 }).map((id) => wrapCallId(id)),
);

test('every id gets a unique valid one for Messages, and can be restored from it', () => {
  fc.assert(
    fc.property(ids, ids, (a, b) => {
      expect(wrapCallId(a)).toMatch(LEGAL);
      expect(unwrapCallId(wrapCallId(a))).toBe(a);
      expect(wrapCallId(a) === wrapCallId(b)).toBe(a === b);
    }),
  );
});

test('ids that Messages accepts stay, and unknown ids are not changed', () => {
  for (const id of ['toolu_01AbC', 'call_1', 'a-b_c']) expect(wrapCallId(id)).toBe(id);
  for (const id of ['toolu_hg1_', 'toolu_hg1_!', 'functions.f:0', ''])
    expect(unwrapCallId(id)).toBe(id);
});

/** The call's id as a Messages client gets it from this vendor, whole and streamed. */
function idFor(id: string, from: ProtocolName): readonly string[] {
  const target = { provider: 'p', model: 'm', protocol: from, profile: NO_PROFILE };
  const notes = new Notes();
  const request = PROTOCOLS['anthropic-messages'].decodeRequest({
    model: 'm',
    max_tokens: 9,
    messages: [],
  });
  const reply: JsonObject =
    from === 'openai-chat'
      ? {
          choices: [
            {
              message: {
                role: 'assistant',
                content: null,
                tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
              },
              finish_reason: 'tool_calls',
            },
          ],
        }
      : {
          id: 'resp_1',
          status: 'completed',
          output: [{ type: 'function_call', call_id: id, name: 'f', arguments: '{}' }],
        };
  const decoded = PROTOCOLS[from].decodeReply(reply, { sent: request, target, notes });
  const context = { request: request, requestId: 'req_1', provider: 'p', notes };
  const whole = PROTOCOLS['anthropic-messages'].encodeReply(decoded, context);
  const encoder = PROTOCOLS['anthropic-messages'].encodeStream(context);
  const block = decoded.blocks.find(({ type }) => type === 'tool-call');
  if (block?.type !== 'tool-call') throw new Error('no call');
  const frames = encoder.event({ type: 'block-start', index: 0, head: block });
  const streamed = /"type":"tool_use","id":"([^"]*)"/.exec(frames)![1]!;
  return [String((whole.content as JsonObject[])[0]!.id), streamed];
}

const history = (id: string, answered = true): JsonObject => ({
  model: 'm',
  max_tokens: 9,
  messages: [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: [{ type: 'tool_use', id, name: 'f', input: {} }] },
    ...(answered
      ? [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'x' }] }]
      : [{ role: 'user', content: 'b' }]),
  ],
});

describe.each(['openai-chat', 'openai-responses'] as const)('%s', (vendor) => {
  for (const id of ODD) {
    test(`${JSON.stringify(id)} goes to the client in its form and comes back unchanged`, () => {
      const given = idFor(id, vendor);
      for (const one of given) expect(one).toMatch(LEGAL);
      expect(given[0]).toBe(given[1]!);
      for (const answered of [true, false]) {
        const { body } = run(history(given[0]!, answered), 'anthropic-messages', { to: vendor });
        const found: Json[] = [];
        JSON.stringify(body, (key, value: Json) => {
          if (key === 'id' || key === 'call_id' || key === 'tool_call_id') found.push(value);
          return value;
        });
        expect(found).toEqual([id, id]);
      }
    });
  }
});

test('another Messages vendor gets the same bytes, and a missing result under the same id', () => {
  for (const id of ODD) {
    const carried = wrapCallId(id);
    expect(run(history(carried), 'anthropic-messages').same).toBe(true);
    const { body } = run(history(carried, false), 'anthropic-messages');
    expect(JSON.stringify(body.messages)).toContain(`"tool_use_id":"${carried}"`);
  }
});

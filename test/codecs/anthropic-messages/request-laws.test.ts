/** Laws over every recorded Messages request: unchanged requests go out as they came in, also after an empty edit. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { editNode, withParts } from '../../../src/conversation/edit.ts';
import { GatewayError } from '../../../src/conversation/errors.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { ABSENT, requests, target } from './recorded.ts';

const bodies = requests()
  .filter(({ body }) => body.thread === undefined)
  .map(({ file, body }) => ({ file, body: { model: 'm', max_tokens: 1, ...body } as JsonObject }));

const decode = (body: JsonObject) => anthropicMessages.decodeRequest(body);
const encode = (conversation: Conversation, notes = new Notes()) =>
  anthropicMessages.encodeRequest(
    conversation,
    target({ model: conversation.model }, { systemTurns: true }),
    notes,
  );

const suite = ABSENT === undefined ? describe : describe.skip;

suite(ABSENT ?? 'every recorded and captured request', () => {
  test('the expected number of requests is available', () => {
    expect(bodies.length).toBeGreaterThan(600);
  });

  test('a request comes back deeply equal, with its key order, without a note', () => {
    for (const { file, body } of bodies) {
      const notes = new Notes();
      const back = encode(decode(body), notes);
      expect(JSON.stringify(back), file).toBe(JSON.stringify(body));
      expect(notes.size, file).toBe(0);
    }
  });

  test('a request comes back deeply equal after every part is replaced by an equal copy', () => {
    for (const { file, body } of bodies) {
      const conversation = decode(body);
      const copy = withParts(conversation, {
        system: [...conversation.system],
        turns: [...conversation.turns],
        tools: [...conversation.tools],
        settings: { ...conversation.settings },
      });
      expect(encode(copy) as unknown, file).toEqual(body);
    }
  });

  test('a request is equivalent after empty edits of every node', () => {
    for (const { file, body } of bodies) {
      const conversation = decode(body);
      const copy = withParts(conversation, {
        turns: conversation.turns.map((turn) => editNode(turn, {})),
        tools: conversation.tools.map((tool) =>
          tool.type === 'function' ? editNode(tool, {}) : tool,
        ),
      });
      const again = decode(encode(copy));
      expect(meaning(again), file).toEqual(meaning(conversation));
    }
  });

  test('a request is a fixed point of decoding', () => {
    for (const { file, body } of bodies) {
      const once = decode(body);
      expect(decode(encode(once)), file).toEqual(once);
    }
  });

  test('a request has one turn per message', () => {
    for (const { file, body } of bodies) {
      expect(decode(body).turns.length, file).toBe((body.messages as readonly unknown[]).length);
    }
  });
});

suite(ABSENT ?? 'message threads', () => {
  test('a thread is refused with the error code that makes the SDK retry without it', () => {
    const threaded = requests().filter(({ body }) => body.thread !== undefined);
    expect(threaded.length).toBeGreaterThan(0);
    for (const { body } of threaded) {
      let error: unknown;
      try {
        anthropicMessages.decodeRequest(body);
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(GatewayError);
      const answer = anthropicMessages.encodeError(error as GatewayError, 'req_1');
      expect(answer.status).toBe(400);
      expect((answer.body.error as JsonObject).details).toEqual({
        error_code: 'thread_unsupported_request',
        unsupported: ['thread'],
      });
    }
  });
});

/** Turns with content, and tools, without the wire they were decoded from. */
function meaning(conversation: Conversation): unknown {
  const turns = conversation.turns.filter((turn) => turn.blocks.length > 0);
  return JSON.parse(
    JSON.stringify({ turns, tools: conversation.tools }, (key, value) =>
      key === 'wire' || key === 'residue' ? undefined : value,
    ),
  );
}

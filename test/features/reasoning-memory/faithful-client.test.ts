/** A Chat client that returns all reasoning: one string and a list of details for several sealed thoughts. */

import { describe, expect, test } from 'bun:test';
import { ANSWERS } from '../../../src/features/reasoning-memory/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import type { Scripted } from '../../gateway/scripted.ts';
import { memoryRoom } from '../../support/entries.ts';
import {
  CLAUDE,
  chatReply,
  DEEPSEEK,
  messagesReply,
  messagesStream,
  OPENAI,
  Session,
  seal,
} from './scripts.ts';

const ID = 'toolu_01XyZabcdefghijkl29';
const effort = { reasoning_effort: 'low', max_completion_tokens: 8000 };

const A = { type: 'thinking', thinking: 'AAA', signature: seal(1) };
const B = { type: 'thinking', thinking: 'BBBB', signature: seal(2) };
const HIDDEN = { type: 'redacted_thinking', data: seal(3) };
const WORDS = { type: 'text', text: 'mid' };
const USE = { type: 'tool_use', id: ID, name: 'read', input: { path: 'a' } };

const E1 = {
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: 'S1' }],
  encrypted_content: 'gAAAAAB1',
};
const E2 = { type: 'reasoning', summary: [], encrypted_content: 'gAAAAAB2' };

const responses = (output: readonly JsonObject[]): Scripted => ({
  json: {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output,
    usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  },
});

const twice = responses([
  { ...E1, id: 'rs_1' },
  {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'mid', annotations: [] }],
  },
  { ...E2, id: 'rs_2' },
  {
    id: 'fc_1',
    type: 'function_call',
    call_id: ID,
    name: 'read',
    arguments: '{}',
    status: 'completed',
  },
]);

const finished = responses([
  {
    id: 'msg_2',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'done', annotations: [] }],
  },
]);
const done = messagesReply([{ type: 'text', text: 'done' }]);
const keeping = (ledger = memoryRoom(ANSWERS)) =>
  new Session(ledger, { more: effort, keeps: true });

/** The session continued by another process with an empty memory. */
function forgotten(session: Session, change = (message: JsonObject) => message): Session {
  const next = keeping();
  const [, answer, ...rest] = session.messages;
  next.messages.push(change(answer as unknown as JsonObject) as never, ...rest);
  return next;
}

const content = (sent: JsonObject) =>
  (sent.messages as { content: JsonObject[] }[])[1]!.content as unknown;

for (const [kind, script] of [
  ['whole', messagesReply],
  ['streamed', messagesStream],
] as const) {
  describe(`several signed thoughts of one answer, ${kind}`, () => {
    test('each thought goes back under its own signature, in its place', async () => {
      const session = keeping();
      await session.ask(CLAUDE, script([A, WORDS, B, HIDDEN, USE]));
      expect(session.messages[1]?.reasoning_content).toBe('AAABBBB');
      const sent = await session.ask(CLAUDE, done);
      expect(content(sent)).toEqual([A, WORDS, B, HIDDEN, USE]);
      expect(sent.thinking).toMatchObject({ type: 'enabled' });
    });

    test('without stored reasoning, each thought goes back under its own signature, before the rest', async () => {
      const session = keeping();
      await session.ask(CLAUDE, script([A, WORDS, B, HIDDEN, USE]));
      const sent = await forgotten(session).ask(CLAUDE, done);
      expect(content(sent)).toEqual([A, B, HIDDEN, WORDS, USE]);
    });

    test('changed texts get the stored thoughts, since no signature fits them', async () => {
      const session = keeping();
      await session.ask(CLAUDE, script([A, WORDS, B, HIDDEN, USE]));
      session.messages[1] = { ...session.messages[1]!, reasoning_content: 'AAABB' };
      expect(content(await session.ask(CLAUDE, done))).toEqual([A, WORDS, B, HIDDEN, USE]);
    });

    test('no signature goes back with a text it was not made for', async () => {
      const session = keeping();
      await session.ask(CLAUDE, script([A, WORDS, B, HIDDEN, USE]));
      const changed = forgotten(session, (answer) => ({ ...answer, reasoning_content: 'AAABB' }));
      expect(content(await changed.ask(CLAUDE, done))).toEqual([WORDS, USE]);
    });

    test('a vendor that cannot read the seals gets the texts', async () => {
      const session = keeping();
      await session.ask(CLAUDE, script([A, WORDS, B, HIDDEN, USE]));
      const sent = await session.ask(DEEPSEEK, chatReply({ content: 'done' }));
      expect((sent.messages as JsonObject[])[1]?.reasoning_content).toBe('AAA\n\nBBBB');
      expect(JSON.stringify(sent)).not.toContain('hopgate1.');
    });
  });
}

test('when the client lost one seal, all seals are restored', async () => {
  const session = keeping();
  await session.ask(CLAUDE, messagesReply([A, WORDS, B, HIDDEN, USE]));
  const answer = session.messages[1]!;
  const [, ...details] = answer.reasoning_details as JsonObject[];
  session.messages[1] = { ...answer, reasoning_details: details };
  expect(content(await session.ask(CLAUDE, done))).toEqual([A, WORDS, B, HIDDEN, USE]);
});

test('a thought at the end stays with the answer that the client returned', async () => {
  const session = keeping();
  await session.ask(CLAUDE, messagesReply([A, WORDS, B]));
  const sent = await session.say('go on').ask(CLAUDE, done);
  expect(content(sent)).toEqual([A, B, WORDS]);
});

test('the second encrypted thought of Responses is not lost', async () => {
  const call = { type: 'function_call', call_id: ID, name: 'read', arguments: '{}' };
  const text = { type: 'message', role: 'assistant' };
  const session = keeping();
  await session.ask(OPENAI, twice);
  const sent = await session.ask(OPENAI, finished);
  expect((sent.input as JsonObject[]).slice(1, 5)).toMatchObject([E1, text, E2, call]);
  const alone = await forgotten(session).ask(OPENAI, finished);
  expect((alone.input as JsonObject[]).slice(1, 5)).toMatchObject([E1, E2, text, call]);
});

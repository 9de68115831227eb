/** The final check alone: it adds results to unanswered calls and does nothing else. */

import { describe, expect, test } from 'bun:test';
import { Notes } from '../../../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../../../src/conversation/target.ts';
import type {
  Block,
  Conversation,
  ProtocolName,
  Turn,
} from '../../../../src/conversation/types.ts';
import { sanityPass } from '../../../../src/features/tool-pairing/pairs/index.ts';
import { rulesFor } from '../../../../src/features/tool-pairing/rules.ts';

const call = (id: string): Block => ({
  type: 'tool-call',
  id,
  name: 'Read',
  kind: 'function',
  input: '{}',
  by: 'client',
});
const result = (callId: string): Block => ({
  type: 'tool-result',
  callId,
  kind: 'function',
  content: [{ type: 'text', text: 'ok' }],
  isError: false,
  by: 'client',
});
const text = (text: string): Block => ({ type: 'text', text: text });
const assistant = (...blocks: Block[]): Turn => ({ role: 'assistant', blocks });
const user = (...blocks: Block[]): Turn => ({ role: 'user', blocks });

function pass(turns: readonly Turn[], protocol: ProtocolName = 'anthropic-messages') {
  const notes = new Notes();
  const parts = { model: 'm', system: [], turns, tools: [], settings: { stream: false } };
  const conversation: Conversation = { ...parts, origin: { protocol, value: {}, parts } };
  const target = { provider: 'p', model: 'm', protocol, profile: NO_PROFILE };
  const out = sanityPass(
    turns,
    rulesFor(conversation, target),
    (block) => block.by === 'client',
    notes,
  );
  return { out, names: notes.all.map(({ name }) => name) };
}

const placeholder = (id: string) => ({
  type: 'tool-result',
  callId: id,
  kind: 'function',
  content: [{ type: 'text', text: 'No result was recorded for this tool call.' }],
  isError: true,
  by: 'client',
});

describe('a valid history', () => {
  test('a paired history comes back as the same list, without a note', () => {
    const turns = [user(text('a')), assistant(call('x')), user(result('x'), text('b'))];
    const { out, names } = pass(turns);
    expect(out).toBe(turns);
    expect(names).toEqual([]);
  });

  test('a history without calls comes back as the same list', () => {
    const turns = [user(text('a')), assistant(text('b'))];
    expect(pass(turns).out).toBe(turns);
  });

  test('calls of the vendor’s own tools are ignored', () => {
    const hosted: Block = {
      type: 'tool-call',
      id: 's',
      name: 'web_search',
      kind: 'function',
      input: '{}',
      by: 'provider',
    };
    const turns = [user(text('a')), assistant(hosted)];
    expect(pass(turns).out).toBe(turns);
  });

  test('Responses: an output further back is an answer', () => {
    const turns = [assistant(call('x')), user(text('a')), assistant(text('b')), user(result('x'))];
    expect(pass(turns, 'openai-responses').out).toBe(turns);
  });
});

describe('an unanswered call', () => {
  test('an unanswered call gets a placeholder at the head of the user turn, which keeps the rest', () => {
    const { out, names } = pass([assistant(call('x')), user(text('go on'))]);
    expect(out[1]?.blocks as unknown).toEqual([placeholder('x'), text('go on')]);
    expect(names).toEqual(['pairing_sanity_repaired']);
  });

  test('only the unanswered one of several calls gets a placeholder', () => {
    const { out } = pass([
      assistant(call('x'), call('y'), call('z')),
      user(result('x'), result('z')),
    ]);
    expect(out[1]?.blocks as unknown).toEqual([placeholder('y'), result('x'), result('z')]);
  });

  test('a call before another assistant turn gets its own user turn where turns do not join', () => {
    const { out } = pass([assistant(call('x')), assistant(text('b'))], 'openai-chat');
    expect(out.map(({ role }) => role)).toEqual(['assistant', 'user', 'assistant']);
    expect(out[1]?.blocks as unknown).toEqual([placeholder('x')]);
  });

  test('a call at the very end gets a turn after it', () => {
    for (const protocol of ['anthropic-messages', 'openai-chat', 'openai-responses'] as const) {
      const { out, names } = pass([user(text('a')), assistant(call('x'))], protocol);
      expect(out[2]?.blocks as unknown).toEqual([placeholder('x')]);
      expect(names).toEqual(['pairing_sanity_repaired']);
    }
  });

  test('a call is unanswered if its result comes after text', () => {
    const { names } = pass([assistant(call('x')), user(text('a'), result('x'))]);
    expect(names).toEqual(['pairing_sanity_repaired']);
  });
});

test('the check moves and removes nothing, and a second run finds nothing', () => {
  const turns = [user(result('stray')), assistant(call('x'), text('after')), user(text('a'))];
  const once = pass(turns);
  const stored = once.out.flatMap(({ blocks }) => blocks);
  for (const block of turns.flatMap(({ blocks }) => blocks)) expect(stored).toContain(block);
  const twice = pass(once.out);
  expect(twice.out).toBe(once.out);
  expect(twice.names).toEqual([]);
});

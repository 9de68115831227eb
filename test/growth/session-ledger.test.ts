/** Work of the session ledger grows linearly with the history and the answer, whatever their ids and texts. */

import { describe, test } from 'bun:test';
import { Notes } from '../../src/conversation/notes.ts';
import { callKey, textKeys } from '../../src/conversation/session/answer-keys.ts';
import type { Turn } from '../../src/conversation/types.ts';
import { answerCollector } from '../../src/features/reasoning-memory/answer-collector.ts';
import { restore, textBefore } from '../../src/features/reasoning-memory/restore.ts';
import { ANSWERS, type AnswerPiece } from '../../src/features/reasoning-memory/session-ledger.ts';
import { memoryRoom } from '../support/entries.ts';
import { expectLinear } from '../support/growth.ts';

const SCOPE = '\0vendor';
const TARGET = {
  provider: 'vendor',
  model: 'm',
  protocol: 'openai-chat',
  profile: { name: 'none', reasoningField: 'reasoning_content' },
} as const;

const TEXTS: Readonly<Record<string, string>> = {
  letters: 'a',
  digits: '1',
  'digits and dashes': '12345678901-',
  'letters and digits': 'a1',
  'letters and dots': 'abcdefghijklmno.',
  blanks: ' ',
  'line breaks': '\n',
  'words and blanks': 'a ',
  umlauts: 'ä',
};

for (const [what, piece] of Object.entries(TEXTS)) {
  const input = (size: number) => piece.repeat(size / piece.length);
  describe(what, () => {
    test('a hostile text as an id takes linear time', () =>
      expectLinear({ name: what, input, run: (id) => callKey(SCOPE, id, () => '') }));
    test('a hostile text as an answer takes linear time', () =>
      expectLinear({ name: what, input, run: (text) => textKeys(SCOPE, text, () => '') }));
    test('a hostile text before an answer takes linear time', () =>
      expectLinear({
        name: what,
        input: (size): Turn[] => [
          { role: 'user', blocks: [{ type: 'text', text: input(size) }] },
          { role: 'user', blocks: [{ type: 'text', text: input(size) }] },
        ],
        run: (turns) => textBefore(turns, turns.length),
      }));
  });
}

const reasoning = (text: string) => ({ type: 'reasoning', text }) as const;
const call = (id: string) =>
  ({ type: 'tool-call', id, name: 'x', kind: 'function', input: '{}', by: 'client' }) as const;
const result = (callId: string) =>
  ({
    type: 'tool-result',
    callId,
    content: [],
    kind: 'function',
    isError: false,
    by: 'client',
  }) as const;

/** A ledger with one answer of that many calls, each with its own reasoning. */
function knowing(count: number) {
  const ledger = memoryRoom(ANSWERS);
  const pieces: AnswerPiece[] = [];
  const ids = Array.from({ length: count }, (_, i) => `call_a1b2c3d4e5f6a7b8${i}`);
  for (const id of ids) {
    pieces.push({ type: 'reasoning', block: reasoning(`thought of ${id}`) });
    pieces.push({ type: 'call', id });
  }
  const keys = ids.map((id) => callKey(SCOPE, id, () => ''));
  ledger.put(keys, { id: 'e', provider: 'vendor', protocol: 'openai-chat', model: 'm', pieces });
  return { ledger, ids };
}

const restoring = (
  shape: (ids: readonly string[]) => readonly Turn[],
  origin: 'openai-chat' | 'openai-responses' | 'anthropic-messages',
  protocol: 'openai-chat' | 'anthropic-messages' = 'openai-chat',
) => ({
  input: (size: number) => {
    const { ledger, ids } = knowing(Math.ceil(size / 50));
    const turns: readonly Turn[] = [
      ...shape(ids),
      { role: 'user', blocks: [{ type: 'text', text: 'go on' }] },
    ];
    const conversation = {
      model: 'm',
      system: [],
      turns,
      tools: [],
      settings: { stream: true },
      origin: { protocol: origin },
    };
    return { ledger, conversation };
  },
  run: ({
    ledger,
    conversation,
  }: {
    ledger: ReturnType<typeof knowing>['ledger'];
    conversation: unknown;
  }) =>
    restore(conversation as never, {
      ledger,
      scope: SCOPE,
      target: { ...TARGET, protocol } as never,
      notes: new Notes(),
    }),
  most: 2 * 1024 * 1024,
});

describe('restoring a history', () => {
  test('one answer of many calls takes linear time', () =>
    expectLinear({
      name: 'calls',
      ...restoring(
        (ids) => [
          { role: 'assistant', blocks: ids.map(call) },
          { role: 'user', blocks: ids.map(result) },
        ],
        'anthropic-messages',
      ),
    }));
  test('one answer of many items takes linear time', () =>
    expectLinear({
      name: 'items',
      ...restoring(
        (ids) => [
          ...ids.map((id): Turn => ({ role: 'assistant', blocks: [call(id)] })),
          { role: 'user', blocks: ids.map(result) },
        ],
        'openai-responses',
      ),
    }));
  test('many answers take linear time', () =>
    expectLinear({
      name: 'answers',
      ...restoring(
        (ids) =>
          ids.flatMap((id): Turn[] => [
            { role: 'assistant', blocks: [call(id)] },
            { role: 'user', blocks: [result(id)] },
          ]),
        'openai-chat',
      ),
    }));
  test('one answer whose reasoning the client returns takes linear time', () =>
    expectLinear({
      name: 'held reasoning',
      ...restoring(
        (ids) => [
          {
            role: 'assistant',
            blocks: [...ids.map((id) => reasoning(`thought of ${id}`)), ...ids.map(call)],
          },
          { role: 'user', blocks: ids.map(result) },
        ],
        'openai-chat',
        'openai-chat',
      ),
    }));
});

test('storing an answer in many small pieces takes linear time', () =>
  expectLinear({
    name: 'pieces',
    input: (size) => size,
    run: (size) => {
      const reply = answerCollector(() => {});
      reply.event({ type: 'block-start', index: 0, head: { type: 'reasoning' } });
      for (let i = 0; i < size; i++) reply.event({ type: 'delta', index: 0, text: 'x' });
      reply.event({ type: 'block-stop', index: 0 });
      reply.event({ type: 'block-start', index: 1, head: { type: 'text' } });
      for (let i = 0; i < size; i++) reply.event({ type: 'delta', index: 1, text: 'y' });
      reply.event({ type: 'block-stop', index: 1 });
      reply.end();
    },
    most: 1024 * 1024,
  }));

/** Unwrapping and wrapping ids of calls is linear in the history and in the ids. */

import { describe, test } from 'bun:test';
import { Notes } from '../../src/conversation/notes.ts';
import { wrapRepeatedId } from '../../src/conversation/tools/call-ids.ts';
import type { Conversation, Turn } from '../../src/conversation/types.ts';
import { uniqueCallIds, vendorCallIds } from '../../src/features/call-ids/index.ts';
import { expectLinear } from '../support/growth.ts';

const target = {
  provider: 'p',
  model: 'm',
  protocol: 'openai-chat',
  profile: { name: 'none' },
} as const;

/** Both passes over a history with calls of these ids, and an answer with one more call of the id `f:0`. */
function run(ids: readonly string[]): void {
  const turns = ids.flatMap((id): Turn[] => [
    {
      role: 'assistant',
      blocks: [{ type: 'tool-call', id, name: 'f', kind: 'function', input: '{}', by: 'client' }],
    },
    {
      role: 'user',
      blocks: [
        {
          type: 'tool-result',
          callId: id,
          kind: 'function',
          content: [],
          isError: false,
          by: 'client',
        },
      ],
    },
  ]);
  const sent: Conversation = {
    model: 'm',
    system: [],
    turns,
    tools: [],
    settings: { stream: true },
  };
  const context = { target, client: 'anthropic-messages', notes: new Notes(), hop: 1 } as const;
  const known = vendorCallIds.request!(sent, context);
  const head = { type: 'tool-call', id: 'f:0', name: 'f', kind: 'function', by: 'client' } as const;
  uniqueCallIds.intercept!(known, context)!.event({ type: 'block-start', index: 0, head });
}

const HISTORIES: Readonly<Record<string, (size: number) => readonly string[]>> = {
  'one id in every turn': (size) =>
    Array.from({ length: size / 20 }, (_, i) => wrapRepeatedId('f:0', i)),
  'the counts that would come next': (size) =>
    Array.from({ length: size / 20 }, (_, i) => wrapRepeatedId('f:0', size / 20 + i)),
  'a long id': (size) => ['f:0', wrapRepeatedId('a'.repeat(size), 1)],
  'an id that only begins like a wrapped one': (size) => [
    'f:0',
    `toolu_hg2_1_${'a'.repeat(size)}!`,
  ],
};

for (const [name, input] of Object.entries(HISTORIES)) {
  describe(name, () => {
    test('takes linear time', () => expectLinear({ name, input, run }));
  });
}

/** Renaming tools is linear in the tools and in the calls of a history. */

import { test } from 'bun:test';
import { Notes } from '../../src/conversation/notes.ts';
import type { Conversation, Tool } from '../../src/conversation/types.ts';
import { vendorToolNames } from '../../src/features/tool-names/index.ts';
import { expectLinear } from '../support/growth.ts';

const target = {
  provider: 'p',
  model: 'm',
  protocol: 'openai-chat',
  profile: { name: 'none', reservedTools: ['bash'] },
} as const;

/** Half of the characters are names that a renamed tool might get, half are calls of it. */
function input(size: number): Conversation {
  const tools: Tool[] = [];
  let name = 'bash';
  for (let left = size / 2; left > 0; left -= name.length) {
    tools.push({ type: 'function', name, parameters: {} } as Tool);
    name = `my_${name}`;
  }
  const turns = Array.from({ length: size / 100 }, (_, i) => ({
    role: 'assistant' as const,
    blocks: [
      {
        type: 'tool-call' as const,
        id: `call_${i}`,
        name: 'bash',
        kind: 'function' as const,
        input: '{}',
        by: 'client' as const,
      },
    ],
  }));
  return { model: 'm', system: [], turns, tools, settings: { stream: true } };
}

function run(sent: Conversation): void {
  vendorToolNames.request!(sent, { target, client: 'openai-chat', notes: new Notes(), hop: 1 });
}

test('a reserved name whose substitutes are all taken takes linear time', () =>
  expectLinear({ name: 'substitutes', input, run }));

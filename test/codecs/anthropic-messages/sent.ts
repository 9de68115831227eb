/** Builds conversations of other protocols and encodes them for a Messages upstream. */

import { expect } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import type {
  Block,
  Conversation,
  Role,
  Settings,
  Tool,
  Turn,
} from '../../../src/conversation/types.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { target } from './recorded.ts';
import { faults } from './strict.ts';

export const say = (role: Role, ...blocks: readonly (Block | string)[]): Turn => ({
  role,
  blocks: blocks.map((block) =>
    typeof block === 'string' ? { type: 'text', text: block } : block,
  ),
});

export const call = (
  id: string,
  input = '{}',
  more: Partial<Extract<Block, { type: 'tool-call' }>> = {},
): Block => ({
  type: 'tool-call',
  id,
  name: 'read',
  kind: 'function',
  input,
  by: 'client',
  ...more,
});

export const result = (callId: string, text = 'ok', isError = false): Block => ({
  type: 'tool-result',
  callId,
  kind: 'function',
  content: text === '' ? [] : [{ type: 'text', text }],
  isError,
  by: 'client',
});

export const READ: Tool = {
  type: 'function',
  name: 'read',
  schema: { type: 'object', properties: {} },
};

export function send(
  turns: readonly Turn[],
  more: {
    settings?: Partial<Settings>;
    tools?: readonly Tool[];
    system?: readonly Block[];
    profile?: Partial<Profile>;
  } = {},
) {
  const conversation: Conversation = {
    model: 'm',
    system: more.system ?? [],
    turns,
    tools: more.tools ?? [],
    settings: { stream: false, maxTokens: 4096, ...more.settings },
  };
  const notes = new Notes();
  const body = anthropicMessages.encodeRequest(conversation, target({}, more.profile), notes);
  expect(faults(body)).toEqual([]);
  return {
    body: JSON.parse(JSON.stringify(body)) as JsonObject,
    notes: notes.summary(),
    list: notes.all,
  };
}

export const HI = say('user', 'hi');

/** Builds short conversations and encodes them for Chat vendors. */

import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import type {
  Block,
  Conversation,
  ProtocolName,
  Settings,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../../src/conversation/types.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { target } from './recorded.ts';

export function conversation(
  turns: readonly Turn[],
  more: Partial<Pick<Conversation, 'system' | 'tools'>> & {
    settings?: Partial<Settings>;
    from?: ProtocolName;
  } = {},
): Conversation {
  const parts = {
    model: 'asked',
    system: more.system ?? [],
    turns,
    tools: more.tools ?? [],
    settings: { stream: false, ...more.settings },
  };
  return { ...parts, origin: { protocol: more.from ?? 'anthropic-messages', value: {}, parts } };
}
export const encode = (c: Conversation, profile: Partial<Profile> = {}) => {
  const notes = new Notes();
  const body = openaiChat.encodeRequest(c, target(profile), notes);
  return { body, messages: body.messages as unknown as JsonObject[], notes: notes.summary() };
};
export const own = (body: object, profile: Partial<Profile> = {}) => {
  const { body: out, notes } = encode(
    openaiChat.decodeRequest({
      model: 'model-x',
      messages: [{ role: 'user', content: 'hi' }],
      ...body,
    } as Json),
    profile,
  );
  return { out, notes };
};
export const t = (text: string): Block => ({ type: 'text', text });
export const user = (...blocks: Block[]): Turn => ({ role: 'user', blocks });
export const assistant = (...blocks: Block[]): Turn => ({ role: 'assistant', blocks });
export const call = (id: string, name = 'f', more: Partial<ToolCallBlock> = {}): ToolCallBlock => ({
  type: 'tool-call',
  id,
  name,
  kind: 'function',
  input: '{}',
  by: 'client',
  ...more,
});
export const result = (
  callId: string,
  content: readonly Block[],
  more: Partial<ToolResultBlock> = {},
): ToolResultBlock => ({
  type: 'tool-result',
  callId,
  kind: 'function',
  content,
  isError: false,
  by: 'client',
  ...more,
});
export const image: Block = {
  type: 'media',
  media: 'image',
  source: { type: 'base64', mediaType: 'image/png', data: 'aGk=' },
};
export const shown = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } };
export const wireCall = (id: string, name = 'f', args = '{}') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});

/** Declares the tools that a history calls and its request does not declare. */

import { withParts } from '../../conversation/edit.ts';
import type { Conversation, FunctionTool } from '../../conversation/types.ts';

/**
 * Clients leave the tools out of a request for a summary or a title. The schema is open, and the model may
 * call none of them.
 */
export function withCalledTools(
  conversation: Conversation,
  onDeclared: (name: string) => void,
): Conversation {
  if (conversation.tools.length > 0) return conversation;
  const tools = new Map<string, FunctionTool>();
  for (const { blocks } of conversation.turns) {
    for (const block of blocks) {
      if (block.type !== 'tool-call' || block.by !== 'client') continue;
      const { name, namespace } = block;
      const schema = { type: 'object', properties: {} };
      tools.set(JSON.stringify([namespace, name]), { type: 'function', name, namespace, schema });
    }
  }
  if (tools.size === 0) return conversation;
  for (const { name } of tools.values()) onDeclared(name);
  const settings = { ...conversation.settings, toolChoice: { type: 'none' } as const };
  return withParts(conversation, { tools: [...tools.values()], settings });
}

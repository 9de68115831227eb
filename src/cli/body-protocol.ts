/** Recognises the protocol of a request body from its members alone. */

import type { ProtocolName } from '../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../lib/json/json.ts';
import { objects } from '../lib/json/typed-reads.ts';

const MESSAGES_BLOCKS =
  /^(?:tool_use|tool_result|thinking|redacted_thinking|server_tool_use|.*_tool_result)$/;
const CHAT_ROLES = new Set(['tool', 'function', 'developer']);
const CHAT_PARTS = new Set(['image_url', 'input_audio', 'file']);

/**
 * The only protocol that a body can belong to; undefined when several are possible (a plain dialogue is the same
 * in Chat and Messages), or when it has members of two.
 */
export function bodyProtocol(body: Json): ProtocolName | undefined {
  if (!isObject(body)) return undefined;
  if (body.contents !== undefined && body.messages === undefined) return 'google-gemini';
  if (body.messages === undefined) return body.input === undefined ? undefined : 'openai-responses';
  const messages = isMessages(body);
  const chat = isChat(body);
  if (messages === chat) return undefined;
  return messages ? 'anthropic-messages' : 'openai-chat';
}

function isMessages(body: JsonObject): boolean {
  return (
    body.system !== undefined ||
    body.stop_sequences !== undefined ||
    objects(body.tools).some((tool) => tool.input_schema !== undefined) ||
    objects(body.messages).some(({ content }) =>
      objects(content).some(
        // Mistral's Chat has `thinking` parts too, but they hold a list.
        (block) => MESSAGES_BLOCKS.test(String(block.type)) && !Array.isArray(block.thinking),
      ),
    )
  );
}

function isChat(body: JsonObject): boolean {
  return (
    body.max_completion_tokens !== undefined ||
    objects(body.tools).some((tool) => isObject(tool.function)) ||
    objects(body.messages).some(
      (message, i) =>
        CHAT_ROLES.has(String(message.role)) ||
        (i === 0 && message.role === 'system') ||
        message.tool_calls !== undefined ||
        message.tool_call_id !== undefined ||
        message.function_call !== undefined ||
        objects(message.content).some((part) => CHAT_PARTS.has(String(part.type))),
    )
  );
}

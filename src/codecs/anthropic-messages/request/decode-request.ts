/** Decodes a Messages request body into a conversation. Every node keeps its JSON. */

import { GatewayError } from '../../../conversation/errors.ts';
import { type KnownNodes, NOTHING_KNOWN } from '../../../conversation/session/known-nodes.ts';
import type { Block, Conversation, Turn } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { PROTOCOL, wireOf } from '../wire.ts';
import { decodeContent, decodeSystem, refuse, STRICT_READER } from './decode-blocks.ts';
import { decodeSettings } from './decode-settings.ts';
import { decodeTools } from './decode-tools.ts';

/**
 * @throws GatewayError invalid_request; as at Anthropic, the message begins with the path of the field, and
 * `param` is that path
 */
export function decodeRequest(body: Json, known: KnownNodes = NOTHING_KNOWN): Conversation {
  if (!isObject(body)) refuse('body', 'Input should be a valid dictionary');
  if (body.thread !== undefined && body.thread !== null) throw threadRefused();
  const { model, max_tokens: maxTokens, messages } = body;
  if (typeof model !== 'string') {
    refuse('model', model === undefined ? 'Field required' : 'Input should be a valid string');
  }
  if (maxTokens === undefined) refuse('max_tokens', 'Field required');
  else if (typeof maxTokens !== 'number' || !Number.isInteger(maxTokens)) {
    refuse('max_tokens', 'Input should be a valid integer');
  } else if (maxTokens < 0) {
    refuse('max_tokens', 'Input should be greater than or equal to 0');
  }
  if (!Array.isArray(messages)) {
    refuse('messages', messages === undefined ? 'Field required' : 'Input should be a valid list');
  }
  checkTypes(body);
  const tools = known.tools(body, decodeTools);
  const parts = {
    model,
    system: decodeSystem(body.system, 'system', STRICT_READER),
    turns: messages.map((message: Json, i) => known.turn(message, `messages.${i}`, decodeTurn)),
    tools,
    settings: decodeSettings(body, tools),
  };
  return { ...parts, origin: { protocol: PROTOCOL, value: body, parts } };
}

/** Fields whose type the upstream checks first. Null means "left out". */
const TYPES: Readonly<Record<string, 'boolean' | 'number' | 'object' | 'array'>> = {
  stream: 'boolean',
  temperature: 'number',
  top_p: 'number',
  top_k: 'number',
  stop_sequences: 'array',
  tools: 'array',
  tool_choice: 'object',
  thinking: 'object',
  metadata: 'object',
  output_config: 'object',
};

const EXPECTED = {
  boolean: 'Input should be a valid boolean',
  number: 'Input should be a valid number',
  object: 'Input should be a valid dictionary',
  array: 'Input should be a valid list',
} as const;

function checkTypes(body: JsonObject): void {
  for (const [key, type] of Object.entries(TYPES)) {
    const value = body[key];
    if (value === undefined || value === null) continue;
    const right =
      type === 'array'
        ? Array.isArray(value)
        : type === 'object'
          ? isObject(value)
          : typeof value === type;
    if (!right) refuse(key, EXPECTED[type]);
  }
}

function decodeTurn(message: Json, path: string): Turn {
  if (!isObject(message)) refuse(path, 'Input should be a valid dictionary');
  const { role, content } = message;
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    refuse(
      `${path}.role`,
      role === undefined ? 'Field required' : "Input should be 'user', 'assistant' or 'system'",
    );
  }
  const at = `${path}.content`;
  const blocks =
    role === 'system'
      ? decodeSystem(content, at, STRICT_READER)
      : decodeContent(content, at, STRICT_READER);
  const isUnchanged =
    blocks.every(untouched) &&
    (typeof content === 'string' || (Array.isArray(content) && content.length === blocks.length));
  return isUnchanged
    ? { role, blocks, wire: wireOf(message) }
    : { role, blocks, residue: wireOf(message) };
}

/** May the block go out as it came? Repaired blocks and thinking with an envelope may not. */
const untouched = (block: Block): boolean =>
  block.wire !== undefined && (block.type !== 'tool-result' || block.content.every(untouched));

/**
 * Message threads store the conversation on the server. On this error code the SDK sends the whole request
 * again without a thread.
 */
function threadRefused(): GatewayError {
  return new GatewayError('invalid_request', 'thread: message threads are not supported here', {
    param: 'thread',
    details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
  });
}

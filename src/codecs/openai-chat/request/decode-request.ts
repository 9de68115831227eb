/** Decodes a Chat Completions request body into a conversation, one turn for each message. */

import { invalid, missing, wrongType } from '../../../conversation/errors.ts';
import { type KnownNodes, NOTHING_KNOWN } from '../../../conversation/session/known-nodes.ts';
import type {
  Block,
  Conversation,
  TextBlock,
  Tool,
  ToolCallBlock,
  Turn,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { cacheOf, decodeAnnotations, decodeContent } from '../parts.ts';
import { decodeReturnedReasoning, signatureSeal } from '../reasoning.ts';
import { list, object, PROTOCOL, text, wireOf } from '../wire.ts';
import { decodeSettings } from './decode-settings.ts';
import { decodeTools } from './decode-tools.ts';

/**
 * Every message becomes one turn. A tool message becomes a `user` turn with one result.
 * @throws GatewayError invalid_request with `param` naming the field
 */
export function decodeRequest(body: Json, known: KnownNodes = NOTHING_KNOWN): Conversation {
  if (!isObject(body)) {
    throw invalid('We could not parse the JSON body of your request: expected an object.');
  }
  const { model, messages } = body;
  if (model === undefined || model === null) {
    throw invalid("you must provide a model parameter: 'model' is missing", 'model');
  }
  if (typeof model !== 'string') throw wrongType('model', 'a string', model);
  if (messages === undefined || messages === null) throw missing('messages');
  const sent = list(messages);
  if (sent === undefined) throw wrongType('messages', 'an array of objects', messages);
  if (sent.length === 0) {
    throw invalid(
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      'messages',
    );
  }
  // The ids of freeform calls: their results are freeform too.
  let freeform: Set<string> | undefined;
  const turns: Turn[] = [];
  for (let i = 0; i < sent.length; i++) {
    const where = `messages[${i}]`;
    // Behind a freeform call the same result may be another.
    const turn =
      freeform === undefined
        ? known.turn(sent[i]!, where, decodeMessage)
        : decodeMessage(sent[i]!, where, freeform);
    turns.push(turn);
    if (turn.role !== 'assistant') continue;
    for (const block of turn.blocks) {
      if (block.type !== 'tool-call' || block.kind !== 'custom') continue;
      freeform ??= new Set();
      freeform.add(block.id);
    }
  }
  const system: readonly Block[] = [];
  const others = body.functions !== undefined || body.web_search_options !== undefined;
  const tools = (others ? NOTHING_KNOWN : known).tools(body, decodeTools);
  const settings = decodeSettings(body);
  const parts = { model, system, turns, tools, settings };
  const origin = { protocol: PROTOCOL, value: ownTools(body, tools), parts } as const;
  return { model, system, turns, tools, settings, origin };
}

/** The body as Chat has it: freeform tools without the name beside `custom`. */
const ownTools = (body: JsonObject, tools: readonly Tool[]): JsonObject =>
  tools.some((tool) => tool.type === 'custom' && tool.asFunction === true)
    ? { ...body, tools: (list(body.tools) ?? []).map(ownTool) }
    : body;

function ownTool(tool: Json): Json {
  if (!isObject(tool) || tool.type !== 'custom') return tool;
  const { name: _, ...own } = tool;
  return own;
}

function decodeMessage(message: Json, where: string, freeform?: ReadonlySet<string>): Turn {
  if (!isObject(message)) throw wrongType(where, 'an object', message);
  const wire = wireOf(message);
  const role = message.role;
  switch (role) {
    case 'system':
    case 'developer':
    case 'user':
      if (message.content === undefined || message.content === null) {
        throw invalid(
          `Invalid value for 'content': expected a string, got null.`,
          `${where}.content`,
        );
      }
      return {
        role,
        blocks: marked(decodeContent(message.content, `${where}.content`), message),
        wire,
      };
    case 'assistant':
      return { role, blocks: marked(decodeAssistant(message, where), message), wire };
    case 'tool':
    case 'function':
      return { role: 'user', blocks: [decodeResult(message, role, where, freeform)], wire };
    default:
      if (role === undefined) throw missing(`${where}.role`);
      throw invalid(
        `Invalid value: '${String(role)}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`,
        `${where}.role`,
      );
  }
}

/** A message's own cache mark stands for one on its last block. */
function marked(blocks: readonly Block[], message: JsonObject): readonly Block[] {
  const mark = cacheOf(message);
  if (mark.cache === undefined) return blocks;
  const at = blocks.findLastIndex(({ type }) => TAKES_MARK.has(type));
  return at < 0 ? blocks : blocks.with(at, { ...blocks[at]!, ...mark } as Block);
}

const TAKES_MARK: ReadonlySet<string> = new Set(['text', 'media', 'tool-call', 'tool-result']);

function decodeResult(
  message: JsonObject,
  role: 'tool' | 'function',
  where: string,
  freeform: ReadonlySet<string> | undefined,
): Block {
  // The legacy role `function` names the function instead of the call.
  const callId = text(role === 'tool' ? message.tool_call_id : message.name);
  if (callId === undefined) {
    const param = `${where}.${role === 'tool' ? 'tool_call_id' : 'name'}`;
    throw missing(param);
  }
  return {
    type: 'tool-result',
    callId,
    kind: freeform?.has(callId) ? 'custom' : 'function',
    content: decodeContent(message.content, `${where}.content`),
    isError: false,
    by: 'client',
    ...cacheOf(message),
    wire: wireOf(message),
  };
}

function decodeAssistant(message: JsonObject, where: string): readonly Block[] {
  let blocks: Block[] = [...decodeReturnedReasoning(message)];
  for (const block of cited(decodeContent(message.content, `${where}.content`), message)) {
    blocks.push(block);
  }
  const refusal = text(message.refusal);
  if (refusal) blocks.push({ type: 'refusal', text: refusal });
  const calls = message.tool_calls;
  if (calls !== undefined && calls !== null) {
    const sent = list(calls);
    if (sent === undefined) throw wrongType(`${where}.tool_calls`, 'an array of objects', calls);
    const decoded = sent.map((call, i) => decodeCall(call, `${where}.tool_calls[${i}]`));
    if (blocks.some(({ type }) => type === 'tool-call')) {
      // In both forms: once as a part of the content, once here.
      const ids = new Set(decoded.map(({ id }) => id));
      blocks = blocks.filter((block) => block.type !== 'tool-call' || !ids.has(block.id));
    }
    for (const call of decoded) blocks.push(call);
  }
  const legacy = object(message.function_call);
  const name = text(legacy?.name);
  // Snowflake sends `{name: "", arguments: ""}` beside real calls, and clients send it back.
  if (legacy !== undefined && name) {
    const input = text(legacy.arguments) ?? '';
    blocks.push({ type: 'tool-call', id: name, name, kind: 'function', input, by: 'client' });
  }
  return blocks;
}

/** Puts the annotations of a message on its first text block. */
function cited(blocks: readonly Block[], message: JsonObject): readonly Block[] {
  const citations = decodeAnnotations(message.annotations);
  const at = blocks.findIndex((block) => block.type === 'text');
  if (citations.length === 0 || at < 0) return blocks;
  return blocks.with(at, { ...(blocks[at] as TextBlock), citations });
}

/**
 * One of `tool_calls`. Clients of local servers send arguments as an object, which becomes its JSON text.
 * @throws GatewayError invalid_request
 */
export function decodeCall(call: Json, where: string, provider?: string): ToolCallBlock {
  if (!isObject(call)) throw wrongType(where, 'an object', call);
  const custom = call.type === 'custom' ? object(call.custom) : undefined;
  const target = custom ?? object(call.function);
  const field = custom === undefined ? 'function' : 'custom';
  const name = text(target?.name);
  if (target === undefined || name === undefined) {
    const param = target === undefined ? `${where}.${field}` : `${where}.${field}.name`;
    throw missing(param);
  }
  const id = call.id;
  if (typeof id !== 'string') throw missing(`${where}.id`);
  const raw = custom === undefined ? target.arguments : target.input;
  if (raw !== undefined && raw !== null && typeof raw !== 'string' && !isObject(raw)) {
    const param = `${where}.${field}.${custom === undefined ? 'arguments' : 'input'}`;
    throw wrongType(param, 'a string', raw);
  }
  return {
    type: 'tool-call',
    id,
    name,
    kind: custom === undefined ? 'function' : 'custom',
    input: typeof raw === 'string' ? raw : raw ? JSON.stringify(raw) : '',
    by: 'client',
    ...signatureSeal(call, provider),
    wire: wireOf(call),
  };
}

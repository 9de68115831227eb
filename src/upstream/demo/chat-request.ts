/** Reads a Chat Completions body into what the demo model looks at, or says what is wrong with it. */

import { GatewayError, invalid } from '../../conversation/errors.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { readTail, type Tail } from './chat-tail.ts';
import { estimateTokens } from './token-estimate.ts';

export interface DemoTool {
  readonly kind: 'function' | 'custom';
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
}

export interface DemoRequest extends Tail {
  readonly model: string;
  readonly tools: readonly DemoTool[];
  /** auto and none as in the protocol; forced: at least one of `tools` must be called. */
  readonly choice: 'auto' | 'none' | 'forced';
  readonly parallel: boolean;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly maxTokens: number;
  readonly stop: readonly string[];
  /** Structured output: a schema, or `{}` for any JSON object. */
  readonly format?: JsonObject;
  readonly effort?: string;
  readonly promptTokens: number;
}

/** Each is looked for in the answer; vendors take four to sixteen. */
const MAX_STOPS = 64;

const missing = (param: string) =>
  new GatewayError('invalid_request', `Missing required parameter: '${param}'.`, {
    param,
    code: 'missing_required_parameter',
  });

/** @throws GatewayError invalid_request with `param` naming the field */
export function readRequest(body: Json | undefined): DemoRequest {
  if (!isObject(body)) throw invalid('The body is not a JSON object.');
  if (typeof body.model !== 'string' || body.model === '') throw missing('model');
  const messages = readMessages(body.messages);
  const offered = readTools(body.tools);
  const { choice, tools } = readChoice(body.tool_choice, offered);
  const stop = typeof body.stop === 'string' ? [body.stop] : body.stop;
  const options = isObject(body.stream_options) ? body.stream_options : {};
  return {
    ...readTail(messages),
    model: body.model,
    tools,
    choice,
    parallel: body.parallel_tool_calls !== false,
    stream: body.stream === true,
    includeUsage: options.include_usage === true,
    maxTokens:
      readLimit(body, 'max_completion_tokens') ??
      readLimit(body, 'max_tokens') ??
      Number.POSITIVE_INFINITY,
    stop: Array.isArray(stop)
      ? stop
          .filter((one): one is string => typeof one === 'string' && one !== '')
          .slice(0, MAX_STOPS)
      : [],
    format: readFormat(body.response_format),
    effort: typeof body.reasoning_effort === 'string' ? body.reasoning_effort : undefined,
    promptTokens: countPrompt(messages, offered),
  };
}

const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

function readMessages(value: Json | undefined): readonly JsonObject[] {
  if (value === undefined) throw missing('messages');
  if (!Array.isArray(value))
    throw invalid(`Invalid type for 'messages': expected an array.`, 'messages');
  if (value.length === 0)
    throw invalid(`Invalid 'messages': expected at least one message.`, 'messages');
  // A tool message answers a call of the assistant message before it, and every call is answered:
  // OpenAI refuses anything else, so a broken history shows here as it would there.
  let open = new Set<string>();
  const unanswered = (at: number) => {
    if (open.size === 0) return;
    throw invalid(
      `An assistant message with 'tool_calls' must be followed by tool messages for each 'tool_call_id'; missing: ${[...open].join(', ')}.`,
      `messages[${at}].role`,
    );
  };
  for (const [i, message] of (value as readonly Json[]).entries()) {
    const where = `messages[${i}]`;
    if (!isObject(message)) throw invalid(`Invalid '${where}': expected an object.`, where);
    if (!ROLES.has(String(message.role)))
      throw invalid(`Invalid value for '${where}.role'.`, `${where}.role`);
    if (message.role === 'tool') {
      if (!open.delete(String(message.tool_call_id))) {
        throw invalid(
          `A message with role 'tool' must answer a call in the 'tool_calls' before it.`,
          `${where}.tool_call_id`,
        );
      }
      continue;
    }
    unanswered(i);
    const calls =
      message.role === 'assistant' && Array.isArray(message.tool_calls) ? message.tool_calls : [];
    open = new Set(calls.map((call) => String((call as JsonObject).id)));
  }
  unanswered(value.length);
  return value as readonly JsonObject[];
}

function readTools(value: Json | undefined): readonly DemoTool[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalid(`Invalid type for 'tools': expected an array.`, 'tools');
  return (value as readonly Json[]).map((tool, i) => {
    const kind = isObject(tool) && tool.type === 'custom' ? 'custom' : 'function';
    const inner = isObject(tool) ? tool[kind] : undefined;
    if (!isObject(inner) || typeof inner.name !== 'string' || inner.name === '') {
      throw missing(`tools[${i}].${kind}.name`);
    }
    return {
      kind,
      name: inner.name,
      description: typeof inner.description === 'string' ? inner.description : '',
      schema: isObject(inner.parameters) ? inner.parameters : { type: 'object', properties: {} },
    };
  });
}

function readChoice(
  value: Json | undefined,
  tools: readonly DemoTool[],
): { choice: DemoRequest['choice']; tools: readonly DemoTool[] } {
  if (value === undefined || value === null || value === 'auto') return { choice: 'auto', tools };
  if (value === 'none') return { choice: 'none', tools };
  const wrong = invalid(`Invalid value for 'tool_choice'.`, 'tool_choice');
  if (value === 'required') {
    if (tools.length === 0)
      throw invalid(`'tool_choice' is only allowed with 'tools'.`, 'tool_choice');
    return { choice: 'forced', tools };
  }
  if (!isObject(value)) throw wrong;
  const nameOf = (entry: Json | undefined) => {
    const inner = isObject(entry) ? (entry.function ?? entry.custom ?? entry) : undefined;
    return isObject(inner) ? inner.name : undefined;
  };
  if (value.type === 'allowed_tools' && isObject(value.allowed_tools)) {
    const { mode, tools: allowed } = value.allowed_tools;
    const names = new Set(Array.isArray(allowed) ? allowed.map(nameOf) : []);
    const kept = tools.filter((tool) => names.has(tool.name));
    return { choice: mode === 'required' ? 'forced' : 'auto', tools: kept };
  }
  const name = nameOf(value);
  if (typeof name !== 'string') throw wrong;
  const chosen = tools.filter((tool) => tool.name === name);
  if (chosen.length === 0) {
    throw invalid(`Tool choice '${name}' not found in 'tools' parameter.`, 'tool_choice');
  }
  return { choice: 'forced', tools: chosen };
}

function readLimit(body: JsonObject, key: string): number | undefined {
  const value = body[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1) {
    throw invalid(`Invalid '${key}': expected an integer of at least 1.`, key);
  }
  return value;
}

function readFormat(value: Json | undefined): JsonObject | undefined {
  if (value === undefined || value === null) return undefined;
  const type = isObject(value) ? value.type : undefined;
  if (type === 'text') return undefined;
  if (type === 'json_object') return {};
  if (type !== 'json_schema')
    throw invalid(`Invalid value for 'response_format.type'.`, 'response_format.type');
  const inner = (value as JsonObject).json_schema;
  const schema = isObject(inner) ? inner.schema : undefined;
  if (!isObject(schema)) throw missing('response_format.json_schema.schema');
  return schema;
}

// What a picture or a file counts in the prompt (OpenAI's low-detail image).
const MEDIA_TOKENS = 85;

/** Text by its length, media flat; the base64 of a picture is not read. */
function countPrompt(messages: readonly JsonObject[], tools: readonly DemoTool[]): number {
  let total = 3;
  for (const message of messages) {
    total += 4;
    const { content } = message;
    if (typeof content === 'string') total += estimateTokens(content);
    else if (Array.isArray(content)) {
      for (const part of content as readonly Json[]) {
        const text = isObject(part) ? part.text : undefined;
        total += typeof text === 'string' ? estimateTokens(text) : MEDIA_TOKENS;
      }
    }
    if (Array.isArray(message.tool_calls))
      total += estimateTokens(JSON.stringify(message.tool_calls));
  }
  for (const { name, description, schema } of tools) {
    total += 8 + estimateTokens(name + description) + estimateTokens(JSON.stringify(schema));
  }
  return total;
}

/** Decodes the input and output items of Responses: each item becomes one turn. */

import { invalid, missing, wrongType } from '../../../conversation/errors.ts';
import { openSeal } from '../../../conversation/seal.ts';
import type {
  Block,
  ReasoningBlock,
  Role,
  Sealed,
  ToolKind,
  Turn,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { object, objects, PROTOCOL, text, wireOf } from '../wire.ts';
import { decodePart } from './decode-parts.ts';
import { hostedResult } from './hosted-result.ts';

const ROLES: readonly string[] = ['user', 'assistant', 'system', 'developer'];

/** Item types of hosted calls, and the canonical names of their tools. */
const HOSTED_CALLS: Readonly<Record<string, string>> = {
  web_search_call: 'web_search',
  file_search_call: 'file_search',
  code_interpreter_call: 'code_execution',
  image_generation_call: 'image_generation',
  mcp_call: 'mcp',
};

/**
 * @param path the item's path for error messages: `input[3]`
 * @throws GatewayError invalid_request
 */
export function decodeItem(item: Json, path: string): Turn {
  if (!isObject(item)) throw wrongType(path, 'an object', item);
  const type = item.type ?? (item.role === undefined ? undefined : 'message');
  if (typeof type !== 'string') throw missing(`${path}.type`);
  const wire = wireOf(item);
  switch (type) {
    case 'message':
      return { role: roleOf(item, path), blocks: decodeContent(item, path), wire };
    case 'agent_message':
      return { role: 'user', blocks: decodeContent(item, path), wire };
    case 'function_call':
      return call(item, path, 'function', argumentsOf(item, 'arguments'));
    case 'custom_tool_call':
      return call(item, path, 'custom', argumentsOf(item, 'input'));
    case 'tool_search_call':
      return searchCall(item);
    case 'function_call_output':
      return result(item, path, 'function');
    case 'custom_tool_call_output':
      return result(item, path, 'custom');
    case 'tool_search_output':
      return searchResult(item);
    case 'reasoning':
      return decodeReasoning(item);
    case 'additional_tools':
      return opaque(item, type, item.role === 'system' ? 'system' : 'developer');
    default: {
      const hosted = memberOf(HOSTED_CALLS, type);
      return hosted === undefined
        ? type.endsWith('_output')
          ? opaque(item, type, 'user', outputText(item))
          : opaque(item, type, 'assistant')
        : hostedCall(item, hosted);
    }
  }
}

/**
 * Decodes an item of a request. A hosted call becomes a call block and a result block; in answers it is one
 * block, because clients get it as one item.
 * @throws GatewayError invalid_request
 */
export function decodeInputItem(item: Json, path: string): Turn {
  const turn = decodeItem(item, path);
  const [block] = turn.blocks;
  if (!isObject(item) || block?.type !== 'tool-call' || block.by !== 'provider') return turn;
  const result = hostedResult(item);
  return result === undefined ? turn : { ...turn, blocks: [block, result] };
}

function roleOf(item: JsonObject, path: string): Role {
  const role = item.role;
  if (typeof role === 'string' && ROLES.includes(role)) return role as Role;
  const param = `${path}.role`;
  if (role === undefined) throw missing(param);
  throw invalid(
    `Invalid value: '${String(role)}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.`,
    param,
  );
}

function decodeContent(item: JsonObject, path: string): readonly Block[] {
  const content = item.content;
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (Array.isArray(content)) {
    return content.map((part: Json, i) => decodePart(part, `${path}.content[${i}]`));
  }
  if (content === null || content === undefined) {
    if (item.role === 'assistant') return [];
    const param = `${path}.content`;
    throw missing(param);
  }
  const param = `${path}.content`;
  throw wrongType(param, 'one of an array of objects or string', content);
}

/** Arguments as text; some servers send them as an object. */
function argumentsOf(item: JsonObject, key: string): string {
  const value = item[key];
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

function callIdOf(item: JsonObject, path: string): string {
  const id = text(item.call_id) ?? text(item.id);
  if (id === undefined) throw missing(`${path}.call_id`);
  return id;
}

function call(item: JsonObject, path: string, toolKind: ToolKind, input: string): Turn {
  const name = text(item.name);
  if (name === undefined) throw missing(`${path}.name`);
  const wire = wireOf(item);
  const block: Block = {
    type: 'tool-call',
    id: callIdOf(item, path),
    name,
    namespace: text(item.namespace),
    kind: toolKind,
    input,
    by: 'client',
    wire,
  };
  return { role: 'assistant', blocks: [block], wire };
}

function result(item: JsonObject, path: string, toolKind: ToolKind): Turn {
  const wire = wireOf(item);
  const block: Block = {
    type: 'tool-result',
    callId: callIdOf(item, path),
    kind: toolKind,
    content: outputOf(item, path),
    isError: false,
    by: 'client',
    wire,
  };
  return { role: 'user', blocks: [block], wire };
}

function outputOf(item: JsonObject, path: string): readonly Block[] {
  const output = item.output;
  if (typeof output === 'string') return [{ type: 'text', text: output }];
  if (Array.isArray(output)) {
    return output.map((part: Json, i) => decodePart(part, `${path}.output[${i}]`));
  }
  if (output === undefined || output === null) throw missing(`${path}.output`);
  // Against the specification, but unambiguous: the tool's output as JSON.
  return [{ type: 'text', text: JSON.stringify(output) }];
}

/** A tool search: run by the client, or by the vendor (`execution: "server"`). */
function searchCall(item: JsonObject): Turn {
  const wire = wireOf(item);
  const block: Block = {
    type: 'tool-call',
    id: text(item.call_id) ?? text(item.id) ?? '',
    name: 'tool_search',
    kind: 'tool-search',
    input: argumentsOf(item, 'arguments'),
    by: item.execution === 'server' ? 'provider' : 'client',
    wire,
  };
  return { role: 'assistant', blocks: [block], wire };
}

function searchResult(item: JsonObject): Turn {
  const wire = wireOf(item);
  const names = objects(item.tools).flatMap((tool) =>
    tool.type === 'namespace'
      ? objects(tool.tools).map((inner) => `${tool.name}__${inner.name}`)
      : [`${tool.name ?? tool.type}`],
  );
  const found =
    names.length === 0 ? 'No tools found.' : `Tools now available: ${names.join(', ')}.`;
  const block: Block = {
    type: 'tool-result',
    callId: text(item.call_id) ?? text(item.id) ?? '',
    kind: 'tool-search',
    content: [{ type: 'text', text: found }],
    isError: false,
    by: item.execution === 'server' ? 'provider' : 'client',
    wire,
  };
  return { role: 'user', blocks: [block], wire };
}

/**
 * `content` is the reasoning itself, `summary` its readable summary. A payload that is one of the gateway's
 * envelopes is opened. No vendor made such an item, so it has no `wire`, and its text is the original
 * reasoning instead of a summary.
 */
export function decodeReasoning(item: JsonObject, provider?: string): Turn {
  const content = objects(item.content).map((part) => text(part.text) ?? '');
  const summary = objects(item.summary).map((part) => text(part.text) ?? '');
  const hasContent = content.some((part) => part !== '');
  const payload = text(item.encrypted_content);
  const opened = payload === undefined ? undefined : openSeal(payload);
  const isEnvelope = opened !== undefined;
  const sealed: Sealed | undefined =
    opened ??
    (payload === undefined || payload === ''
      ? undefined
      : { protocol: PROTOCOL, provider, kind: 'encrypted', value: payload });
  const visibleText = hasContent ? content.join('') : summary.join('\n\n');
  const isSummary =
    !hasContent && visibleText !== '' && (!isEnvelope || opened.protocol === PROTOCOL);
  const wire = wireOf(item);
  const block: ReasoningBlock = {
    type: 'reasoning',
    text: visibleText,
    summary: isSummary || undefined,
    sealed,
    ...(isEnvelope ? {} : { wire }),
  };
  return { role: 'assistant', blocks: [block], ...(isEnvelope ? {} : { wire }) };
}

function hostedCall(item: JsonObject, name: string): Turn {
  const wire = wireOf(item);
  const input = object(item.action) ?? item.arguments ?? item.queries ?? item.code;
  const block: Block = {
    type: 'tool-call',
    id: text(item.id) ?? text(item.call_id) ?? '',
    name: name === 'mcp' ? (text(item.name) ?? name) : name,
    kind: 'function',
    input: typeof input === 'string' ? input : input === undefined ? '' : JSON.stringify(input),
    by: 'provider',
    wire,
  };
  return { role: 'assistant', blocks: [block], wire };
}

function opaque(item: JsonObject, name: string, role: Role, words?: string): Turn {
  const wire = wireOf(item);
  return { role, blocks: [{ type: 'opaque', name, text: words, wire }], wire };
}

/** Vendors without the client's tool still need its output, or the model acts blindly. */
function outputText({ output }: JsonObject): string | undefined {
  const parts =
    typeof output === 'string'
      ? [output]
      : objects(output).flatMap((part) =>
          ['stdout', 'stderr', 'text'].map((key) => text(part[key]) ?? ''),
        );
  const said = parts.filter((part) => part !== '').join('\n');
  return said === '' ? undefined : `Result of an earlier tool call: ${said}`;
}

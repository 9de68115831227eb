/** Reads the parts of a request that scripts need, in any of the three protocols. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import type { Protocol } from './answer.ts';
import { isRecord } from './refusal.ts';

const list = (value: unknown): JsonObject[] =>
  (Array.isArray(value) ? value : []).filter(isRecord) as JsonObject[];

const textOf = (content: Json | undefined): string => {
  if (typeof content === 'string') return content;
  return list(content)
    .map((part) => (typeof part.text === 'string' ? part.text : ''))
    .join('');
};

/** The names of the tools that a request declares, including those in namespaces. */
export function toolNames(protocol: Protocol, body: JsonObject): string[] {
  return list(body.tools).flatMap((tool) => {
    if (protocol !== 'openai-chat') {
      const inner = list(tool.tools).map((one) => String(one.name));
      return tool.type === 'namespace' ? inner : [String(tool.name ?? tool.type)];
    }
    const inner = (tool.function ?? tool.custom) as JsonObject | undefined;
    return [String(inner?.name)];
  });
}

/** The text of every tool result of a request, by the id of its call. */
export function toolResults(protocol: Protocol, body: JsonObject): Map<string, string> {
  if (protocol === 'openai-responses') {
    const outputs = list(body.input).filter((item) => String(item.type).endsWith('_output'));
    return new Map(outputs.map((item) => [String(item.call_id), textOf(item.output)]));
  }
  const messages = list(body.messages);
  if (protocol === 'openai-chat') {
    const tools = messages.filter((message) => message.role === 'tool');
    return new Map(tools.map((one) => [String(one.tool_call_id), textOf(one.content)]));
  }
  const results = messages
    .flatMap((message) => list(message.content))
    .filter((block) => block.type === 'tool_result');
  return new Map(results.map((one) => [String(one.tool_use_id), textOf(one.content)]));
}

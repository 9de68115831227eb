/** Reads the parts of a request that scripts need, in any of the protocols. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import type { FakeProtocol } from './answer.ts';
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
export function toolNames(protocol: FakeProtocol, body: JsonObject): string[] {
  if (protocol === 'google-gemini') {
    return list(body.tools).flatMap((tool) => [
      ...list(tool.functionDeclarations).map((one) => String(one.name)),
      ...Object.keys(tool).filter((key) => key !== 'functionDeclarations'),
    ]);
  }
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
export function toolResults(protocol: FakeProtocol, body: JsonObject): Map<string, string> {
  if (protocol === 'openai-responses') {
    const outputs = list(body.input).filter((item) => String(item.type).endsWith('_output'));
    return new Map(outputs.map((item) => [String(item.call_id), textOf(item.output)]));
  }
  if (protocol === 'google-gemini') {
    const responses = list(body.contents)
      .flatMap((content) => list(content.parts))
      .flatMap((part) => (isRecord(part.functionResponse) ? [part.functionResponse] : []));
    return new Map(
      responses.map((one, i) => {
        const { output, error } = one.response as JsonObject;
        return [String(one.id ?? i), String(output ?? error)];
      }),
    );
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

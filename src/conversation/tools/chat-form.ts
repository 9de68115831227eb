/** Tools and the choice among them in the form of Anthropic or of Responses, as Chat has them: its vendors refuse others. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';

const MODES: Readonly<Record<string, string>> = {
  auto: 'auto',
  none: 'none',
  required: 'required',
  any: 'required',
};

const isName = (value: Json | undefined): value is string =>
  typeof value === 'string' && value !== '';

/** A function in the form of Responses (`type`, `name`, `parameters`) or Anthropic's (`name`, `input_schema`). */
const isForeignTool = (tool: Json): tool is JsonObject & { readonly name: string } =>
  isObject(tool) &&
  isName(tool.name) &&
  tool.function === undefined &&
  (isObject(tool.input_schema) || tool.type === 'function');

/** The choice as Chat has it; undefined: it is Chat's own, or what it means is not certain. */
function chatChoice(choice: Json | undefined): Json | undefined {
  if (!isObject(choice) || typeof choice.type !== 'string') return undefined;
  const { type, name, mode, tools } = choice;
  if (isName(name)) {
    if (type === 'custom') return { type, custom: { name } };
    if (type === 'function' || type === 'tool') return { type: 'function', function: { name } };
  }
  if (type === 'allowed_tools' && mode !== undefined && Array.isArray(tools)) {
    return { type, allowed_tools: { mode, tools: tools.map((one) => chatChoice(one) ?? one) } };
  }
  return Object.hasOwn(MODES, type) ? MODES[type] : undefined;
}

/** Has the body of Chat tools or a choice of another API? */
export const hasForeignTools = (body: Json): body is JsonObject =>
  isObject(body) &&
  (chatChoice(body.tool_choice) !== undefined ||
    (Array.isArray(body.tools) && body.tools.some(isForeignTool)));

/** The body with tools and choice as Chat has them. @param onRead hears of the members that had another form */
export function withChatTools(body: JsonObject, onRead: (member: string) => void): JsonObject {
  const out: { [name: string]: Json | undefined } = { ...body };
  if (Array.isArray(body.tools) && body.tools.some(isForeignTool)) {
    onRead('tools');
    out.tools = body.tools.map((tool) => (isForeignTool(tool) ? chatTool(tool) : tool));
  }
  const choice = chatChoice(body.tool_choice);
  if (choice !== undefined) {
    onRead('tool_choice');
    out.tool_choice = choice;
    const { disable_parallel_tool_use: disabled } = body.tool_choice as JsonObject;
    if (disabled === true) out.parallel_tool_calls ??= false;
  }
  return out;
}

function chatTool({ name, description, parameters, input_schema, strict, ...rest }: JsonObject) {
  const schema = parameters ?? input_schema;
  const { cache_control: mark } = rest;
  const declared = {
    name: name!,
    ...(description !== undefined && { description }),
    ...(schema !== undefined && { parameters: schema }),
    ...(strict !== undefined && { strict }),
  };
  return {
    type: 'function',
    function: declared,
    ...(mark !== undefined && { cache_control: mark }),
  };
}

/** Checks a Messages request's tools and tool choice. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { fail, fields } from './check-messages-fields.ts';
import type { Fields } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';

const CUSTOM: Fields = {
  name: 'string',
  type: 'string?',
  description: 'string',
  input_schema: 'object',
  allowed_callers: 'array',
  cache_control: 'object?',
  defer_loading: 'boolean',
  eager_input_streaming: 'boolean?',
  input_examples: 'array',
  strict: 'boolean',
};

const SERVER =
  /^(bash|code_execution|browser_toolset|memory|computer|computer_toolset|text_editor|web_search|web_fetch|tool_search_tool_bm25|tool_search_tool_regex|advisor)_(20\d{6})$|^mcp_toolset$/;

function checkTool(tool: Json, at: string): void {
  if (!isRecord(tool)) fail(at, 'Input should be a valid dictionary');
  const value = tool as Record<string, Json>;
  if (value.type !== undefined && value.type !== null && value.type !== 'custom') {
    if (SERVER.test(String(value.type))) return;
    fail(
      at,
      `Input tag '${String(value.type)}' found using 'type' does not match any of the expected tags: 'bash_20250124', 'custom', 'text_editor_20250124', 'text_editor_20250429', 'text_editor_20250728', 'web_search_20250305'`,
    );
  }
  fields(value, CUSTOM, ['name', 'input_schema'], `${at}.custom`);
  if (!/^[a-zA-Z0-9_-]{1,128}$/.test(String(value.name))) {
    fail(`${at}.custom.name`, "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'");
  }
  const schema = value.input_schema as JsonObject;
  if (schema.type === undefined) fail(`${at}.custom.input_schema.type`, 'Field required');
  if (schema.type !== 'object') {
    fail(`${at}.custom.input_schema.type`, "Input should be 'object'");
  }
  for (const key of ['oneOf', 'allOf', 'anyOf']) {
    if (schema[key] === undefined) continue;
    fail(
      `${at}.custom.input_schema`,
      'input_schema does not support oneOf, allOf, or anyOf at the top level',
    );
  }
}

function checkChoice(choice: Record<string, Json>, tools: readonly Json[]): void {
  const kinds = ['any', 'auto', 'none', 'tool'];
  const kind = String(choice.type);
  if (!kinds.includes(kind)) {
    const tags = kinds.map((one) => `'${one}'`).join(', ');
    fail(
      'tool_choice',
      `Input tag '${kind}' found using 'type' does not match any of the expected tags: ${tags}`,
    );
  }
  const shape: Fields = {
    type: 'string',
    ...(kind === 'none' ? {} : { disable_parallel_tool_use: 'boolean' }),
    ...(kind === 'tool' ? { name: 'string' } : {}),
  };
  fields(choice, shape, kind === 'tool' ? ['name'] : [], `tool_choice.${kind}`);
  if (tools.length === 0 && kind !== 'none') {
    refuseWith('tool_choice may only be specified while providing tools.');
  }
  const named = tools.some((tool) => isRecord(tool) && tool.name === choice.name);
  if (kind === 'tool' && !named) {
    refuseWith(`Tool '${String(choice.name)}' not found in provided tools`);
  }
}

/** Whether the history holds calls or results, whose tools the vendor requires to be declared. */
function usesTools(messages: readonly Json[]): boolean {
  return messages.some(
    (message) =>
      isRecord(message) &&
      Array.isArray(message.content) &&
      message.content.some((block) => isRecord(block) && block.type === 'tool_use'),
  );
}

/** @throws Refusal with Anthropic's message */
export function checkMessagesTools(body: JsonObject): void {
  const tools = (body.tools ?? []) as Json[];
  const names = new Set<string>();
  tools.forEach((tool, i) => {
    checkTool(tool, `tools.${i}`);
    const name = String((tool as JsonObject).name);
    if (names.has(name)) refuseWith('tools: Tool names must be unique.');
    names.add(name);
  });
  if (isRecord(body.tool_choice)) checkChoice(body.tool_choice, tools);
  if (tools.length === 0 && usesTools(body.messages as Json[])) {
    refuseWith(
      'Requests which have `tool_use` or `tool_result` blocks in `messages` must define tools.',
    );
  }
}

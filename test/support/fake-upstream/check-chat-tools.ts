/** Checks a Chat request's tools and tool choice. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import {
  expectAtMost,
  expectFields,
  expectFilled,
  expectName,
  expectOneOf,
  expectSchema,
  expectType,
} from './check-openai-fields.ts';
import { isRecord, refuseWith } from './refusal.ts';

function checkTool(tool: Json, at: string): void {
  expectType(tool, 'object', at);
  if (!isRecord(tool)) return;
  expectOneOf(tool.type, ['function', 'custom'], `${at}.type`);
  if (tool.type === 'custom') {
    expectFields(tool, { type: 'string', custom: 'object' }, ['custom'], at);
    expectName((tool.custom as JsonObject).name, `${at}.custom.name`);
    return;
  }
  expectFields(tool, { type: 'string', function: 'object' }, ['function'], at);
  const fn = tool.function as Record<string, Json>;
  expectFields(
    fn,
    { name: 'string', description: 'string?', parameters: 'object?', strict: 'boolean?' },
    ['name'],
    `${at}.function`,
  );
  expectName(fn.name, `${at}.function.name`);
  expectSchema(fn.parameters, fn.strict === true, String(fn.name), `${at}.function.parameters`);
}

/** @throws Refusal with OpenAI's message */
export function checkChatTools(body: JsonObject): void {
  const tools = body.tools;
  if (Array.isArray(tools)) {
    expectFilled(tools, 'tools');
    expectAtMost(tools, 128, 'tools');
    tools.forEach((tool, i) => {
      checkTool(tool, `tools[${i}]`);
    });
  }
  for (const key of ['tool_choice', 'parallel_tool_calls']) {
    if (body[key] === undefined || body[key] === null || Array.isArray(tools)) continue;
    if (body[key] === 'none') continue;
    refuseWith(
      `Invalid value for '${key}': '${key}' is only allowed when 'tools' are specified.`,
      key,
    );
  }
  const choice = body.tool_choice;
  if (typeof choice === 'string') {
    expectOneOf(choice, ['none', 'auto', 'required'], 'tool_choice');
  } else if (isRecord(choice)) {
    expectOneOf(choice.type, ['function', 'allowed_tools', 'custom'], 'tool_choice.type');
    if (choice.type === 'function') {
      expectFields(choice, { type: 'string', function: 'object' }, ['function'], 'tool_choice');
      const name = (choice.function as JsonObject).name;
      expectName(name, 'tool_choice.function.name');
      const names = (tools as JsonObject[]).map((tool) => (tool.function as JsonObject)?.name);
      if (!names.includes(name)) {
        refuseWith(`Tool choice 'function' '${String(name)}' not found in 'tools'.`, 'tool_choice');
      }
    }
  } else if (choice !== undefined && choice !== null) {
    expectType(choice, 'string', 'tool_choice');
  }
}

/** Checks a Responses request, with OpenAI's messages and codes. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import {
  expectAtMost,
  expectFields,
  expectLength,
  expectName,
  expectOneOf,
  expectRange,
  expectSchema,
  expectType,
} from './check-openai-fields.ts';
import { checkInput } from './check-responses-input.ts';
import type { Fields, Strictness } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';

const TOP: Fields = {
  model: 'string',
  input: 'any',
  background: 'boolean?',
  // Sent by Codex with every request.
  client_metadata: 'object?',
  context_management: 'array?',
  conversation: 'any',
  include: 'array?',
  instructions: 'string?',
  max_output_tokens: 'integer?',
  max_tool_calls: 'integer?',
  metadata: 'object?',
  moderation: 'object?',
  parallel_tool_calls: 'boolean?',
  previous_response_id: 'string?',
  prompt: 'object?',
  prompt_cache_key: 'string?',
  prompt_cache_options: 'object?',
  prompt_cache_retention: 'string?',
  reasoning: 'object?',
  safety_identifier: 'string?',
  service_tier: 'string?',
  store: 'boolean?',
  stream: 'boolean?',
  stream_options: 'object?',
  temperature: 'number?',
  text: 'object?',
  tool_choice: 'any',
  tools: 'array?',
  top_logprobs: 'integer?',
  top_p: 'number?',
  truncation: 'string?',
  user: 'string?',
};

const INCLUDE = [
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
];

const TOOLS = [
  'function',
  'custom',
  'namespace',
  'web_search',
  'web_search_preview',
  'file_search',
  'code_interpreter',
  'mcp',
  'image_generation',
  'local_shell',
  'shell',
  'apply_patch',
  'tool_search',
  'computer',
  'computer_use_preview',
];

const FUNCTION: Fields = {
  type: 'string',
  name: 'string',
  description: 'string?',
  parameters: 'object?',
  strict: 'boolean?',
  defer_loading: 'boolean',
  allowed_callers: 'array?',
  output_schema: 'object?',
};

function checkTool(tool: Json, at: string): void {
  expectType(tool, 'object', at);
  if (!isRecord(tool)) return;
  const kind = String(tool.type);
  if (!TOOLS.some((one) => kind === one || kind.startsWith(`${one}_20`))) {
    expectOneOf(tool.type, TOOLS, `${at}.type`);
  }
  if (kind === 'function') {
    expectFields(tool, FUNCTION, ['name'], at);
    expectName(tool.name, `${at}.name`);
    expectSchema(tool.parameters, tool.strict === true, String(tool.name), `${at}.parameters`);
  }
  if (kind === 'custom') {
    const fields: Fields = {
      type: 'string',
      name: 'string',
      description: 'string?',
      format: 'object?',
      defer_loading: 'boolean',
    };
    expectFields(tool, fields, ['name'], at);
  }
  if (kind === 'namespace') {
    expectFields(
      tool,
      { type: 'string', name: 'string', description: 'string?', tools: 'array' },
      ['name', 'tools'],
      at,
    );
    (tool.tools as Json[]).forEach((one, i) => {
      checkTool(one, `${at}.tools[${i}]`);
    });
  }
}

function checkTools(body: JsonObject): void {
  const tools = Array.isArray(body.tools) ? body.tools : [];
  expectAtMost(tools, 128, 'tools');
  tools.forEach((tool, i) => {
    checkTool(tool, `tools[${i}]`);
  });
  const choice = body.tool_choice;
  if (choice === undefined || choice === null) return;
  if (typeof choice === 'string') {
    expectOneOf(choice, ['none', 'auto', 'required'], 'tool_choice');
    if (choice === 'required' && tools.length === 0) {
      refuseWith("Tool choice 'required' must be specified with 'tools' parameter.", 'tool_choice');
    }
    return;
  }
  expectType(choice, 'object', 'tool_choice');
  const wanted = choice as JsonObject;
  if (wanted.type === 'function' || wanted.type === 'custom') {
    const found = tools.some((tool) => isRecord(tool) && tool.name === wanted.name);
    if (typeof wanted.name !== 'string') {
      refuseWith(
        "Missing required parameter: 'tool_choice.name'.",
        'tool_choice.name',
        'missing_required_parameter',
      );
    }
    if (!found) {
      refuseWith(`Tool choice '${wanted.type}' not found in 'tools' parameter.`, 'tool_choice');
    }
  }
}

function checkShape(body: JsonObject): void {
  expectRange(body.temperature, 'temperature', 0, 2);
  expectRange(body.top_p, 'top_p', 0, 1);
  expectRange(body.max_output_tokens, 'max_output_tokens', 16, 1_000_000);
  expectLength(body.prompt_cache_key, 64, 'prompt_cache_key');
  if (isRecord(body.reasoning)) {
    const fields: Fields = {
      effort: 'string?',
      summary: 'string?',
      generate_summary: 'string?',
      mode: 'string?',
      context: 'string?',
    };
    expectFields(body.reasoning, fields, [], 'reasoning');
    if (typeof body.reasoning.effort === 'string') {
      const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
      expectOneOf(body.reasoning.effort, efforts, 'reasoning.effort');
    }
    if (typeof body.reasoning.summary === 'string') {
      expectOneOf(body.reasoning.summary, ['auto', 'concise', 'detailed'], 'reasoning.summary');
    }
  }
  if (Array.isArray(body.include)) {
    body.include.forEach((one, i) => {
      expectOneOf(one, INCLUDE, `include[${i}]`);
    });
  }
  if (isRecord(body.stream_options)) {
    expectFields(body.stream_options, { include_obfuscation: 'boolean?' }, [], 'stream_options');
  }
  if (!isRecord(body.text)) return;
  expectFields(body.text, { format: 'object?', verbosity: 'string?' }, [], 'text');
  const format = body.text.format;
  if (!isRecord(format)) return;
  expectOneOf(format.type, ['text', 'json_object', 'json_schema'], 'text.format.type');
  if (format.type !== 'json_schema') return;
  const fields: Fields = {
    type: 'string',
    name: 'string',
    schema: 'object',
    strict: 'boolean?',
    description: 'string?',
  };
  expectFields(format, fields, ['name', 'schema'], 'text.format');
}

/** @throws Refusal with OpenAI's message */
export function checkResponses(
  body: JsonObject,
  _headers: Record<string, string>,
  strictness: Strictness,
): void {
  expectFields(body as Record<string, Json>, TOP, ['model'], '', strictness.lenientFields);
  if (body.model === '') {
    refuseWith("Missing required parameter: 'model'.", 'model', 'missing_required_parameter');
  }
  checkShape(body);
  checkTools(body);
  checkInput(body, strictness);
}

/** Checks a Chat Completions request, with OpenAI's messages and codes. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { checkChatMessages } from './check-chat-messages.ts';
import { checkChatTools } from './check-chat-tools.ts';
import {
  expectAtMost,
  expectFields,
  expectFilled,
  expectLength,
  expectOneOf,
  expectRange,
} from './check-openai-fields.ts';
import type { Fields, Strictness } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';

const TOP: Fields = {
  model: 'string',
  messages: 'array',
  audio: 'object?',
  frequency_penalty: 'number?',
  function_call: 'any',
  functions: 'array?',
  logit_bias: 'object?',
  logprobs: 'boolean?',
  max_completion_tokens: 'integer?',
  max_tokens: 'integer?',
  metadata: 'object?',
  modalities: 'array?',
  moderation: 'object?',
  n: 'integer?',
  parallel_tool_calls: 'boolean?',
  prediction: 'object?',
  presence_penalty: 'number?',
  prompt_cache_key: 'string?',
  prompt_cache_options: 'object?',
  prompt_cache_retention: 'string?',
  reasoning_effort: 'string?',
  response_format: 'object?',
  safety_identifier: 'string?',
  seed: 'integer?',
  service_tier: 'string?',
  stop: 'any',
  store: 'boolean?',
  stream: 'boolean?',
  stream_options: 'object?',
  temperature: 'number?',
  tool_choice: 'any',
  tools: 'array?',
  top_logprobs: 'integer?',
  top_p: 'number?',
  user: 'string?',
  verbosity: 'string?',
  web_search_options: 'object?',
};

function checkSampling(body: JsonObject): void {
  expectRange(body.temperature, 'temperature', 0, 2);
  expectRange(body.top_p, 'top_p', 0, 1);
  expectRange(body.frequency_penalty, 'frequency_penalty', -2, 2);
  expectRange(body.presence_penalty, 'presence_penalty', -2, 2);
  expectRange(body.max_tokens, 'max_tokens', 1, 1_000_000);
  expectRange(body.max_completion_tokens, 'max_completion_tokens', 1, 1_000_000);
  if (typeof body.max_tokens === 'number' && typeof body.max_completion_tokens === 'number') {
    refuseWith(
      "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
      'max_tokens',
    );
  }
  if (Array.isArray(body.stop)) {
    expectFilled(body.stop, 'stop');
    expectAtMost(body.stop, 4, 'stop');
  } else if (body.stop !== undefined && body.stop !== null && typeof body.stop !== 'string') {
    refuseWith("Invalid type for 'stop': expected a string or an array.", 'stop', 'invalid_type');
  }
  if (typeof body.reasoning_effort === 'string') {
    const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
    expectOneOf(body.reasoning_effort, efforts, 'reasoning_effort');
  }
  if (typeof body.top_logprobs === 'number' && body.logprobs !== true) {
    refuseWith(
      "Invalid value for 'top_logprobs': 'top_logprobs' is only allowed when 'logprobs' is enabled.",
      'top_logprobs',
    );
  }
  expectLength(body.prompt_cache_key, 64, 'prompt_cache_key');
}

function checkStreaming(body: JsonObject): void {
  if (!isRecord(body.stream_options)) return;
  if (body.stream !== true) {
    refuseWith(
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      'stream_options',
    );
  }
  const fields: Fields = { include_usage: 'boolean?', include_obfuscation: 'boolean?' };
  expectFields(body.stream_options, fields, [], 'stream_options');
}

function checkFormat(body: JsonObject): void {
  const format = body.response_format;
  if (!isRecord(format)) return;
  expectOneOf(format.type, ['json_object', 'json_schema', 'text'], 'response_format.type');
  if (format.type === 'json_schema') {
    expectFields(
      format,
      { type: 'string', json_schema: 'object' },
      ['json_schema'],
      'response_format',
    );
    expectFields(
      format.json_schema as Record<string, Json>,
      { name: 'string', schema: 'object', strict: 'boolean?', description: 'string?' },
      ['name'],
      'response_format.json_schema',
    );
  }
  if (format.type === 'json_object' && !/json/i.test(JSON.stringify(body.messages))) {
    refuseWith(
      "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
      'messages',
    );
  }
}

/** @throws Refusal with OpenAI's message */
export function checkChat(
  body: JsonObject,
  _headers: Record<string, string>,
  strictness: Strictness,
): void {
  if (typeof body.model !== 'string' || body.model === '') {
    refuseWith('you must provide a model parameter');
  }
  if (!strictness.lenientFields) {
    const unknown = Object.keys(body).find((key) => TOP[key] === undefined);
    if (unknown !== undefined) refuseWith(`Unrecognized request argument supplied: ${unknown}`);
  }
  const known = Object.entries(body).filter(([key]) => TOP[key] !== undefined);
  expectFields(Object.fromEntries(known) as Record<string, Json>, TOP, ['messages'], '');
  checkSampling(body);
  checkStreaming(body);
  checkFormat(body);
  checkChatTools(body);
  checkChatMessages(body.messages as Json[], strictness);
}

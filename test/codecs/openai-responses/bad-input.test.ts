/** Invalid input is refused with the API's error message and the field at fault. */

import { describe, expect, test } from 'bun:test';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { GatewayError } from '../../../src/conversation/errors.ts';
import type { Json } from '../../../src/lib/json/json.ts';
import { conversation } from './material.ts';

describe("bad input is refused with the API's message, naming the field", () => {
  const item = (value: Json) => ({ model: 'm', input: [{ role: 'user', content: 'x' }, value] });
  test.each<[Json, string | undefined, string]>([
    [[], undefined, 'expected a JSON object'],
    [{ input: 'i' }, 'model', "Missing required parameter: 'model'."],
    [
      { model: 7, input: 'i' },
      'model',
      "Invalid type for 'model': expected a string, but got an integer instead.",
    ],
    [{ model: 'm' }, 'input', "Missing required parameter: 'input'."],
    [{ model: 'm', input: 7 }, 'input', 'but got an integer instead'],
    [
      { model: 'm', input: 'i', tools: {} },
      'tools',
      'expected an array of objects, but got an object instead',
    ],
    [
      { model: 'm', input: 'i', tools: [{ name: 'f' }] },
      'tools[0].type',
      "Missing required parameter: 'tools[0].type'.",
    ],
    [
      { model: 'm', input: 'i', tools: [{ type: 'function' }] },
      'tools[0].name',
      "Missing required parameter: 'tools[0].name'.",
    ],
    [{ model: 'm', input: 'i', tools: [7] }, 'tools[0]', "Invalid type for 'tools[0]'"],
    [
      { model: 'm', input: 'i', tool_choice: 'perhaps' },
      'tool_choice',
      "Invalid value: 'perhaps'. Supported values are: 'none', 'auto', and 'required'.",
    ],
    [
      { model: 'm', input: 'i', tool_choice: { type: 'function' } },
      'tool_choice.name',
      'tool_choice.name',
    ],
    [
      { model: 'm', input: 'i', temperature: 'hot' },
      'temperature',
      "Invalid type for 'temperature': expected a number, but got a string instead.",
    ],
    [{ model: 'm', input: 'i', stream: 'yes' }, 'stream', 'expected a boolean'],
    [{ model: 'm', input: 'i', include: 'x' }, 'include', 'expected an array of strings'],
    [{ model: 'm', input: 'i', instructions: 7 }, 'instructions', 'expected a string'],
    [item(7), 'input[1]', "Invalid type for 'input[1]'"],
    [item({}), 'input[1].type', "Missing required parameter: 'input[1].type'."],
    [
      item({ role: 'king', content: 'x' }),
      'input[1].role',
      "Invalid value: 'king'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
    ],
    [
      item({ type: 'message', content: 'x' }),
      'input[1].role',
      "Missing required parameter: 'input[1].role'.",
    ],
    [
      item({ role: 'user', content: 7 }),
      'input[1].content',
      'expected one of an array of objects or string, but got an integer instead',
    ],
    [item({ role: 'user' }), 'input[1].content', "Missing required parameter: 'input[1].content'."],
    [
      item({ role: 'user', content: [{ text: 'x' }] }),
      'input[1].content[0].type',
      'Missing required parameter',
    ],
    [
      item({ role: 'user', content: [{ type: 'input_text' }] }),
      'input[1].content[0].text',
      'Missing required parameter',
    ],
    [
      item({ role: 'user', content: [{ type: 'input_image' }] }),
      'input[1].content[0].image_url',
      'Missing required parameter',
    ],
    [
      item({ role: 'user', content: [{ type: 'input_file' }] }),
      'input[1].content[0].file_id',
      'Missing required parameter',
    ],
    [item({ type: 'function_call', call_id: 'c' }), 'input[1].name', 'Missing required parameter'],
    [item({ type: 'function_call', name: 'f' }), 'input[1].call_id', 'Missing required parameter'],
    [
      item({ type: 'function_call_output', output: 'x' }),
      'input[1].call_id',
      'Missing required parameter',
    ],
    [
      item({ type: 'function_call_output', call_id: 'c' }),
      'input[1].output',
      'Missing required parameter',
    ],
  ])('%j', (body, param, text) => {
    let error: unknown;
    try {
      openaiResponses.decodeRequest(body);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(GatewayError);
    const { kind, param: named, message } = error as GatewayError;
    expect([kind, named]).toEqual(['invalid_request', param]);
    expect(message).toContain(text);
  });

  test('server-side state may replace input', () => {
    expect(conversation({ model: 'm', previous_response_id: 'resp_1' }).turns).toEqual([]);
  });
});

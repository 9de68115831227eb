/** Invalid Messages requests are refused with the path of the field; unusual ones that the API accepts are not. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { GatewayError } from '../../../src/conversation/errors.ts';
import type { Json } from '../../../src/lib/json/json.ts';

const base = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] };
const withContent = (content: Json, role = 'user') => ({ ...base, messages: [{ role, content }] });

function refusal(body: Json): GatewayError {
  try {
    anthropicMessages.decodeRequest(body);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('a broken request is refused, and the error names the broken field', () => {
  const cases: readonly (readonly [string, Json, string, string?])[] = [
    ['a list', [], 'body'],
    ['null', null, 'body'],
    ['text', 'hello', 'body'],
    ['no model', { max_tokens: 1, messages: [] }, 'model', 'Field required'],
    ['model a number', { ...base, model: 3 }, 'model', 'valid string'],
    ['no max_tokens', { model: 'm', messages: [] }, 'max_tokens', 'Field required'],
    ['max_tokens text', { ...base, max_tokens: '1' }, 'max_tokens', 'valid integer'],
    ['max_tokens a fraction', { ...base, max_tokens: 1.5 }, 'max_tokens', 'valid integer'],
    ['max_tokens negative', { ...base, max_tokens: -1 }, 'max_tokens', 'greater'],
    ['no messages', { model: 'm', max_tokens: 1 }, 'messages', 'Field required'],
    ['messages an object', { ...base, messages: {} }, 'messages', 'valid list'],
    ['a message that is text', { ...base, messages: ['hi'] }, 'messages.0'],
    ['no role', { ...base, messages: [{ content: 'hi' }] }, 'messages.0.role', 'Field required'],
    ['role tool', withContent('hi', 'tool'), 'messages.0.role', "'user'"],
    [
      'no content',
      { ...base, messages: [{ role: 'user' }] },
      'messages.0.content',
      'Field required',
    ],
    ['content null', withContent(null), 'messages.0.content', 'valid list'],
    ['content an object', withContent({ type: 'text', text: 'x' }), 'messages.0.content'],
    ['a block that is text', withContent(['hi']), 'messages.0.content.0'],
    ['a block that is null', withContent([null]), 'messages.0.content.0'],
    [
      'a block without type',
      withContent([{ text: 'x' }]),
      'messages.0.content.0.type',
      'Field required',
    ],
    [
      'a block with type 1',
      withContent([{ type: 1 }]),
      'messages.0.content.0.type',
      'valid string',
    ],
    [
      'text without text',
      withContent([{ type: 'text' }]),
      'messages.0.content.0.text',
      'Field required',
    ],
    ['text a number', withContent([{ type: 'text', text: 5 }]), 'messages.0.content.0.text'],
    [
      'call without id',
      withContent([{ type: 'tool_use', name: 'f', input: {} }], 'assistant'),
      'messages.0.content.0.id',
    ],
    [
      'call without name',
      withContent([{ type: 'tool_use', id: 'a', input: {} }], 'assistant'),
      'messages.0.content.0.name',
    ],
    [
      'result without id',
      withContent([{ type: 'tool_result', content: 'x' }]),
      'messages.0.content.0.tool_use_id',
    ],
    [
      'a broken block inside a result',
      withContent([{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text' }] }]),
      'messages.0.content.0.content.0.text',
    ],
    ['system a number', { ...base, system: 1 }, 'system', 'valid list'],
    ['a system block without type', { ...base, system: [{ text: 'x' }] }, 'system.0.type'],
    ['tools an object', { ...base, tools: {} }, 'tools', 'valid list'],
    ['a tool that is text', { ...base, tools: ['f'] }, 'tools.0'],
    [
      'a tool without name',
      { ...base, tools: [{ input_schema: {} }] },
      'tools.0.name',
      'Field required',
    ],
    ['tool_choice text', { ...base, tool_choice: 'auto' }, 'tool_choice', 'valid dictionary'],
    ['stream text', { ...base, stream: 'true' }, 'stream', 'valid boolean'],
    ['temperature text', { ...base, temperature: '1' }, 'temperature', 'valid number'],
    ['stop_sequences text', { ...base, stop_sequences: 'x' }, 'stop_sequences', 'valid list'],
    ['thinking true', { ...base, thinking: true }, 'thinking', 'valid dictionary'],
    ['metadata text', { ...base, metadata: 'x' }, 'metadata', 'valid dictionary'],
  ];
  for (const [name, body, param, message = ''] of cases) {
    test(name, () => {
      const error = refusal(body);
      expect(error.kind).toBe('invalid_request');
      expect(error.status).toBe(400);
      expect(error.param).toBe(param);
      expect(error.message).toStartWith(`${param}: `);
      expect(error.message).toContain(message);
    });
  }
});

describe('a request that the real API accepts is not refused', () => {
  const cases: readonly (readonly [string, Json])[] = [
    ['empty messages', { ...base, messages: [] }],
    ['empty content', withContent('')],
    ['no blocks', withContent([])],
    [
      'null for optional fields',
      { ...base, system: null, tools: null, stop_sequences: null, temperature: null },
    ],
    ['a system message in the middle', withContent('x', 'system')],
    ['an unknown block', withContent([{ type: 'hologram', data: 1 }])],
    ['an unknown source', withContent([{ type: 'image', source: { type: 'psychic' } }])],
    ['a result without content', withContent([{ type: 'tool_result', tool_use_id: 'a' }])],
    ['a call without input', withContent([{ type: 'tool_use', id: 'a', name: 'f' }], 'assistant')],
    ['an unknown hosted tool', { ...base, tools: [{ type: 'teleport_20990101' }] }],
    ['an unknown tool choice', { ...base, tool_choice: { type: 'perhaps' } }],
    ['unknown fields', { ...base, future: { x: 1 } }],
  ];
  for (const [name, body] of cases) {
    test(name, () => {
      const conversation = anthropicMessages.decodeRequest(body);
      expect(conversation.turns.length).toBe((body as typeof base).messages.length);
    });
  }
});

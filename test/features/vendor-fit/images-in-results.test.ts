/** Mistral takes no user message behind a tool message, and no image in one: images of results follow an assistant turn. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { targetOf, vendorRequest } from './vendor.ts';

const data = 'aVZCT1I=';
const url = `data:image/png;base64,${data}`;
const MODELS = [
  ['mistral', 'mistral-medium-2508'],
  ['vllm', 'mistral-small-3.2'],
] as const;

interface Client {
  readonly protocol: ProtocolName;
  /** `go`, calls of `shot`, their results with an image each, and what follows. */
  request(results: number, after: readonly string[], beside?: string): JsonObject;
}

const ids = (count: number) => Array.from({ length: count }, (_, i) => `call_${i}`);

const CLIENTS: readonly Client[] = [
  {
    protocol: 'anthropic-messages',
    request: (count, after, beside) => ({
      model: 'm',
      max_tokens: 9,
      tools: [{ name: 'shot', input_schema: { type: 'object', properties: {} } }],
      messages: [
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          content: ids(count).map((id) => ({ type: 'tool_use', id, name: 'shot', input: {} })),
        },
        {
          role: 'user',
          content: [
            ...ids(count).map((id) => ({
              type: 'tool_result',
              tool_use_id: id,
              content: [
                { type: 'text', text: 'see' },
                { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
              ],
            })),
            ...(beside === undefined ? [] : [{ type: 'text', text: beside }]),
          ],
        },
        ...after.map((text, i) => ({ role: i % 2 === 0 ? 'assistant' : 'user', content: text })),
      ],
    }),
  },
  {
    protocol: 'openai-chat',
    request: (count, after, beside) => ({
      model: 'm',
      tools: [{ type: 'function', function: { name: 'shot', parameters: { type: 'object' } } }],
      messages: [
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          content: null,
          tool_calls: ids(count).map((id) => ({
            id,
            type: 'function',
            function: { name: 'shot', arguments: '{}' },
          })),
        },
        ...ids(count).map((id) => ({
          role: 'tool',
          tool_call_id: id,
          content: [
            { type: 'text', text: 'see' },
            { type: 'image_url', image_url: { url } },
          ],
        })),
        ...(beside === undefined ? [] : [{ role: 'user', content: beside }]),
        ...after.map((text, i) => ({ role: i % 2 === 0 ? 'assistant' : 'user', content: text })),
      ],
    }),
  },
  {
    protocol: 'openai-responses',
    request: (count, after, beside) => ({
      model: 'm',
      tools: [{ type: 'function', name: 'shot', parameters: { type: 'object', properties: {} } }],
      input: [
        { role: 'user', content: 'go' },
        ...ids(count).map((call_id) => ({
          type: 'function_call',
          call_id,
          name: 'shot',
          arguments: '{}',
        })),
        ...ids(count).map((call_id) => ({
          type: 'function_call_output',
          call_id,
          output: [
            { type: 'input_text', text: 'see' },
            { type: 'input_image', image_url: url },
          ],
        })),
        ...(beside === undefined ? [] : [{ role: 'user', content: beside }]),
        ...after.map((text, i) => ({ role: i % 2 === 0 ? 'assistant' : 'user', content: text })),
      ],
    }),
  },
];

describe.each(MODELS)('%s/%s', (vendor, model) => {
  describe.each(CLIENTS)('a client of $protocol', ({ protocol, request }) => {
    const sent = (...asked: Parameters<Client['request']>) => {
      const { body, notes, idle } = vendorRequest(
        targetOf(vendor, model, 'openai-chat'),
        request(...asked),
        protocol,
      );
      expect(idle).toBe(false);
      expect(notes).toContain('assistant_turn_added /messages');
      return body.messages as JsonObject[];
    };
    const roles = (messages: readonly JsonObject[]) => messages.map(({ role }) => role);

    test('an image at the end', () => {
      const messages = sent(1, []);
      expect(roles(messages)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
      expect(JSON.stringify(messages[2])).not.toContain(data);
      expect(JSON.stringify(messages[4])).toContain(url);
    });

    test('two results and text behind them', () => {
      const messages = sent(2, [], 'and now?');
      const last = roles(messages).slice(4);
      expect(roles(messages).slice(0, 4)).toEqual(['user', 'assistant', 'tool', 'tool']);
      expect(last[0]).toBe('assistant');
      expect(last.slice(1).every((role) => role === 'user')).toBe(true);
      const shown = JSON.stringify(messages.slice(5));
      expect(shown.split(url)).toHaveLength(3);
      expect(shown).toContain('and now?');
    });

    test('the model has gone on since', () => {
      const messages = sent(1, ['I see.', 'more']);
      expect(roles(messages)).toEqual([
        'user',
        'assistant',
        'tool',
        'assistant',
        'user',
        'assistant',
        'user',
      ]);
    });
  });
});

test('other vendors get the image right behind the result', () => {
  const { request, protocol } = CLIENTS[0]!;
  const { body } = vendorRequest(targetOf('none', 'm', 'openai-chat'), request(1, []), protocol);
  expect((body.messages as JsonObject[]).map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'user',
  ]);
});

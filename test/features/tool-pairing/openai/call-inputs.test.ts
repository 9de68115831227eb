/** Whatever arguments a client sends for a past call, the vendor gets a JSON object. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../../../support/suite-protocols.ts';
import { run } from '../support.ts';

type OpenAi = Exclude<ProtocolName, 'anthropic-messages'>;

const OPENAI: readonly OpenAi[] = ['openai-chat', 'openai-responses'];

function history(client: OpenAi, args: string): JsonObject {
  if (client === 'openai-chat') {
    return {
      model: 'm',
      messages: [
        { role: 'user', content: 'Weather?' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: args } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'failed to parse' },
      ],
    };
  }
  return {
    model: 'm',
    store: false,
    input: [
      { role: 'user', content: 'Weather?' },
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: args },
      { type: 'function_call_output', call_id: 'c1', output: 'failed to parse' },
    ],
  };
}

function argumentsIn(body: JsonObject): string {
  const found: string[] = [];
  JSON.stringify(body, (key, value: Json) => {
    if (key === 'arguments') found.push(String(value));
    return value;
  });
  expect(found).toHaveLength(1);
  return found[0]!;
}

const ODD = ['', ' ', '{"city": "Ro', '{', '}', '"words"', '5', 'null', '[1]', '{"a":1}}', 'ls -l'];

describe('arguments that are not an object', () => {
  for (const from of OPENAI) {
    for (const to of OPENAI) {
      test(`${from} to ${to}`, () => {
        for (const args of ODD) {
          const { body, names } = run(history(from, args), from, { to });
          const sent = JSON.parse(argumentsIn(body)) as JsonObject;
          expect(sent).toEqual(
            args.trim() === ''
              ? {}
              : {
                  input:
                    args === '5' ? 5 : args === '[1]' ? [1] : args === '"words"' ? 'words' : args,
                },
          );
          expect(names).toContain('tool_input_wrapped');
          expect(run(body, to).same).toBe(true);
        }
      });
    }
  }
});

test('any text becomes an object, and an object goes out as the client wrote it', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.json().map((text) => text.slice(0, -1)),
      ),
      fc.constantFrom(...OPENAI),
      fc.constantFrom(...OPENAI),
      (args, from, to) => {
        const sent = argumentsIn(run(history(from, args), from, { to }).body);
        const value = JSON.parse(sent) as Json;
        expect(typeof value === 'object' && value !== null && !Array.isArray(value)).toBe(true);
        let given: unknown;
        try {
          given = JSON.parse(args);
        } catch {}
        if (typeof given === 'object' && given !== null && !Array.isArray(given)) {
          expect(sent).toBe(args);
        }
      },
    ),
  );
});

test('freeform input is not JSON and stays', () => {
  const call = { type: 'custom_tool_call', call_id: 'c1', name: 'f', input: '{"city": "Ro' };
  const body = {
    model: 'm',
    input: [
      { role: 'user', content: 'W' },
      call,
      { type: 'custom_tool_call_output', call_id: 'c1', output: 'x' },
    ],
  };
  const { same, names } = run(body, 'openai-responses');
  expect({ same, names }).toEqual({ same: true, names: [] });
});

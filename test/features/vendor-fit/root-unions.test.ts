/** A tool schema with a union at its root goes to OpenAI as a plain object; other bodies stay unchanged. */

import { describe, expect, test } from 'bun:test';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { expectLinear } from '../../support/growth.ts';
import { targetOf, vendorRequest } from './vendor.ts';

const branch: JsonObject = { type: 'object', properties: { a: {} }, required: ['a'] };
const UNIONS: readonly JsonObject[] = [
  { anyOf: [branch] },
  { oneOf: [branch] },
  { allOf: [branch] },
  { type: 'object', not: branch },
  { type: 'object', properties: {}, enum: [{}] },
];
const PLAIN: readonly JsonObject[] = [
  {},
  { type: 'object', properties: { a: { anyOf: [{ enum: ['b'] }] }, not: { oneOf: [] } } },
  { type: 'object', properties: { parameters: { type: 'object', parameters: { anyOf: [] } } } },
];

const request = {
  'openai-chat': (parameters: Json): JsonObject => ({
    model: 'gpt-4o',
    messages: [{ role: 'user', content: 'a' }],
    tools: [{ type: 'function', function: { name: 'f', parameters } }],
  }),
  'openai-responses': (parameters: Json): JsonObject => ({
    model: 'gpt-4o',
    input: 'a',
    tools: [{ type: 'function', name: 'f', parameters, strict: false }],
  }),
} as const;

describe.each(['openai-chat', 'openai-responses'] as const)('%s', (protocol) => {
  const target = targetOf('openai', 'gpt-4o', protocol);

  test('unions become plain objects', () => {
    for (const union of UNIONS) {
      const { body, notes, idle } = vendorRequest(target, request[protocol](union), protocol);
      const [tool] = body.tools as JsonObject[];
      const sent = ((tool!.function as JsonObject) ?? tool).parameters as JsonObject;
      expect(sent.type).toBe('object');
      for (const key of ['anyOf', 'oneOf', 'allOf', 'not', 'enum'])
        expect(sent[key]).toBeUndefined();
      expect(notes.join()).toContain('schema_simplified');
      expect(idle).toBe(false);
    }
  });

  test('others stay, without a decode', () => {
    for (const schema of PLAIN) {
      const result = vendorRequest(target, request[protocol](schema), protocol);
      expect([result.same, result.idle, result.notes]).toEqual([true, true, []]);
    }
    const open = targetOf('mistral', 'm', protocol);
    const received = vendorRequest(open, request[protocol](UNIONS[0]!), protocol);
    expect(JSON.stringify(received.body.tools)).toContain('anyOf');
  });
});

test('the byte prefilter is linear', async () => {
  const target = targetOf('openai', 'gpt-4o', 'openai-chat');
  const notes = undefined as never;
  const look = (body: Buffer) =>
    vendorFit().mayApply!(body, { target, client: 'openai-chat', notes, hop: 1 });
  for (const one of [
    '"parameters":{"x":',
    '"parameters":',
    '"parameters":{}',
    '"parameters":{"a":"',
  ]) {
    await expectLinear({
      name: one,
      input: (size) => Buffer.from(one.repeat(Math.ceil(size / one.length))),
      run: look,
    });
  }
  await expectLinear({
    name: 'nested',
    input: (size) => {
      const depth = Math.ceil(size / 16);
      return Buffer.from(`${'{"parameters":'.repeat(depth)}1${'}'.repeat(depth)}`);
    },
    run: look,
  });
});

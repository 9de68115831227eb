/** Schemas for servers that make a grammar of all tools: one pattern that they cannot write makes them refuse every request. */

import { expect, test } from 'bun:test';
import { bareSchema } from '../../src/conversation/tools/bare-schema.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';

const text = { type: 'string', description: 'An address.' };
const bounded = { ...text, pattern: '^(?=.*@).+', format: 'email', maxLength: 10_000 };

test.each<[string, JsonObject, JsonObject]>([
  [
    'a property',
    { type: 'object', properties: { to: bounded } },
    { type: 'object', properties: { to: text } },
  ],
  ['items', { type: 'array', items: bounded, maxItems: 100 }, { type: 'array', items: text }],
  ['branches', { anyOf: [bounded, { type: 'null' }] }, { anyOf: [text, { type: 'null' }] }],
  [
    'definitions',
    { $defs: { mail: bounded }, $ref: '#/$defs/mail' },
    { $defs: { mail: text }, $ref: '#/$defs/mail' },
  ],
  ['names of members', { type: 'object', propertyNames: { pattern: 'x' } }, { type: 'object' }],
  ['what must not be', { type: 'string', not: {} }, { type: 'string' }],
  [
    'properties that have such a name',
    { type: 'object', properties: { pattern: text, format: { type: 'string', enum: ['a'] } } },
    { type: 'object', properties: { pattern: text, format: { type: 'string', enum: ['a'] } } },
  ],
  [
    'values that look like a schema',
    { enum: [bounded], default: bounded },
    { enum: [bounded], default: bounded },
  ],
])('without bounds: %s', (_, schema, expected) => {
  expect(bareSchema(schema)).toEqual(expected);
});

test('a schema without them is the same object', () => {
  const schema = { type: 'object', properties: { a: text, b: { anyOf: [text] } }, required: ['a'] };
  expect(bareSchema(schema)).toBe(schema);
});

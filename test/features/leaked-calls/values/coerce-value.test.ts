/** Plain text is converted to the type that the schema declares, and to no other. */

import { expect, test } from 'bun:test';
import {
  coerceValue,
  dialectOf,
} from '../../../../src/features/leaked-calls/values/coerce-value.ts';
import type { Json } from '../../../../src/lib/json/json.ts';

const coerce = (text: string, schema: Json, family = '') =>
  JSON.stringify(
    coerceValue(text, schema, { $defs: { id: { type: 'integer' } } }, dialectOf(family)),
  );

const CASES: readonly (readonly [text: string, schema: Json, result: string, family?: string])[] = [
  ['00123', { type: 'string' }, '"00123"'],
  [' a ', { type: 'string' }, '" a "'],
  ['null', { type: 'string' }, '"null"'],
  ['5', {}, '"5"'],
  [' 5 ', { type: 'integer' }, '5'],
  ['12345678901234567890', { type: 'integer' }, '12345678901234567890'],
  ['5.5', { type: 'integer' }, '5.5'],
  ['five', { type: 'integer' }, '"five"'],
  ['3.0', { type: 'number' }, '3'],
  ['1e400', { type: 'number' }, '"1e400"'],
  ['NaN', { type: 'number' }, '"NaN"'],
  ['True', { type: 'boolean' }, 'true'],
  ['0', { type: 'boolean' }, 'false'],
  ['yes', { type: 'boolean' }, '"yes"'],
  ['yes', { type: 'boolean' }, 'true', 'minimax-m2'],
  ['maybe', { type: 'boolean' }, 'false', 'qwen'],
  ['null', { type: ['integer', 'null'] }, 'null'],
  ['none', { type: ['string', 'null'] }, '"none"'],
  ['None', { type: ['string', 'null'] }, 'null', 'minimax-m2'],
  ['NULL', { type: ['string', 'null'] }, 'null', 'minimax-m3'],
  ['none', { type: ['string', 'null'] }, '"none"', 'minimax-m3'],
  ['{"a": 1}', { type: 'object' }, '{"a":1}'],
  ["{'a': True, 'b': [None, 'x']}", { type: 'object' }, '{"a":true,"b":[null,"x"]}'],
  ['[1, 2]', { type: 'array' }, '[1,2]'],
  ['[1, 2]', { type: 'string' }, '"[1, 2]"'],
  ['7', { anyOf: [{ type: 'string' }, { type: 'integer' }] }, '7'],
  ['7', { $ref: '#/$defs/id' }, '7'],
  ['2', { enum: ['1', '2'] }, '"2"'],
  ['2', { enum: [1, 2] }, '2'],
  ['7', { type: 'int32' }, '7'],
  ['7', { type: 'varchar' }, '"7"'],
  ['"quoted"', { type: 'string' }, '"\\"quoted\\""'],
  ['"quoted"', { type: 'string' }, '"quoted"', 'glm'],
  ['{"a": 1}', { properties: { a: {} } }, '{"a":1}'],
];

for (const [text, schema, result, family] of CASES) {
  test(`${text} as ${JSON.stringify(schema)}${family ? ` (${family})` : ''}`, () => {
    expect(coerce(text, schema, family)).toBe(result);
  });
}

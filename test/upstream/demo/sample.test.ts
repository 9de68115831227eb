/** Values for schemas of tools and of structured output fit them, are always the same, and are found in time or not at all. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { violation } from '../../../src/lib/json/json-schema.ts';
import { sampleOf } from '../../../src/upstream/demo/sample.ts';

const scalar: fc.Arbitrary<JsonObject> = fc.oneof(
  fc
    .tuple(fc.nat(20), fc.nat(30))
    .map(([min, room]) => ({ type: 'string', minLength: min, maxLength: min + room })),
  fc
    .tuple(fc.integer({ min: -1000, max: 1000 }), fc.nat(500))
    .map(([low, room]) => ({ type: 'integer', minimum: low, maximum: low + room })),
  fc
    .tuple(fc.integer({ min: -100, max: 100 }), fc.integer({ min: 1, max: 9 }))
    .map(([low, room]) => ({
      type: 'number',
      exclusiveMinimum: low,
      exclusiveMaximum: low + room,
    })),
  fc
    .tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: -50, max: 50 }))
    .map(([step, low]) => ({ type: 'integer', multipleOf: step, minimum: low })),
  fc.constantFrom<JsonObject>(
    { type: 'boolean' },
    { type: 'null' },
    { type: ['string', 'null'] },
    {},
    { type: 'string', format: 'date-time' },
    { type: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}$' },
  ),
  fc
    .uniqueArray(fc.oneof(fc.string(), fc.integer()), { minLength: 1, maxLength: 4 })
    .map((values) => ({ enum: values })),
  fc.oneof(fc.string(), fc.integer(), fc.boolean()).map((value) => ({ const: value })),
);

const object = (members: Record<string, [JsonObject, boolean]>): JsonObject => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(members).map(([name, [one]]) => [name, one])),
  required: Object.keys(members).filter((name) => members[name]![1]),
  additionalProperties: false,
});

const schema: fc.Arbitrary<JsonObject> = fc.letrec<{ any: JsonObject }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    scalar,
    fc
      .dictionary(fc.stringMatching(/^[a-z]{1,6}$/), fc.tuple(tie('any'), fc.boolean()), {
        maxKeys: 4,
      })
      .map(object),
    fc.tuple(tie('any'), fc.nat(3), fc.nat(3)).map(([items, min, room]) => ({
      type: 'array',
      items,
      minItems: min,
      maxItems: min + room,
    })),
    fc.array(tie('any'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc.array(tie('any'), { minLength: 1, maxLength: 3 }).map((prefixItems) => ({
      type: 'array',
      prefixItems,
    })),
  ),
})).any;

test('a value fits its schema, with all properties or only those that are needed', () => {
  fc.assert(
    fc.property(schema, fc.boolean(), (one, optional) => {
      const value = sampleOf(one, { optional });
      expect(value).toBeDefined();
      expect(violation(value as Json, one)).toBeUndefined();
      expect(sampleOf(one, { optional })).toEqual(value as never);
    }),
    { numRuns: 300 },
  );
});

describe('what tools and formats use', () => {
  const text = { type: 'string' };
  const cases: [string, JsonObject, unknown][] = [
    ['a default', { type: 'string', default: 'x' }, 'x'],
    ['an example', { type: 'string', examples: ['x'] }, 'x'],
    ['a default that does not fit', { type: 'string', default: 1 }, 'demo'],
    ['a reference', { $ref: '#/$defs/a', $defs: { a: { type: 'integer' } } }, 1],
    [
      'parts that all hold',
      { allOf: [object({ a: [text, true] }), object({ b: [text, true] })].map(open) },
      { a: 'demo a', b: 'demo b' },
    ],
    ['the first of several that works', { anyOf: [false, { type: 'integer' }] }, 1],
    [
      'a tree',
      {
        $ref: '#/$defs/n',
        $defs: {
          n: {
            type: 'object',
            properties: { kids: { type: 'array', items: { $ref: '#/$defs/n' } } },
            required: ['kids'],
          },
        },
      },
      undefined,
    ],
    [
      'items that differ',
      { type: 'array', items: { enum: ['a', 'b'] }, minItems: 2, uniqueItems: true },
      ['a', 'b'],
    ],
    ['an item that must be there', { type: 'array', contains: { const: 9 } }, [9]],
  ];
  function open({ additionalProperties: _, ...one }: JsonObject): JsonObject {
    return one;
  }
  test.each(cases)('%s', (_, one, expected) => {
    const value = sampleOf(one);
    expect(violation(value as Json, one)).toBeUndefined();
    if (expected !== undefined) expect(value).toEqual(expected as never);
  });
});

test('a value that no schema allows is none, and one that recurs without end is given up', () => {
  const endless = (width: number) => ({
    $ref: '#/$defs/n',
    $defs: {
      n: {
        type: 'object',
        properties: Object.fromEntries(
          Array.from({ length: width }, (_, at) => [`p${at}`, { $ref: '#/$defs/n' }]),
        ),
        required: Array.from({ length: width }, (_, at) => `p${at}`),
      },
    },
  });
  for (const one of [
    endless(1),
    endless(8),
    { type: 'string', enum: [] },
    { allOf: [{ const: 1 }, { const: 2 }] },
    { type: 'string', pattern: '^(?:foo|bar)+$' },
  ] as JsonObject[]) {
    expect(sampleOf(one)).toBeUndefined();
  }
});

/** What the sampler makes satisfies the schema, by TypeBox's own judgement. */

import { beforeAll, describe, expect, test } from 'bun:test';
import { FormatRegistry, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { satisfies } from '../../../src/upstream/demo/fits.ts';
import { samplePattern } from '../../../src/upstream/demo/sample-pattern.ts';
import { sampleSchema } from '../../../src/upstream/demo/schema-sampler.ts';

const plain = (schema: TSchema) => JSON.parse(JSON.stringify(schema)) as JsonObject;

// Own tests of the formats, apart from the sampler's table.
const FORMATS: Record<string, (text: string) => boolean> = {
  'date-time': (t) => /T.*Z$/.test(t) && !Number.isNaN(Date.parse(t)),
  date: (t) => /^\d{4}-\d\d-\d\d$/.test(t) && !Number.isNaN(Date.parse(t)),
  email: (t) => /^[^@\s]+@[^@\s]+\.[a-z]+$/.test(t),
  uri: (t) => URL.canParse(t),
  uuid: (t) => /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(t),
  ipv4: (t) => t.split('.').length === 4 && t.split('.').every((part) => Number(part) < 256),
};

beforeAll(() => {
  for (const [name, check] of Object.entries(FORMATS)) FormatRegistry.Set(name, check);
});

const scalar: fc.Arbitrary<TSchema> = fc.oneof(
  fc.tuple(fc.nat(20), fc.nat(30)).map(([a, b]) => Type.String({ minLength: a, maxLength: a + b })),
  fc.constantFrom(...Object.keys(FORMATS)).map((format) => Type.String({ format })),
  fc
    .constantFrom(
      '^[a-z]{3,8}$',
      '^\\d{3}-\\d{4}$',
      '^(?:foo|bar)+$',
      '^[A-Z][a-z]+ [A-Z]\\w*$',
      '^#[0-9a-f]{6}$',
      '^v\\d+\\.\\d+$',
      'x.*y',
    )
    .map((pattern) => Type.String({ pattern })),
  fc
    .tuple(fc.integer({ min: -1000, max: 1000 }), fc.nat(500))
    .map(([low, room]) => Type.Integer({ minimum: low, maximum: low + room })),
  fc
    .tuple(fc.integer({ min: -100, max: 100 }), fc.integer({ min: 1, max: 9 }))
    .map(([low, room]) => Type.Number({ exclusiveMinimum: low, exclusiveMaximum: low + room })),
  fc
    .tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: -50, max: 50 }))
    .map(([step, low]) => Type.Integer({ multipleOf: step, minimum: low })),
  fc.constantFrom(
    Type.Boolean(),
    Type.Null(),
    Type.Integer(),
    Type.Number(),
    Type.String(),
    Type.Any(),
  ),
  fc.oneof(fc.string(), fc.integer(), fc.boolean()).map((value) => Type.Literal(value)),
);

const schema: fc.Arbitrary<TSchema> = fc.letrec<{ any: TSchema; object: TSchema }>((tie) => ({
  object: fc
    .dictionary(fc.string({ minLength: 1, maxLength: 6 }), fc.tuple(tie('any'), fc.boolean()), {
      maxKeys: 4,
    })
    .map((members) =>
      Type.Object(
        Object.fromEntries(
          Object.entries(members).map(([k, [s, must]]) => [k, must ? s : Type.Optional(s)]),
        ),
        { additionalProperties: false },
      ),
    ),
  any: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    scalar,
    tie('object'),
    fc
      .tuple(tie('any'), fc.nat(3), fc.nat(3))
      .map(([items, min, room]) => Type.Array(items, { minItems: min, maxItems: min + room })),
    fc.tuple(tie('any'), tie('any')).map((members) => Type.Union(members)),
    fc.tuple(tie('any'), tie('any')).map((members) => Type.Tuple(members)),
    fc
      .tuple(tie('any'), fc.nat(3))
      .map(([value, count]) => Type.Record(Type.String(), value, { minProperties: count })),
    fc
      .integer({ min: 1, max: 6 })
      .map((count) => Type.Array(Type.Integer(), { uniqueItems: true, minItems: count })),
    tie('any').map((inner) =>
      Type.Recursive((self) =>
        Type.Object({ inner, next: Type.Union([self, Type.Null()]), kids: Type.Array(self) }),
      ),
    ),
    fc
      .tuple(scalar, scalar)
      .map(([a, b]) => Type.Intersect([Type.Object({ a }), Type.Object({ b, a })])),
  ),
})).any;

describe('any schema', () => {
  test('required alone, and with every optional property: TypeBox accepts the value', () => {
    fc.assert(
      fc.property(schema, fc.boolean(), (made, optional) => {
        const value = sampleSchema(plain(made), { optional });
        if (!Value.Check(made, value)) {
          throw new Error(`${JSON.stringify(made)}\n  gave ${JSON.stringify(value)}`);
        }
        // The model checks itself by the same rules.
        expect(satisfies(value!, plain(made))).toBe(true);
        expect(sampleSchema(plain(made), { optional })).toEqual(value!);
      }),
      { numRuns: 300 },
    );
  });

  test('recursive types inside each other have a value', () => {
    let made: TSchema = Type.String({ pattern: '^(?:foo|bar)+$' });
    for (let level = 0; level < 8; level++) {
      const inner = level % 2 === 0 ? made : Type.Tuple([Type.String(), made]);
      made = Type.Recursive((self) =>
        Type.Object({ inner, next: Type.Union([self, Type.Null()]), kids: Type.Array(self) }),
      );
    }
    expect(Value.Check(made, sampleSchema(plain(made)))).toBe(true);
  });

  test('the own check refuses what TypeBox refuses', () => {
    fc.assert(
      fc.property(schema, fc.jsonValue({ maxDepth: 2 }), (made, value) => {
        // Formats are the one thing the own check does not look at.
        if (JSON.stringify(made).includes('"format"')) return;
        expect(satisfies(JSON.parse(JSON.stringify(value)), plain(made))).toBe(
          Value.Check(made, JSON.parse(JSON.stringify(value))),
        );
      }),
      { numRuns: 300 },
    );
  });
});

describe('what TypeBox does not write', () => {
  const cases: [string, JsonObject, unknown][] = [
    [
      '$defs',
      {
        $ref: '#/$defs/a',
        $defs: {
          a: { type: 'object', properties: { b: { $ref: '#/$defs/c' } }, required: ['b'] },
          c: { const: 7 },
        },
      },
      { b: 7 },
    ],
    [
      'definitions with escaped names',
      { $ref: '#/definitions/a~1b', definitions: { 'a/b': { const: 1 } } },
      1,
    ],
    ['type lists', { type: ['integer', 'null'] }, 1],
    ['a default', { type: 'string', default: 'kept' }, 'kept'],
    ['examples', { type: 'string', examples: ['like this'] }, 'like this'],
    ['an enum beside a type', { type: 'string', enum: [1, 'two'] }, 'two'],
    [
      'allOf with the required key in another part',
      { allOf: [{ properties: { k: { const: 2 } } }, { type: 'object', required: ['k'] }] },
      { k: 2 },
    ],
    [
      'two anyOf under allOf',
      { allOf: [{ anyOf: [{ const: 1 }, { const: 2 }] }, { anyOf: [{ const: 2 }, { const: 3 }] }] },
      2,
    ],
    ['oneOf that must not match twice', { oneOf: [{ type: 'number' }, { type: 'integer' }] }, 0.5],
    [
      'if and then',
      {
        type: 'object',
        properties: { k: { enum: ['x'] } },
        required: ['k'],
        if: { properties: { k: { const: 'x' } } },
        // Not written as a literal: an object with such a key looks like a promise.
        ...(JSON.parse('{"then":{"required":["n"],"properties":{"n":{"const":4}}}}') as JsonObject),
      },
      { k: 'x', n: 4 },
    ],
    ['draft 4 exclusive bounds', { type: 'integer', minimum: 1, exclusiveMinimum: true }, 2],
    [
      'an array of required enums',
      { type: 'array', items: { enum: ['a', 'b'] }, minItems: 2, uniqueItems: true },
      ['a', 'b'],
    ],
    [
      'prefixItems',
      { type: 'array', prefixItems: [{ const: 1 }, { const: 'b' }], items: false },
      [1, 'b'],
    ],
    ['contains', { type: 'array', items: { type: 'integer' }, contains: { const: 9 } }, [9]],
    [
      'a boolean schema',
      { type: 'object', properties: { a: true }, required: ['a'] },
      { a: 'demo a' },
    ],
  ];
  for (const [name, made, expected] of cases) {
    test(name, () => {
      const value = sampleSchema(made);
      expect(value).toSatisfy((v) => satisfies(v as never, made));
      expect(value).toEqual(expected as never);
    });
  }

  test('a schema that recurs through required members alone gives nothing instead of hanging', () => {
    const endless = {
      $ref: '#/$defs/n',
      $defs: { n: { type: 'object', properties: { n: { $ref: '#/$defs/n' } }, required: ['n'] } },
    };
    expect(sampleSchema(endless)).toBeUndefined();
    expect(sampleSchema({ type: 'string', enum: [] })).toBeUndefined();
    expect(sampleSchema({ allOf: [{ const: 1 }, { const: 2 }] })).toBeUndefined();
  });

  test('schemas that branch without end are given up in time', () => {
    const wide: JsonObject = {
      $ref: '#/$defs/n',
      $defs: {
        n: {
          type: 'object',
          properties: Object.fromEntries(
            'abcdefgh'.split('').map((k) => [k, { $ref: '#/$defs/n' }]),
          ),
          required: [...'abcdefgh'],
        },
      },
    };
    const before = performance.now();
    expect(sampleSchema(wide)).toBeUndefined();
    expect(performance.now() - before).toBeLessThan(2000);
  });
});

describe('patterns', () => {
  const patterns = [
    '^[a-z]+$',
    '^\\S+@\\S+\\.\\w{2,}$',
    '^(?:a|b(?:c|d))*e?$',
    '^(?=.*a)[a-c]{3}$',
    '^\\p{Lu}\\p{L}+$',
    '^[^\\d\\s]{2}\\d$',
    '^(\\d{4})-(0[1-9]|1[0-2])$',
    '^[\\w.-]+/[\\w.-]+$',
    '^\\/[a-z]*$',
    '^\\u0041\\x42$',
    '[\\]\\-x]{2}',
    '^$',
  ];
  for (const pattern of patterns) {
    test(pattern, () => {
      expect(sampleSchema({ type: 'string', pattern })).toMatch(new RegExp(pattern, 'u'));
    });
  }
  test('a back-reference is not guessed', () => {
    expect(samplePattern('^(a)\\1$', 0)).toBeUndefined();
  });
  test('pattern and length together', () => {
    const value = sampleSchema({
      type: 'string',
      pattern: '^[a-f]+$',
      minLength: 20,
      maxLength: 40,
    });
    expect(value).toMatch(/^[a-f]{20,40}$/);
  });
});

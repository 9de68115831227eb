/** JSON Schema: what is enforced keyword by keyword, what is refused beforehand, and that it takes linear time. */

import { describe, expect, test } from 'bun:test';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { violation } from '../../../src/lib/json/json-schema.ts';
import { schemaProblems } from '../../../src/lib/json/json-schema-problems.ts';
import { linearPattern, UnfitPattern } from '../../../src/lib/text/linear-pattern.ts';

const on = (schema: JsonObject): JsonObject => ({ type: 'object', properties: { a: schema } });
/** What is said of `{a: value}`; '' when it fits. */
function said(schema: JsonObject, value: Json): string {
  const wrapped = on(schema);
  expect(schemaProblems(wrapped)).toEqual([]);
  const found = violation({ a: value }, wrapped);
  return found === undefined ? '' : `${found.path.join('.')} ${found.message}`;
}

/** Schema, values that fit, values that do not. */
const CASES: readonly (readonly [JsonObject, readonly Json[], readonly Json[]])[] = [
  [{ type: 'string' }, ['', 'x'], [1, null, [], {}, true]],
  [{ type: 'integer' }, [1, 1.0, -3], [1.5, '1', null]],
  [{ type: ['number', 'null'] }, [1.5, null], ['1', true]],
  [{ type: 'string', nullable: true }, ['x', null], [1]],
  [
    { enum: ['staging', 1, null, { b: 1, c: [2] }] },
    ['staging', 1, null, { c: [2], b: 1 }],
    ['Staging', '1', 0, {}],
  ],
  [{ const: { x: [1, 2] } }, [{ x: [1, 2] }], [{ x: [2, 1] }, {}]],
  [{ minimum: 1, maximum: 3 }, [1, 3, 2.5, 'text'], [0.99, 3.01, -5]],
  [{ exclusiveMinimum: 1, exclusiveMaximum: 3 }, [1.01], [1, 3]],
  [{ minimum: 1, exclusiveMinimum: true }, [2], [1]],
  [{ multipleOf: 0.01 }, [0.07, 19.99, 1.1], [0.075]],
  [{ multipleOf: 3 }, [9, 0, -6], [10]],
  [{ minLength: 2, maxLength: 3 }, ['ab', '😀😀😀', 5], ['a', '😀', 'abcd']],
  [{ pattern: '^[a-z]+-\\d{2,3}$' }, ['ab-12', 'x-123'], ['ab-1', 'AB-12', 'ab-1234', ' ab-12']],
  [{ minItems: 1, maxItems: 2, items: { type: 'integer' } }, [[1], [1, 2]], [[], [1, 2, 3], ['1']]],
  [
    { uniqueItems: true },
    [[1, '1', { a: 1, b: 2 }, { a: 1 }]],
    [
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    ],
  ],
  [{ prefixItems: [{ type: 'string' }], items: false }, [['x'], []], [[1], ['x', 2]]],
  [{ items: [{ type: 'string' }], additionalItems: { type: 'integer' } }, [['x', 1]], [['x', 'y']]],
  [
    { contains: { const: 1 }, minContains: 2, maxContains: 3 },
    [
      [1, 1],
      [1, 2, 1, 1],
    ],
    [[1], [1, 1, 1, 1]],
  ],
  [{ contains: { const: 1 } }, [[0, 1]], [[], [2]]],
  [{ prefixItems: [true], unevaluatedItems: false }, [[1]], [[1, 2]]],
  [{ properties: { b: { type: 'string' } }, required: ['b'] }, [{ b: '' }, 'text'], [{}, { b: 1 }]],
  [{ properties: { b: true }, additionalProperties: false }, [{ b: 1 }, {}], [{ c: 1 }]],
  [{ additionalProperties: { type: 'integer' } }, [{ x: 1 }], [{ x: 'y' }, { ['__proto__']: 'y' }]],
  [
    { patternProperties: { '^x-': { type: 'string' } }, additionalProperties: false },
    [{ 'x-a': '' }],
    [{ 'x-a': 1 }, { y: '' }],
  ],
  [{ propertyNames: { maxLength: 2 } }, [{ ab: 1 }], [{ abc: 1 }]],
  [{ minProperties: 1, maxProperties: 2 }, [{ a: 1 }], [{}, { a: 1, b: 2, c: 3 }]],
  [{ dependentRequired: { b: ['c'] } }, [{ b: 1, c: 1 }, { c: 1 }], [{ b: 1 }]],
  [{ dependentSchemas: { b: { required: ['c'] } } }, [{ b: 1, c: 1 }], [{ b: 1 }]],
  [{ dependencies: { b: ['c'], d: { required: ['e'] } } }, [{ b: 1, c: 1 }], [{ b: 1 }, { d: 1 }]],
  [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
  [{ anyOf: [{ type: 'string' }, { minimum: 5 }] }, ['', 5], [4]],
  [{ oneOf: [{ multipleOf: 3 }, { multipleOf: 5 }] }, [3, 5], [15, 1]],
  [{ not: { type: 'string' } }, [1], ['']],
  [
    JSON.parse('{"if":{"const":1},"then":{"type":"integer"},"else":{"type":"string"}}'),
    [1, 'x'],
    [2],
  ],
  [{ allOf: [{ properties: { b: true } }], unevaluatedProperties: false }, [{ b: 1 }], [{ c: 1 }]],
  [
    {
      anyOf: [{ properties: { b: { const: 1 } }, required: ['b'] }, true],
      unevaluatedProperties: false,
    },
    [{ b: 1 }],
    [{ b: 2 }],
  ],
  [{ $defs: { t: { type: 'string' } }, $ref: '#/properties/a/$defs/t' }, ['x'], [1]],
  [{ $defs: { t: { $anchor: 'here', type: 'string' } }, $ref: '#here' }, ['x'], [1]],
  [
    { type: 'object', properties: { next: { $ref: '#/properties/a' } } },
    [{ next: { next: {} } }],
    [{ next: { next: 1 } }],
  ],
];

describe('a value', () => {
  for (const [schema, good, bad] of CASES) {
    test(JSON.stringify(schema), () => {
      for (const value of good) expect([value, said(schema, value)]).toEqual([value, '']);
      for (const value of bad) expect(said(schema, value)).not.toBe('');
    });
  }

  test('gets what is wrong, and where', () => {
    expect(said({ enum: ['staging', 2] }, 'production')).toBe('a must be one of "staging", 2');
    expect(said({ items: { required: ['b'] } }, [{ b: 1 }, {}])).toBe('a.1.b is missing');
    expect(said({ type: ['string', 'null'] }, 1)).toBe('a must be of type string or null');
    expect(said({ additionalProperties: false }, { x: 1 })).toBe('a.x is not known');
  });

  test('that would take too long is refused, not let through', () => {
    const twice: JsonObject = {
      anyOf: [{ items: { $ref: '#' } }, { items: { $ref: '#' } }],
      not: {},
    };
    let deep: Json = 1;
    for (let i = 0; i < 60; i++) deep = [deep];
    expect(violation(deep, twice)).toBeDefined();
    const loop: JsonObject = { $ref: '#' };
    expect(violation(1, loop)?.message).toBe('is too large to be checked');
    const inverse: JsonObject = { not: { allOf: [{ $ref: '#' }] } };
    expect(violation(1, inverse)).toBeDefined();
  });
});

describe('a schema', () => {
  const problems = (schema: JsonObject) =>
    schemaProblems(schema).map(({ path, message }) => `${path.join('.')}: ${message}`);

  test('that cannot be enforced is reported', () => {
    const schema: JsonObject = {
      type: 'object',
      properties: {
        a: { enmu: ['x'] },
        b: { pattern: '(' },
        c: { pattern: '^(?!x)' },
        d: { $ref: 'https://elsewhere.example/schema' },
        e: { type: 'text' },
        f: { minLength: '3' },
        g: { items: [{ $dynamicRef: '#x' }] },
        h: 7,
        i: { pattern: '(a)\\1' },
        j: { pattern: 'a{1000}{1000}' },
      },
    };
    expect(problems(schema)).toEqual([
      'properties.a.enmu: is a keyword that is not known here',
      'properties.b.pattern: is no regular expression',
      'properties.c.pattern: looks around ("(?"), which is not supported',
      'properties.d.$ref: leads nowhere: references must stay within the schema',
      'properties.e.type: has a value of the wrong kind',
      'properties.f.minLength: has a value of the wrong kind',
      'properties.g.items.0.$dynamicRef: is a keyword that is not known here',
      'properties.h: is no schema',
      'properties.i.pattern: refers back to a group, which is not supported',
      'properties.j.pattern: is no regular expression',
    ]);
  });

  test('may say what refuses nothing', () => {
    const schema = {
      type: 'object',
      title: 't',
      'x-in': 'body',
      format: 'uuid',
      default: {},
      examples: [],
    };
    expect(problems(schema)).toEqual([]);
  });
});

describe('a pattern', () => {
  const PATTERNS = [
    ...[
      'abc',
      '^abc$',
      'a|b|',
      '^(?:ab|a)*$',
      'a+b*c?',
      '^a{2,3}$',
      '^a{2}$',
      '^a{2,}$',
      '[^a-c]',
      '^[\\w-]+$',
    ],
    ...[
      '^(?<name>x)y$',
      '\\bfoo\\b',
      '\\Bo',
      '^\\d+(?:\\.\\d+)?$',
      '^\\p{Lu}',
      '^.$',
      '^\\u{1F600}$',
      '[\\]x]',
    ],
    ...[
      '^\\uD83D\\uDE00$',
      'a\\/b',
      '^(a*)*$',
      '^(a|aa)+$',
      '^$',
      '',
      '(?:)',
      '^[^]$',
      '\\x41',
      'x*?y',
      '^(?:a?){3}$',
      '\\-',
    ],
  ];
  const TEXTS = [
    '',
    'a',
    'aa',
    'aaa',
    'aaaa',
    'ab',
    'abc',
    'xabcx',
    'b',
    'foo',
    'a foo b',
    'fooo',
    '1',
    '1.5',
    '1.',
    'É',
    'A',
  ];
  const MORE = [
    '😀',
    '\n',
    'a/b',
    ']',
    'xy',
    'xxy',
    'aab',
    'abab',
    '-',
    'a-b',
    'c',
    '😀😀',
    'b\nabc',
  ];

  for (const source of PATTERNS) {
    test(`${source} is as the engine reads it`, () => {
      let own: RegExp;
      try {
        own = new RegExp(source, 'u');
      } catch {
        own = new RegExp(source);
      }
      const pattern = linearPattern(source);
      for (const text of [...TEXTS, ...MORE]) {
        expect([text, pattern.test(text)]).toEqual([text, own.test(text)]);
      }
    });
  }

  test('that repeats nothing very often is compiled at once', () => {
    expect(linearPattern('^(){999999999}a(?:(){99999}){99999}$').test('a')).toBe(true);
  });

  test('that is none, looks around or grows too large is refused', () => {
    for (const source of [
      '(',
      '[',
      'a(?=b)',
      '(?<!a)b',
      '(a)\\1',
      '(?:a{1000}){1000}',
      '(?:a{9}){9999}',
    ]) {
      expect(() => linearPattern(source)).toThrow(UnfitPattern);
    }
  });
});

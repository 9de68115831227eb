/** The published schema is complete, and the loader agrees with it. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { check } from '../../../src/config/file/check.ts';
import { closed, type ProgramForm } from '../../../src/config/file/schema.ts';
import { fileSchema, jsonSchema } from '../../../src/config/sections/index.ts';
import { profileFacts } from '../../../src/config/sections/profiles.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { violation } from '../../../src/lib/json/json-schema.ts';
import { good } from '../support.ts';

// Both directions, at compile time.
const facts = closed('Facts.', profileFacts);
type Facts = ProgramForm<typeof facts>;
const toProfile = (facts: Facts & { name: string }): Profile => facts;
const toFacts = (profile: Omit<Profile, 'name'>): Facts => profile;

interface Node {
  readonly [key: string]: unknown;
  readonly properties?: Record<string, Node>;
  readonly required?: string[];
}

function* objects(node: unknown, path = ''): Generator<[string, Node]> {
  if (typeof node !== 'object' || node === null) return;
  if ('properties' in node && 'type' in node && node.type === 'object') yield [path, node as Node];
  for (const [key, child] of Object.entries(node)) yield* objects(child, `${path}/${key}`);
}

describe('the published schema', () => {
  const schema = jsonSchema();
  const all = [...objects(schema)];

  test('is plain JSON of draft 2020-12', () => {
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
    expect(schema.$schema).toContain('2020-12');
    expect(all.length).toBeGreaterThan(15);
  });

  test('describes every key, and says what happens when it is left out', () => {
    for (const [path, { properties, required }] of all) {
      if (path.includes('profiles')) continue; // Facts have their defaults in the profile itself.
      for (const [key, child] of Object.entries(properties ?? {})) {
        const place = `${path}/${key}`;
        expect([place, typeof child.description]).toEqual([place, 'string']);
        const documented = required?.includes(key) || 'default' in child || 'x-default' in child;
        expect([place, documented]).toEqual([place, true]);
      }
    }
  });

  test('allows no unknown key anywhere', () => {
    for (const [path, { additionalProperties }] of all) {
      expect([path, additionalProperties]).toEqual([path, false]);
    }
  });

  test('every default is a legal value of its key', () => {
    for (const [path, { properties }] of all) {
      for (const [key, child] of Object.entries(properties ?? {})) {
        if (!('default' in child)) continue;
        const { problems } = check(child, structuredClone(child.default), new Set());
        expect([`${path}/${key}`, problems]).toEqual([`${path}/${key}`, []]);
      }
    }
  });

  test('has exactly the facts of a vendor profile', () => {
    expect(toProfile({ name: 'x', images: false })).toEqual({ name: 'x', images: false });
    expect(toFacts({ toolChoices: ['auto'] })).toEqual({ toolChoices: ['auto'] });
  });
});

describe('the loader and the schema agree', () => {
  const isLegal = (value: unknown, schema: object) =>
    violation(value as Json, schema as JsonObject) === undefined;
  // Mostly right files with something wrong in them: keys and values of the real vocabulary, shuffled.
  const keys = new Set<string>(['nope', 'glm', '9x']);
  const values: unknown[] = [0, 1, -1, 1.5, true, false, '', 'x', 'glm/x', '22:00-06:00', '>5', []];
  const collect = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    // The pattern that refuses it has a lookahead, which the judge does not know.
    if ('const' in node && node.const !== 'tools') values.push(node.const);
    if ('properties' in node) for (const k of Object.keys(node.properties as object)) keys.add(k);
    Object.values(node).forEach(collect);
  };
  collect(fileSchema);
  const node = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom(...values),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...keys), tie('any'), { maxKeys: 3 }),
    ),
  })).any;
  const root = fc.record(
    Object.fromEntries(Object.keys(fileSchema.properties).map((key) => [key, node])),
    { requiredKeys: [] },
  );

  test('on files of known keys and values in any order', () => {
    fc.assert(
      fc.property(root, (file) => {
        const { problems } = check(fileSchema, structuredClone(file), new Set());
        expect(problems.length === 0).toBe(isLegal(file, fileSchema));
      }),
      { numRuns: 400 },
    );
  });

  test('on each part of the schema by itself', () => {
    for (const [, part] of objects(fileSchema)) {
      for (const [key, child] of Object.entries(part.properties ?? {})) {
        fc.assert(
          fc.property(node, (value) => {
            const { problems } = check(child, structuredClone(value), new Set());
            expect([key, problems.length === 0]).toEqual([key, isLegal(value, child)]);
          }),
          { numRuns: 25 },
        );
      }
    }
  });

  test('a value with its defaults filled in is still legal', () => {
    const filled = check(fileSchema, { providers: { glm: null } }, new Set());
    expect(filled.problems).toEqual([]);
    expect(isLegal(filled.value, fileSchema)).toBe(true);
    expect(good('providers: { glm: {} }').workers).toBe(1);
  });
});

/** Finds the reasons why a JSON Schema cannot be enforced. */

import { UnfitPattern } from '../text/linear-pattern.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import {
  patternOf,
  resolve,
  TYPES,
  WITH_NAMED_SCHEMAS,
  WITH_SCHEMA,
  WITH_SCHEMAS,
} from './json-schema-parts.ts';

/** Keywords that are checked, and what their value must be. */
const CHECKED: Readonly<Record<string, (value: Json) => boolean>> = {
  type: (value) => [value].flat().every((one) => TYPES.has(one as string)),
  enum: Array.isArray,
  const: () => true,
  pattern: isText,
  $ref: isText,
  required: isTexts,
  dependentRequired: (value) => isObject(value) && Object.values(value).every((v) => isTexts(v!)),
  dependencies: isObject,
  uniqueItems: isFlag,
  nullable: isFlag,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: (value) => isNumber(value) || isFlag(value),
  exclusiveMaximum: (value) => isNumber(value) || isFlag(value),
  multipleOf: (value) => isNumber(value) && (value as number) > 0,
  ...Object.fromEntries(
    [
      ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minContains', 'maxContains'],
      ...['minProperties', 'maxProperties'],
    ].map((name) => [name, (value: Json) => Number.isInteger(value) && (value as number) >= 0]),
  ),
};
/** Keywords that describe a value and refuse none. */
const ANNOTATIONS = new Set([
  ...['$schema', '$id', 'id', '$anchor', '$comment', '$vocabulary', 'title', 'description'],
  ...['default', 'examples', 'example', 'deprecated', 'readOnly', 'writeOnly', 'format'],
  ...[
    'contentEncoding',
    'contentMediaType',
    'contentSchema',
    'discriminator',
    'externalDocs',
    'xml',
  ],
]);

function isText(value: Json): boolean {
  return typeof value === 'string';
}
function isTexts(value: Json): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
function isFlag(value: Json): boolean {
  return typeof value === 'boolean';
}
function isNumber(value: Json): boolean {
  return typeof value === 'number';
}

export interface SchemaProblem {
  readonly path: readonly (string | number)[];
  /** Continues a sentence that begins with the path: "is no regular expression". */
  readonly message: string;
}

/**
 * The reasons why a schema cannot be enforced: unknown keywords (a misspelt one would allow everything), invalid
 * values, references without a target, patterns that cannot be tested in linear time.
 */
export function schemaProblems(root: JsonObject): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const look = (schema: Json | undefined, path: readonly (string | number)[]): void => {
    const say = (at: readonly (string | number)[], message: string) =>
      problems.push({ path: [...path, ...at], message });
    if (typeof schema === 'boolean') return;
    if (!isObject(schema)) return void say([], 'is no schema');
    if (path.length > 200) return void say([], 'is nested too deeply');
    const pattern = (at: readonly string[], source: string) => {
      try {
        patternOf(source, root);
      } catch (thrown) {
        say(at, thrown instanceof UnfitPattern ? thrown.message : 'is no regular expression');
      }
    };
    for (const [key, value] of Object.entries(schema)) {
      if (value === undefined || ANNOTATIONS.has(key) || key.startsWith('x-')) continue;
      const each = (list: readonly Json[]) => {
        for (const [at, one] of list.entries()) look(one, [...path, key, at]);
      };
      if (WITH_SCHEMAS.has(key) || (key === 'items' && Array.isArray(value))) {
        if (Array.isArray(value)) each(value);
        else say([key], 'must be a list of schemas');
      } else if (WITH_SCHEMA.has(key)) look(value, [...path, key]);
      else if (WITH_NAMED_SCHEMAS.has(key)) {
        if (!isObject(value)) say([key], 'must hold schemas by name');
        else {
          for (const [name, one] of Object.entries(value)) {
            if (key === 'patternProperties') pattern([key, name], name);
            look(one, [...path, key, name]);
          }
        }
      } else if (!Object.hasOwn(CHECKED, key)) say([key], 'is a keyword that is not known here');
      else if (!CHECKED[key]!(value)) say([key], 'has a value of the wrong kind');
      else if (key === 'pattern') pattern([key], value as string);
      else if (key === '$ref' && resolve(value as string, root) === undefined) {
        say([key], 'leads nowhere: references must stay within the schema');
      } else if (key === 'dependencies') {
        for (const [name, one] of Object.entries(value as JsonObject)) {
          if (!Array.isArray(one)) look(one, [...path, key, name]);
        }
      }
    }
  };
  look(root, []);
  return problems;
}

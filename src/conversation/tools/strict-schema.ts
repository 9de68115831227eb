/**
 * Strict tools of Messages clients at OpenAI, which refuses more: there, each property is required
 * (https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas), where Anthropic takes optional ones.
 */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { WITH_NAMED_SCHEMAS, WITH_SCHEMA, WITH_SCHEMAS } from '../../lib/json/json-schema-parts.ts';
import type { Notes } from '../notes.ts';
import type { FunctionTool } from '../types.ts';

const UNKNOWN = ['allOf', 'oneOf', 'not', 'if', 'patternProperties', 'dependentSchemas'];

/** The `strict` of a tool at OpenAI. */
export function strictAtOpenai(
  tool: FunctionTool,
  notes: Notes,
  where: string,
): boolean | undefined {
  const isMessages = (tool.wire ?? tool.residue)?.protocol === 'anthropic-messages';
  if (tool.strict !== true || !isMessages || isStrict(tool.schema)) return tool.strict;
  notes.add('parameter_dropped', `${where}/strict`, 'its schema is not strict enough there');
  return undefined;
}

/** Does OpenAI take the schema of a strict tool? */
function isStrict(schema: JsonObject | undefined): boolean {
  const left: (Json | undefined)[] = [schema ?? {}];
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    if (!isObject(one)) continue;
    if (UNKNOWN.some((keyword) => one[keyword] !== undefined) || !isClosed(one)) return false;
    for (const [keyword, value] of Object.entries(one)) {
      if (WITH_SCHEMA.has(keyword)) left.push(value);
      else if (WITH_SCHEMAS.has(keyword) || WITH_NAMED_SCHEMAS.has(keyword)) {
        for (const item of Object.values(value ?? {})) left.push(item as Json);
      }
    }
  }
  return true;
}

function isClosed({ type, properties, required, additionalProperties }: JsonObject): boolean {
  const isOfObjects = type === 'object' || (Array.isArray(type) && type.includes('object'));
  if (!isOfObjects && properties === undefined) return true;
  if (additionalProperties !== false) return false;
  const names = Object.keys(isObject(properties) ? properties : {});
  const needed = new Set(Array.isArray(required) ? (required as readonly Json[]) : []);
  return names.every((name) => needed.has(name));
}

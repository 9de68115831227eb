/** Removable members of tools and other fields, one level at a time, so that a bisection can enter schemas. */

import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { pointerOf } from '../../lib/json/pointer.ts';
import { type Cut, isGone } from './cut.ts';
import { type CutUnit, historyKey, listOf, sizeOf } from './message-units.ts';

/** Members without which a tool, a format or an object schema is none. */
const FIXED = new Set([
  ...['type', 'name', 'function', 'functionDeclarations', 'function_declarations'],
  ...['parameters', 'parametersJsonSchema', 'parameters_json_schema', 'input_schema'],
  ...['properties', 'schema', 'json_schema', 'format', 'role', 'content', 'parts', 'text'],
]);
/** Members that hold schemas by names, which nothing but the schema itself needs. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions']);

export interface MemberLevel {
  readonly units: readonly CutUnit[];
  /** Nothing is below. */
  readonly isDeepest: boolean;
}

/** The removable members at this depth below each remaining field, except the history. */
export function memberUnits(
  body: JsonObject,
  cut: Cut,
  protocol: ProtocolName,
  depth: number,
): MemberLevel {
  const units: CutUnit[] = [];
  let isDeepest = true;
  const walk = (value: Json, path: readonly (string | number)[], required: readonly Json[]) => {
    const at = pointerOf(path);
    if (typeof value !== 'object' || value === null || isGone(cut, at) || cut.values.has(at)) {
      return;
    }
    const name = String(path.at(-1));
    // A tool as a whole has had its turn.
    const isTools = path.length === 1 && name === 'tools';
    const isNamed = NAMED.has(name);
    const isLevel = path.length === depth + 1;
    for (const [key, member] of Object.entries(value as Readonly<Record<string, Json>>)) {
      const inside = [...path, key];
      if (!isLevel) {
        const own = isObject(value) ? listOf(value.required) : [];
        walk(member, inside, NAMED.has(key) ? own : []);
        continue;
      }
      isDeepest = false;
      if (isTools || (!isNamed && FIXED.has(key))) continue;
      const pointers = [pointerOf(inside)];
      // A property that is gone cannot be required.
      const index = name === 'properties' ? required.indexOf(key) : -1;
      if (index >= 0) pointers.push(pointerOf([...path.slice(0, -1), 'required', index]));
      units.push({ pointers, bytes: sizeOf(member) });
    }
  };
  for (const [key, value] of Object.entries(body)) {
    if (key !== historyKey(protocol) && value !== undefined) walk(value, [key], []);
  }
  return { units, isDeepest };
}

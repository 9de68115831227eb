/** Converts values of a broken body to the types they should have; valid values keep their reference. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';

/** Any value as a string; '' for null and undefined. */
export function asString(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The object with these members; the same reference if it has them. Undefined removes a member. */
export function withMembers(object: JsonObject, members: JsonObject): JsonObject {
  let out: Record<string, Json | undefined> | undefined;
  for (const key of Object.keys(members)) {
    if (object[key] === members[key]) continue;
    out ??= { ...object };
    if (members[key] === undefined) delete out[key];
    else out[key] = members[key];
  }
  return out ?? object;
}

/** Repairs each item of a list; undefined drops it. Returns the same list if nothing changed. */
export function repairList(
  list: readonly Json[],
  repair: (item: Json, index: number) => Json | undefined,
): readonly Json[] {
  let out: Json[] | undefined;
  for (let i = 0; i < list.length; i++) {
    const item = list[i]!;
    const next = repair(item, i);
    if (out === undefined && next === item) continue;
    out ??= list.slice(0, i);
    if (next !== undefined) out.push(next);
  }
  return out ?? list;
}

/** Any value as a list: a single value becomes a list of one, null and undefined an empty list. */
export function asList(value: Json | undefined): readonly Json[] {
  if (Array.isArray(value)) return value as readonly Json[];
  return value === undefined || value === null ? [] : [value];
}

/**
 * Repairs the entries of a history. If none is readable, a placeholder takes their place.
 * @param said an entry in which the user says this: what an entry means that is no object
 */
export function repairHistoryList(
  given: Json,
  said: (text: string) => JsonObject,
  repair: (item: JsonObject) => Json | undefined,
): readonly Json[] {
  const list = asList(given);
  const repaired = repairList(list, (item) => {
    if (isObject(item)) return repair(item);
    const text = asString(item);
    return text === '' ? undefined : said(text);
  });
  return repaired.length === 0 && list.length > 0 ? [said('(no content)')] : repaired;
}

/**
 * `content` as a string or a list of parts; '' if there is none.
 * @param part repairs one part that is an object
 */
export function repairContent(
  content: Json | undefined,
  textType: string,
  part: (value: JsonObject) => JsonObject | undefined,
): Json {
  if (typeof content === 'string') return content;
  if (content === undefined || content === null) return '';
  if (!Array.isArray(content) && !isObject(content)) return asString(content);
  return repairList(asList(content), (value) => {
    if (isObject(value)) return part(value);
    const text = asString(value);
    return text === '' ? undefined : { type: textType, text };
  });
}

/** Makes the text of a part a string; undefined if the part has no text. */
export function repairTextPart(value: JsonObject): JsonObject | undefined {
  if (typeof value.text === 'string') return value;
  if (value.text === undefined || value.text === null) return undefined;
  return { ...value, text: asString(value.text) };
}

export const asName = (value: Json | undefined): string => asString(value) || 'unknown';

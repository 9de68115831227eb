/** Small steps from what stands in a broken body to what should: identity wherever it already does. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';

/** Anything as the string it was meant to be; null and absence are ''. */
export function asString(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The object with these members; itself where it has them already. Undefined removes one. */
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

/** A list with each item mended; undefined drops one. The same list where nothing changed. */
export function repairList(
  list: readonly Json[],
  mend: (item: Json, index: number) => Json | undefined,
): readonly Json[] {
  let out: Json[] | undefined;
  for (let i = 0; i < list.length; i++) {
    const item = list[i]!;
    const next = mend(item, i);
    if (out === undefined && next === item) continue;
    out ??= list.slice(0, i);
    if (next !== undefined) out.push(next);
  }
  return out ?? list;
}

/** What a list should have been: one thing alone is a list of it, nothing is none. */
export function asList(value: Json | undefined): readonly Json[] {
  if (Array.isArray(value)) return value as readonly Json[];
  return value === undefined || value === null ? [] : [value];
}

/** The entries of a history, mended; one that says that it says nothing where none could be read. */
export function repairHistoryList(
  given: Json,
  mend: (item: Json) => Json | undefined,
): readonly Json[] {
  const list = asList(given);
  const mended = repairList(list, mend);
  return mended.length === 0 && list.length > 0
    ? [{ role: 'user', content: '(no content)' }]
    : mended;
}

/**
 * `content` as a string or a list of parts; '' for none.
 * @param part mends one part that is an object
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

/** A text part whose text is no string; undefined for one without any. */
export function repairTextPart(value: JsonObject): JsonObject | undefined {
  if (typeof value.text === 'string') return value;
  if (value.text === undefined || value.text === null) return undefined;
  return { ...value, text: asString(value.text) };
}

/** A name that can stand on the wire. */
export const asName = (value: Json | undefined): string => asString(value) || 'unknown';

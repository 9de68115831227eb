/** Refuses a part that says two things at once, or one of whose fields has the wrong type, before half of it is read. */

import { invalid } from '../../../conversation/errors.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { field, snakeCase } from '../wire.ts';

/** The contents of a part, with the texts in each; `text` is checked where it is read. */
const CONTENTS: Readonly<Record<string, readonly string[]>> = {
  text: [],
  inlineData: ['mimeType', 'data'],
  fileData: ['mimeType', 'fileUri'],
  functionCall: ['id'],
  functionResponse: ['id'],
  executableCode: ['id', 'language', 'code'],
  codeExecutionResult: ['id', 'outcome', 'output'],
  toolCall: ['id', 'toolType'],
  toolResponse: ['id', 'toolType'],
};

/** Both spellings of each content, and what they mean. */
const KEYS: ReadonlyMap<string, string> = new Map(
  Object.keys(CONTENTS).flatMap((name) => [
    [name, name],
    [snakeCase(name), name],
  ]),
);

/** Base64 in either alphabet, as proto3 JSON takes bytes. */
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

/**
 * Checks the parts of a part that {@link decodePart} would pass over.
 * @throws GatewayError invalid_request in Google's words, naming the field
 */
export function checkPart(part: JsonObject, where: string): void {
  let content: string | undefined;
  for (const key in part) {
    const name = KEYS.get(key);
    const value = part[key];
    if (name === undefined || value === undefined || value === null) continue;
    if (content !== undefined) {
      throw invalid(
        `Invalid value at '${where}' (oneof), oneof field 'data' is already set. Cannot set '${name}'`,
        where,
      );
    }
    content = name;
    if (name !== 'text') checkContent(value, name, `${where}.${snakeCase(name)}`);
  }
  const signature = field(part, 'thoughtSignature');
  if (signature === undefined || signature === null) return;
  if (typeof signature !== 'string' || !BASE64.test(signature)) {
    const at = `${where}.thought_signature`;
    const words = `Base64 decoding failed for ${shown(signature)}`;
    throw invalid(`Invalid value at '${at}' (TYPE_BYTES), ${words}`, at);
  }
}

function checkContent(value: Json, name: string, where: string): void {
  if (!isObject(value)) throw wrong(where, 'object', value);
  for (const key of CONTENTS[name]!) {
    const text = field(value, key);
    if (text === undefined || text === null || typeof text === 'string') continue;
    throw wrong(`${where}.${snakeCase(key)}`, 'TYPE_STRING', text);
  }
}

const wrong = (where: string, wanted: string, value: Json) =>
  invalid(`Invalid value at '${where}' (${wanted}), ${shown(value)}`, where);

const shown = (value: Json): string => JSON.stringify(value).slice(0, 200);

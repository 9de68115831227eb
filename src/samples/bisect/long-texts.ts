/** Finds long values of a request, with a short stub for each, and halves of a text. */

import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { pointerOf } from '../../lib/json/pointer.ts';
import { type Cut, isGone } from './cut.ts';
import { historyKey, sizeOf } from './message-units.ts';

export interface LongText {
  readonly pointer: string;
  readonly value: string | JsonObject;
  readonly bytes: number;
  /** A short value that is valid in the same place. */
  readonly stub: Json;
}

/** Shorter texts explain nothing and would cost a request. */
const MIN = 80;

const TEXTS = new Set([
  'content',
  'text',
  'output',
  'thinking',
  'reasoning_content',
  'description',
  'instructions',
  'system',
]);
const HISTORY_ROOTS = new Set(['messages', 'input', 'system', 'instructions', 'tools']);

/** Remaining long texts and arguments, the longest first. */
export function longTexts(body: JsonObject, cut: Cut, protocol: ProtocolName): readonly LongText[] {
  const places: LongText[] = [];
  const walk = (whole: Json, path: readonly (string | number)[]) => {
    const pointer = pointerOf(path);
    if (isGone(cut, pointer)) return;
    const value = cut.values.get(pointer) ?? whole;
    const stub = stubFor(String(path.at(-1)), value, path.length);
    if (stub !== undefined) {
      const bytes = sizeOf(value);
      if (bytes > MIN) places.push({ pointer, value: value as string, bytes, stub });
    } else if (Array.isArray(value)) {
      for (const [i, item] of value.entries()) walk(item, [...path, i]);
    } else if (isObject(value)) {
      for (const [name, member] of Object.entries(value)) {
        if (member !== undefined && (path.length > 0 || HISTORY_ROOTS.has(name))) {
          walk(member, [...path, name]);
        }
      }
    }
  };
  walk(body, []);
  const history = `/${historyKey(protocol)}/`;
  const rank = ({ pointer, bytes }: LongText) => bytes + (pointer.startsWith(history) ? 0.5 : 0);
  return places.toSorted((a, b) => rank(b) - rank(a));
}

function stubFor(key: string, value: Json, depth: number): Json | undefined {
  if (typeof value === 'string') {
    if (key === 'arguments') return '{}';
    if (TEXTS.has(key) || (key === 'input' && depth !== 2)) return 'ok';
    return undefined;
  }
  // Arguments of a Messages call.
  return key === 'input' && depth > 2 && isObject(value) ? {} : undefined;
}

/** The first and the second half; surrogate pairs are not split. */
export function halves(text: string): readonly [string, string] {
  let middle = text.length >> 1;
  const code = text.charCodeAt(middle - 1);
  if (code >= 0xd800 && code <= 0xdbff) middle++;
  return [text.slice(0, middle), text.slice(middle)];
}

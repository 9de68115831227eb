/** Writes JSON in steps: as `JSON.stringify` does, and other work has its turn in between. */

import type { Steps } from '../loop/steps.ts';
import { isObject, type Json } from './json.ts';

/** Characters of a long text that are written at once, and characters of short ones between two yields. */
const STEP = 64 * 1024;

/** The pieces of the JSON text. */
export function* jsonTextSteps(value: Json): Steps<readonly string[]> {
  const pieces: string[] = [];
  let text = '';
  function* flush(): Steps<void> {
    pieces.push(text);
    text = '';
    yield;
  }
  function* string(whole: string): Steps<void> {
    text += '"';
    for (let from = 0; from < whole.length; ) {
      let to = Math.min(whole.length, from + STEP);
      // Both halves of a surrogate pair stay together: alone they are escaped.
      if (to < whole.length && isHighSurrogate(whole.charCodeAt(to - 1))) to++;
      text += JSON.stringify(whole.slice(from, to)).slice(1, -1);
      from = to;
      yield* flush();
    }
    text += '"';
  }
  function* write(item: Json): Steps<void> {
    if (Array.isArray(item)) {
      let between = '[';
      for (const one of item as readonly (Json | undefined)[]) {
        text += between;
        between = ',';
        yield* write(one ?? null);
      }
      text += between === '[' ? '[]' : ']';
    } else if (isObject(item)) {
      let between = '{';
      for (const [key, one] of Object.entries(item)) {
        if (one === undefined) continue;
        text += `${between}${JSON.stringify(key)}:`;
        between = ',';
        yield* write(one);
      }
      text += between === '{' ? '{}' : '}';
    } else if (typeof item === 'string' && item.length > STEP) yield* string(item);
    else text += JSON.stringify(item);
    if (text.length > STEP) yield* flush();
  }
  yield* write(value);
  pieces.push(text);
  return pieces;
}

const isHighSurrogate = (code: number) => code >= 0xd800 && code < 0xdc00;

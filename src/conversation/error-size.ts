/** Bounds the size of a vendor's error, which is matched by patterns, masked, logged and sent to clients. */

import { isObject, type Json, type JsonObject } from '../lib/json/json.ts';
import { put } from '../lib/json/json-members.ts';
import { cutWords } from '../lib/text/printable-text.ts';

// The same bound as for the body of an error answer.
const MAX_CHARS = 1024 * 1024;
const MAX_TEXT_SHARE = MAX_CHARS / 4;
const MAX_VALUES = 10_000;
const MAX_DEPTH = 64;

/**
 * The error within these bounds: 1 Mi characters and 10,000 values in all, 256 Ki characters in each text,
 * 64 levels. A text that is cut ends with three dots. Further members are left out, nested ones first. The
 * same value if it fits.
 */
export function boundedError<T extends Json | undefined>(error: T): T {
  return new Budget().value(error, 0) as T;
}

class Budget {
  #chars = MAX_CHARS;
  #values = MAX_VALUES;

  value(value: Json | undefined, depth: number): Json | undefined {
    this.#values--;
    if (typeof value === 'string') {
      const kept = cutWords(value, Math.min(MAX_TEXT_SHARE, Math.max(0, this.#chars)));
      this.#chars -= kept.length;
      return kept;
    }
    if (Array.isArray(value)) return this.#list(value, depth);
    return isObject(value) ? this.#object(value, depth) : value;
  }

  #full(depth: number): boolean {
    return this.#chars <= 0 || this.#values <= 0 || depth >= MAX_DEPTH;
  }

  #list(list: readonly Json[], depth: number): readonly Json[] {
    const out: Json[] = [];
    let same = true;
    for (const one of list) {
      if (this.#full(depth)) return out;
      const kept = this.value(one, depth + 1) as Json;
      same &&= kept === one;
      out.push(kept);
    }
    return same ? list : out;
  }

  #object(object: JsonObject, depth: number): JsonObject {
    const out: Record<string, Json | undefined> = {};
    let same = true;
    // Plain members first: they hold the error's message and code.
    for (const nested of [false, true]) {
      for (const key in object) {
        const member = object[key];
        if ((typeof member === 'object' && member !== null) !== nested) continue;
        this.#chars -= key.length;
        if (this.#full(depth)) return out;
        const kept = this.value(member, depth + 1);
        same &&= kept === member;
        put(out, key, kept);
      }
    }
    return same ? object : out;
  }
}

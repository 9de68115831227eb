/** Repairs broken JSON arguments of a model without inventing values. */

import { jsonrepair } from 'jsonrepair';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { withLiteralBackslashes } from '../../../lib/json/literal-backslashes.ts';
import { jsonValue } from './coerce-value.ts';
import { pythonLiteral } from './python-literal.ts';

// A number or a key that breaks off may be incomplete; only closing brackets may be added.
const WHOLE_VALUE = /(?:["'}\]]|[Tt]rue|[Ff]alse|null|None)$/;

/** Maximum cost of all repairs of one reply: about 30 ms of the event loop. */
const WORK = 65_536;
/** An invalid character costs as much as this many valid ones. */
const ODD = 256;
/** What a text costs however short it is. */
const TEXT = 64;
/** Characters that cost one unit of work. */
const CHARACTERS = 16;
/** Nesting depth beyond which brackets count as invalid characters. */
const DEPTH = 64;

/** The repairs of one reply. Their total cost is bounded; a text that would exceed it is not repaired. */
export class Repairs {
  #left = WORK;
  #refused = 0;

  /** How many texts were too expensive to repair. */
  get refused(): number {
    return this.#refused;
  }

  /**
   * The repaired text of a JSON object; undefined if it cannot be repaired. A text that ends inside a value is
   * not repaired, because the rest would be invented.
   */
  text(text: string): string | undefined {
    const trimmed = text.trim();
    if (!trimmed.startsWith('{') || !WHOLE_VALUE.test(trimmed.slice(-5))) return undefined;
    const { work, inString } = costOf(trimmed);
    if (inString) return undefined;
    if (work > this.#left) {
      this.#refused++;
      return undefined;
    }
    this.#left -= work;
    const escaped = withLiteralBackslashes(text);
    if (escaped === undefined) return undefined;
    try {
      const fixed = jsonrepair(withoutControls(escaped));
      return isObject(jsonValue(fixed)) ? fixed : undefined;
    } catch {
      return undefined;
    }
  }

  /** The repaired object, or undefined. */
  object(text: string): JsonObject | undefined {
    const fixed = this.text(text);
    const value = fixed === undefined ? undefined : jsonValue(fixed);
    return isObject(value) ? value : undefined;
  }
}

/** `jsonrepair` knows raw line breaks and tabs only. */
const withoutControls = (text: string): string =>
  text.replace(/(?![\t\n\f\r])\p{Cc}/gu, (char) =>
    char < ' ' ? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}` : char,
  );

/** The value of JSON that is broken, or of a Python literal. */
export function repairedValue(text: string, repairs: Repairs): Json | undefined {
  const escaped = withLiteralBackslashes(text);
  if (escaped === undefined) return undefined;
  const value = escaped === text ? undefined : jsonValue(escaped);
  return value ?? pythonLiteral(escaped) ?? repairs.object(escaped);
}

const PLAIN = new Uint8Array(128);
for (const char of '{}[]:,+-. \t\r\n0123456789') PLAIN[char.charCodeAt(0)] = 1;
for (let code = 0x41; code <= 0x5a; code++) PLAIN[code] = PLAIN[code + 0x20] = 1;

/**
 * The cost of a repair: every invalid character makes it backtrack, the rest is cheap. `inString`: the text
 * ends inside a double-quoted string.
 */
function costOf(text: string): { readonly work: number; readonly inString: boolean } {
  let odd = 0;
  let depth = 0;
  let inString = false;
  let closed = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i++;
      else if (code === 0x22) {
        inString = false;
        closed = true;
      } else if (code < 0x20) odd++;
      continue;
    }
    if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) continue;
    // After a string only these characters are valid.
    if (closed && code !== 0x2c && code !== 0x3a && code !== 0x7d && code !== 0x5d) odd++;
    closed = false;
    if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > DEPTH) odd++;
    } else if (code === 0x7d || code === 0x5d) depth--;
    else if (code > 127 || PLAIN[code] === 0) odd++;
  }
  return { work: TEXT + Math.ceil((text.length + odd * ODD) / CHARACTERS), inString };
}

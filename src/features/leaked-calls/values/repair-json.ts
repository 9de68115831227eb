/** Repairs JSON arguments that a model wrote wrongly, without making anything up. */

import { jsonrepair } from 'jsonrepair';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { jsonValue } from './coerce-value.ts';

// A number, a key or a list that breaks off may have gone on; closing brackets add nothing.
const WHOLE_VALUE = /(?:["'}\]]|[Tt]rue|[Ff]alse|null|None)$/;

/** What all repairs of one reply may cost; some 30 ms of the event loop. */
const WORK = 65_536;
/** A thing that JSON does not have at its place costs as much as this many characters. */
const ODD = 256;
/** What a text costs however short it is. */
const TEXT = 64;
/** Characters that cost one unit of work. */
const CHARACTERS = 16;
/** Brackets within brackets; deeper ones count as odd. */
const DEPTH = 64;

/** The repairs of one reply. Their work is bounded: what would cost more is not repaired. */
export class Repairs {
  #left = WORK;
  #refused = 0;

  /** How often a text was too much. */
  get refused(): number {
    return this.#refused;
  }

  /**
   * The text of the object that the broken JSON means, or undefined where it cannot be told. A text that
   * ends inside a value is not repaired: the rest of it would be made up.
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
    try {
      const fixed = jsonrepair(text);
      return isObject(jsonValue(fixed)) ? fixed : undefined;
    } catch {
      return undefined;
    }
  }

  /** The object that the broken JSON means, or undefined. */
  object(text: string): JsonObject | undefined {
    const fixed = this.text(text);
    const value = fixed === undefined ? undefined : jsonValue(fixed);
    return isObject(value) ? value : undefined;
  }
}

const PLAIN = new Uint8Array(128);
for (const char of '{}[]:,+-. \t\r\n0123456789') PLAIN[char.charCodeAt(0)] = 1;
for (let code = 0x41; code <= 0x5a; code++) PLAIN[code] = PLAIN[code + 0x20] = 1;

/**
 * What a repair costs: it goes back and forth at every character that JSON does not have at its place,
 * and passes the rest quickly. `inString`: the text breaks off within a double-quoted string.
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
    // Behind a string: what may follow it, or it has not ended there.
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

/** Builds a string that a (common) regular expression matches. */

import { spend } from './effort.ts';

/** Characters that the demo model makes for one value. */
export const MAX_TEXT = 10_000;

type Cursor = { readonly text: string; at: number; readonly more: number };

const CLASSES: Readonly<Record<string, string>> = {
  d: '1',
  w: 'a',
  s: ' ',
  D: 'a',
  W: '-',
  S: 'a',
};
const CONTROLS: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

/**
 * A string for the pattern, or undefined where it uses what this does not know (look-around,
 * back-references). The caller checks the result.
 * @param more how often beyond the minimum an open repetition (`+`, `*`, `{2,9}`) is taken
 */
export function samplePattern(pattern: string, more: number): string | undefined {
  const cursor: Cursor = { text: pattern, at: 0, more };
  const out = alternatives(cursor);
  return cursor.at === pattern.length ? out : undefined;
}

/** The first alternative that can be built; the others are read over. */
function alternatives(c: Cursor): string | undefined {
  let found: string | undefined;
  let known = true;
  for (;;) {
    const one = sequence(c);
    if (one === undefined) known = false;
    else found ??= one;
    if (c.text[c.at] !== '|') break;
    c.at++;
  }
  return known || found !== undefined ? found : undefined;
}

function sequence(c: Cursor): string | undefined {
  let out: string | undefined = '';
  while (c.at < c.text.length && c.text[c.at] !== '|' && c.text[c.at] !== ')') {
    const piece = atom(c);
    const times = quantifier(c);
    if (times === 0) continue;
    const long = (out?.length ?? 0) + (piece?.length ?? 0) * times > MAX_TEXT;
    if (piece === undefined || out === undefined || long) out = undefined;
    // What is nothing is nothing however often it comes.
    else if (piece !== '') out += piece.repeat(times);
  }
  return out;
}

function atom(c: Cursor): string | undefined {
  spend();
  const char = String.fromCodePoint(c.text.codePointAt(c.at)!);
  c.at += char.length;
  if (char === '^' || char === '$') return '';
  if (char === '.') return 'a';
  if (char === '\\') return escaped(c);
  if (char === '[') return charClass(c);
  if (char !== '(') return char;
  let looksAround = false;
  const head = /^\?(?::|<[A-Za-z_]\w*>|<?[=!])/.exec(c.text.slice(c.at));
  if (head) {
    c.at += head[0].length;
    looksAround = /[=!]$/.test(head[0]);
  }
  const inside = alternatives(c);
  c.at++;
  // A look-around adds nothing; whether it holds is for the caller's check.
  return looksAround ? '' : inside;
}

function escaped(c: Cursor): string | undefined {
  const char = c.text[c.at++] ?? '';
  if (char === 'b' || char === 'B') return '';
  if (CLASSES[char] !== undefined) return CLASSES[char];
  if (CONTROLS[char] !== undefined) return CONTROLS[char];
  if (char === 'p' || char === 'P') {
    const name = /^\{[^}]*\}/.exec(c.text.slice(c.at));
    c.at += name?.[0].length ?? 0;
    return /Lu/.test(name?.[0] ?? '') ? 'A' : /N/.test(name?.[0] ?? '') ? '1' : 'a';
  }
  const hex = /^(?:u([0-9a-f]{4})|x([0-9a-f]{2}))/i.exec(c.text.slice(c.at - 1));
  if (hex) {
    c.at += hex[0].length - 1;
    return String.fromCharCode(Number.parseInt(hex[1] ?? hex[2] ?? '', 16));
  }
  return /[0-9k]/.test(char) ? undefined : char;
}

function charClass(c: Cursor): string | undefined {
  const end = /^\^?\]?(?:\\.|[^\]\\])*\]/.exec(c.text.slice(c.at));
  if (!end) return undefined;
  c.at += end[0].length;
  const set = patternOfClass(`[${end[0]}`);
  // Letters first: they read like words.
  for (const char of 'adem1A0-_./ :@#+=,;!?*') if (set?.test(char)) return char;
  spend(1000);
  for (let code = 0x21; code < 0x3000; code++) {
    const char = String.fromCharCode(code);
    if (set?.test(char)) return char;
  }
  return undefined;
}

function patternOfClass(source: string): RegExp | undefined {
  try {
    return new RegExp(`^${source}$`, 'u');
  } catch {
    try {
      return new RegExp(`^${source}$`);
    } catch {
      return undefined;
    }
  }
}

function quantifier(c: Cursor): number {
  const found = /^(?:([*+?])|\{(\d+)(,(\d*))?\})\??/.exec(c.text.slice(c.at));
  if (!found) return 1;
  c.at += found[0].length;
  if (found[1] === '?') return c.more > 0 ? 1 : 0;
  if (found[1] === '*') return c.more;
  if (found[1] === '+') return 1 + c.more;
  const min = Number(found[2]);
  if (found[3] === undefined) return min;
  return Math.min(min + c.more, found[4] === '' ? Number.POSITIVE_INFINITY : Number(found[4]));
}

/** Adds members to the object at the top of a body, and removes some, by its bytes: the rest stays as it is. */

import { splice } from '../bytes/bytes.ts';
import { type Member, topLevel } from './json.ts';

const COMMA = 0x2c;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;

/**
 * The body with these members before its own.
 * @param members without braces and without a last comma: `"model":"m","stream":true`
 * @returns the same bytes where they are no object
 */
export function withFirstMembers(body: Uint8Array, members: string): Uint8Array {
  const brace = nextFilled(body, 0);
  if (body[brace] !== BRACE_OPEN) return body;
  const isEmpty = body[nextFilled(body, brace + 1)] === BRACE_CLOSE;
  return splice(body, brace + 1, brace + 1, isEmpty ? members : `${members},`);
}

export function withoutMembers(body: Uint8Array, names: ReadonlySet<string>): Uint8Array {
  const members = topLevel(body, names);
  if (members === undefined) return body;
  const found = [...members].filter(([name]) => names.has(name)).map(([, member]) => member);
  let out = body;
  // From the end: what stands before keeps its place.
  for (const member of found.sort((a, b) => b.keyStart - a.keyStart)) out = cut(out, member);
  return out;
}

/** Without one member, and without the comma behind it or, if it is the last one, before it. */
function cut(bytes: Uint8Array, { keyStart, valueEnd }: Member): Uint8Array {
  const behind = nextFilled(bytes, valueEnd);
  // White space behind the comma was the client's before this member came.
  if (bytes[behind] === COMMA) return splice(bytes, keyStart, behind + 1, '');
  let start = keyStart;
  while (start > 0 && bytes[start - 1]! <= 0x20) start--;
  return splice(bytes, bytes[start - 1] === COMMA ? start - 1 : start, valueEnd, '');
}

/** The place of the first byte from `at` on that is no white space. */
export function nextFilled(bytes: Uint8Array, at: number): number {
  let i = at;
  while (i < bytes.length && bytes[i]! <= 0x20) i++;
  return i;
}

/** JSON as this product needs it: values, exact numbers, and edits of raw bytes without a parse. */

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json | undefined };

/** A JSON object (not null, not an array, not a raw number kept by {@link parseExact}). */
export function isObject(value: unknown): value is JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return !('rawJSON' in value && isRawJSON(value));
}

// Numbers that a double cannot hold: 16 digits and more. Everything else survives parse → stringify
// in value, so the (2.5 × slower) exact path runs only where it is needed.
const LONG_NUMBER = /\d{16}/;

type SourceReviver = (
  this: unknown,
  key: string,
  value: unknown,
  context: { source?: string },
) => unknown;
const parseWithSource = JSON.parse as (text: string, reviver: SourceReviver) => unknown;
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON: (text: string) => unknown;
  isRawJSON: (value: unknown) => boolean;
};

function keepLongNumbers(
  this: unknown,
  _key: string,
  value: unknown,
  context: { source?: string },
) {
  if (typeof value !== 'number' || context.source === undefined) return value;
  return String(value) === context.source || !LONG_NUMBER.test(context.source)
    ? value
    : rawJSON(context.source);
}

function keepEveryNumber(
  this: unknown,
  _key: string,
  value: unknown,
  context: { source?: string },
) {
  if (typeof value !== 'number' || context.source === undefined) return value;
  return String(value) === context.source ? value : rawJSON(context.source);
}

/**
 * Parses a protocol body. Numbers of 16 and more digits come back as raw numbers that
 * `JSON.stringify` writes as they stood; all others are plain numbers.
 * @throws SyntaxError
 */
export function parseJson(text: string): Json {
  return (
    LONG_NUMBER.test(text) ? parseWithSource(text, keepLongNumbers) : JSON.parse(text)
  ) as Json;
}

/**
 * Parses tool arguments, which nobody here computes with: `1.0`, `1e3` and long numbers are
 * written back exactly as the model wrote them.
 * @throws SyntaxError
 */
export function parseExact(text: string): Json {
  return parseWithSource(text, keepEveryNumber) as Json;
}

/** The value, or undefined when the text is not JSON. */
export function tryParse(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Where one member of a top-level object stands in its bytes: offsets into the body. */
export interface Member {
  readonly keyStart: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;

const isSpace = (byte: number | undefined) =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** Index just behind the string that opens at `at` (which holds a quote), or -1. */
function stringEnd(bytes: Uint8Array, at: number): number {
  let from = at + 1;
  for (;;) {
    const quote = bytes.indexOf(QUOTE, from);
    if (quote < 0) return -1;
    let slashes = 0;
    while (bytes[quote - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return quote + 1;
    from = quote + 1;
  }
}

/** Index just behind the value that starts at `at`, or -1 where it does not end. */
function valueEnd(bytes: Uint8Array, at: number): number {
  const first = bytes[at];
  if (first === QUOTE) return stringEnd(bytes, at);
  if (first !== BRACE_OPEN && first !== BRACKET_OPEN) {
    let i = at;
    while (i < bytes.length) {
      const byte = bytes[i]!;
      if (byte === COMMA || byte === BRACE_CLOSE || byte === BRACKET_CLOSE || isSpace(byte)) break;
      i++;
    }
    return i > at ? i : -1;
  }
  let depth = 0;
  for (let i = at; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === QUOTE) {
      i = stringEnd(bytes, i) - 1;
      if (i < 0) return -1;
    } else if (byte === BRACE_OPEN || byte === BRACKET_OPEN) depth++;
    else if ((byte === BRACE_CLOSE || byte === BRACKET_CLOSE) && --depth === 0) return i + 1;
  }
  return -1;
}

const utf8 = new TextDecoder();

/**
 * The members of the object at the top of a body, by key, found by scanning bytes (0.25 ms for
 * 2 MB where the wanted keys come first). With `wanted`, the scan ends once all of those are found.
 * Returns undefined where the bytes are not an object as far as the scan went; a duplicate key keeps
 * its last place, as JSON.parse does.
 */
export function topLevel(
  bytes: Uint8Array,
  wanted?: ReadonlySet<string>,
): Map<string, Member> | undefined {
  const members = new Map<string, Member>();
  let i = 0;
  const skipSpace = () => {
    while (isSpace(bytes[i])) i++;
  };
  skipSpace();
  if (bytes[i++] !== BRACE_OPEN) return undefined;
  skipSpace();
  if (bytes[i] === BRACE_CLOSE) return members;
  for (;;) {
    skipSpace();
    if (bytes[i] !== QUOTE) return undefined;
    const keyStart = i;
    const keyEnd = stringEnd(bytes, i);
    if (keyEnd < 0) return undefined;
    let key = utf8.decode(bytes.subarray(keyStart + 1, keyEnd - 1));
    if (key.includes('\\')) key = String(tryParse(`"${key}"`) ?? key);
    i = keyEnd;
    skipSpace();
    if (bytes[i++] !== COLON) return undefined;
    skipSpace();
    const start = i;
    const end = valueEnd(bytes, start);
    if (end < 0) return undefined;
    members.set(key, { keyStart, valueStart: start, valueEnd: end });
    if (wanted !== undefined && wanted.size <= members.size && all(wanted, members)) return members;
    i = end;
    skipSpace();
    const next = bytes[i++];
    if (next === BRACE_CLOSE) return members;
    if (next !== COMMA) return undefined;
  }
}

function all(wanted: ReadonlySet<string>, members: Map<string, Member>): boolean {
  for (const key of wanted) if (!members.has(key)) return false;
  return true;
}

const encoder = new TextEncoder();

/** The bytes with `[start, end)` replaced by `text`. */
export function splice(bytes: Uint8Array, start: number, end: number, text: string): Uint8Array {
  const middle = encoder.encode(text);
  const out = new Uint8Array(bytes.length - (end - start) + middle.length);
  out.set(bytes.subarray(0, start));
  out.set(middle, start);
  out.set(bytes.subarray(end), start + middle.length);
  return out;
}

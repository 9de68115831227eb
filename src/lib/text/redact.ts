/** Masks everything that looks like a credential in logs and samples, at equal length. */

import {
  BACKSLASH,
  beginText,
  DOT,
  findAt,
  isHexDigit,
  KINDS,
  type Kind,
  type Span,
  ZHIPU,
} from './credential-kinds.ts';
import { wordSet } from './words.ts';

/** Headers whose whole value is a credential, in lower case. */
const SECRET_HEADERS = wordSet(`
  authorization proxy-authorization x-api-key api-key apikey x-goog-api-key x-auth-token
  x-auth-key x-access-token x-amz-security-token x-subscription-token cf-aig-authorization
  cf-access-client-secret cookie set-cookie
`);

/** Is the whole value of this header a credential? The name in any case. */
export function isSecretHeader(name: string): boolean {
  return SECRET_HEADERS.has(name.toLowerCase());
}

const WORD = /[A-Za-z0-9_+/-]/;
const ESCAPE_BEFORE = /\\(?:[nrtbf]|u[0-9a-fA-F]{4})$/;

/** Does a word begin at `at`? A JSON escape (`\n`, `\u0026`) before it is not part of the word. */
function wordStarts(text: string, at: number): boolean {
  if (at === 0 || !WORD.test(text[at - 1]!)) return true;
  return ESCAPE_BEFORE.test(text.slice(Math.max(0, at - 6), at));
}

/** Kinds by the first two characters of their markers: one table look-up for each character of a text. */
const LISTS: Kind[][] = [[]];
const SLOTS = new Uint8Array(128 * 128);
for (const kind of KINDS) {
  const pair = (kind.marker.charCodeAt(0) << 7) | kind.marker.charCodeAt(1);
  SLOTS[pair] ||= LISTS.push([]) - 1;
  LISTS[SLOTS[pair]!]!.push(kind);
}

interface Matches {
  readonly spans: Span[];
  /** Where each begins by which it was found: its marker, and the end of what is masked. */
  readonly wholes: Span[];
  /** Where the first match begins that more text could extend or complete; the length when there is none. */
  open: number;
}

/** One pass over the text for all markers: a search for each one costs ten times as much. */
function findCredentials(text: string, since = 0): Matches {
  const found: Matches = { spans: [], wholes: [], open: text.length };
  beginText();
  let last = text.charCodeAt(since);
  for (let i = since + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const slot = (last | code) < 128 ? SLOTS[(last << 7) | code]! : 0;
    if (slot !== 0) {
      for (const kind of LISTS[slot]!) {
        if (text.startsWith(kind.marker, i - 1)) match(text, i - 1, kind, found);
      }
    } else if (code === DOT && isHexDigit(last) && i >= since + 32)
      match(text, i - 32, ZHIPU, found);
    last = code;
  }
  return found;
}

/** Beginnings of markers, and whether one may stand in the middle of a word. */
const BEGINNINGS = new Map<string, boolean>();
let longestBeginning = 0;
/** Characters in which a beginning may end. */
const LAST_OF_BEGINNING = new Uint8Array(128);
for (const { marker, anywhere = false } of KINDS) {
  longestBeginning = Math.max(longestBeginning, marker.length - 1);
  for (let length = 1; length < marker.length; length++) {
    const beginning = marker.slice(0, length);
    LAST_OF_BEGINNING[marker.charCodeAt(length - 1)] = 1;
    BEGINNINGS.set(beginning, anywhere || BEGINNINGS.get(beginning) === true);
  }
}

/** Where the text ends in what may become a marker, or the 32 digits before a dot; its length where it does not. */
function openEnd(text: string, since: number): number {
  const last = text.charCodeAt(text.length - 1);
  if (!(last < 128) || (LAST_OF_BEGINNING[last] === 0 && !isHexDigit(last))) return text.length;
  for (let at = Math.max(since, text.length - longestBeginning); at < text.length; at++) {
    const inWord = BEGINNINGS.get(text.slice(at));
    if (inWord === true || (inWord === false && wordStarts(text, at)))
      return digitsFrom(text, since, at);
  }
  return digitsFrom(text, since, text.length);
}

/** Where hex digits begin that a dot may still follow; `until` where none do. */
function digitsFrom(text: string, since: number, until: number): number {
  let from = text.length;
  while (from > since && from > text.length - 32 && isHexDigit(text.charCodeAt(from - 1))) from--;
  for (; from < until; from++) if (wordStarts(text, from)) return from;
  return until;
}

function match(text: string, start: number, kind: Kind, found: Matches): void {
  // The left border is checked first: "sk-sk-sk-…" must not be read to its end from every marker.
  if (kind.anywhere !== true && !wordStarts(text, start)) return;
  const { span, open } = findAt(kind, text, start);
  if (open) found.open = Math.min(found.open, start);
  if (span === undefined) return;
  const [from, end] = span;
  found.wholes.push([Math.min(start, from), end]);
  // After a backslash the first character belongs to an escape (`\r8_…`).
  found.spans.push(text.charCodeAt(from - 1) === BACKSLASH ? [from + 1, end] : span);
}

export interface Redacted {
  /** As long as the input; the same string when nothing was found. */
  readonly text: string;
  /** How many credentials were masked. */
  readonly count: number;
}

/** The result for a part of a text that may continue. */
export interface RedactedPart extends Redacted {
  /** From here on, more text could change the result; the length when nothing can. */
  readonly open: number;
  /** Each credential from the marker by which it was found to its end: without one part the other is not found. */
  readonly wholes: readonly Span[];
}

/**
 * Masks everything that looks like a credential with asterisks, keeping the length. Works on any text: JSON (which
 * stays valid), SSE, log lines, URLs. Masking twice changes nothing more.
 */
export function redactText(text: string): Redacted {
  const { spans } = findCredentials(text);
  return spans.length === 0 ? { text, count: 0 } : masked(text, spans);
}

/**
 * The same for a part of a text that may continue.
 * @param since matches that begin before it are ignored: their left border is not in this part
 */
export function redactPart(text: string, since: number): RedactedPart {
  const { spans, wholes, open } = findCredentials(text, since);
  return { ...masked(text, spans), open: Math.min(open, openEnd(text, since)), wholes };
}

function masked(text: string, spans: Span[]): Redacted {
  if (spans.length === 0) return { text, count: 0 };
  spans.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const out: string[] = [];
  let done = 0;
  let count = 0;
  for (const [start, end] of spans) {
    if (end <= done) continue;
    if (start >= done) count++;
    const begin = Math.max(start, done);
    out.push(text.slice(done, begin), '*'.repeat(end - begin));
    done = end;
  }
  out.push(text.slice(done));
  return { text: out.join(''), count };
}

/**
 * Headers for a log or a sample: values of secret headers are masked as a whole (the scheme of an authorization
 * stays), other values as {@link redactText} does.
 */
export function redactHeaders(headers: Iterable<readonly [string, string]>): {
  readonly headers: readonly (readonly [string, string])[];
  readonly count: number;
} {
  let count = 0;
  const out: (readonly [string, string])[] = [];
  for (const [name, value] of headers) {
    if (isSecretHeader(name)) {
      const scheme = /^(?:Bearer|Basic|Token)\s+/i.exec(value)?.[0] ?? '';
      out.push([name, scheme + '*'.repeat(value.length - scheme.length)]);
      count++;
    } else {
      const redacted = redactText(value);
      out.push([name, redacted.text]);
      count += redacted.count;
    }
  }
  return { headers: out, count };
}

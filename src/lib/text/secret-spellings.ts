/** Masks known secrets in logs and samples, in every spelling that a text may hold. */

import { BACKSLASH, type Span } from './credential-kinds.ts';

/** Shorter secrets would match parts of ordinary words. */
const MIN_SECRET = 8;
/** The first so many characters of a longer secret are searched for; after them it is masked as far as it matches. */
const SOUGHT = 256;

/**
 * Every spelling in which a known secret can stand in a text, longest first: as it is, as JSON and
 * JSON within JSON write it, as URLs do, `user:password` also as the base64 of an Authorization header.
 * None for secrets of less than 8 characters.
 * @param plain false: the secret itself is left out where a JSON text holds its quotation marks or
 *   backslashes only as structure; for texts of JSON, and for secrets that a stranger chose
 */
export function secretSpellings(secret: string, plain = true): readonly string[] {
  if (secret.length < MIN_SECRET) return [];
  const json = JSON.stringify(secret).slice(1, -1);
  const all = new Set([json, JSON.stringify(json).slice(1, -1)]);
  if (plain || json === secret) all.add(secret);
  const url = encodeURIComponent(secret.toWellFormed());
  all.add(url).add(url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()));
  all.add(url.replaceAll('%20', '+'));
  if (/^[^\s:]+:./.test(secret)) all.add(Buffer.from(secret).toString('base64'));
  return [...all].toSorted((a, b) => b.length - a.length);
}

/**
 * Masks known spellings of secrets, wherever they stand, keeping the length and the structure of a JSON
 * text: an escape stays whole, and what could be numbers or brackets of JSON loses only its digits.
 * @param spellings as of {@link secretSpellings}, longer ones before what they contain
 */
export function maskSecrets(text: string, spellings: readonly string[]): string {
  let masked = text;
  for (const spelling of spellings) {
    const sought = soughtOf(spelling);
    const first = masked.indexOf(sought);
    if (first >= 0) masked = maskFrom(masked, first, spelling, sought);
  }
  return masked;
}

/** The result for a part of a text that may continue. */
export interface MaskedPart {
  readonly text: string;
  /** From here on, more text could change the result; the length when nothing can. */
  readonly open: number;
  /** The secrets that were found. */
  readonly wholes: readonly Span[];
}

/** The same for a part of a text that may continue. */
export function maskSecretsPart(text: string, spellings: readonly string[]): MaskedPart {
  const wholes: Span[] = [];
  let masked = text;
  let open = text.length;
  for (const spelling of spellings) {
    const sought = soughtOf(spelling);
    const first = masked.indexOf(sought);
    if (first >= 0) {
      masked = maskFrom(masked, first, spelling, sought, wholes);
      const [at, end] = wholes.at(-1)!;
      if (end === text.length && end - at < spelling.length) open = Math.min(open, at);
    }
    open = Math.min(open, beginningAt(masked, sought));
  }
  return { text: masked, open, wholes };
}

const soughtOf = (spelling: string) =>
  spelling.length > SOUGHT ? spelling.slice(0, SOUGHT) : spelling;

/** Where the text ends in a beginning of what is sought; its length where it does not. */
function beginningAt(text: string, sought: string): number {
  const first = sought.charAt(0);
  let at = text.indexOf(first, Math.max(0, text.length - sought.length + 1));
  while (at >= 0 && !sought.startsWith(text.slice(at))) at = text.indexOf(first, at + 1);
  return at < 0 ? text.length : at;
}

function maskFrom(
  text: string,
  first: number,
  spelling: string,
  sought: string,
  wholes?: Span[],
): string {
  const blank = STRUCTURE.test(sought) ? ones : stars;
  const out: string[] = [];
  let done = 0;
  for (let at = first; at >= 0; ) {
    let end = at + sought.length;
    while (end - at < spelling.length && text[end] === spelling[end - at]) end++;
    wholes?.push([at, end]);
    const from = behindEscape(text, at, done);
    out.push(text.slice(done, Math.min(from, end)), blank(text.slice(from, end)));
    done = end;
    at = text.indexOf(sought, done);
  }
  out.push(text.slice(done));
  return out.join('');
}

const stars = (text: string) => '*'.repeat(text.length);
const ones = (text: string) => text.replace(/[0-9]/g, '1');

/** Text from between the strings of a JSON text, cut anywhere. */
const STRUCTURE =
  /^(?:rue|ue|e|alse|lse|se|ull|ll|l)?(?:[\s{}[\]:,.+\-0-9]|(?<=[0-9])[eE](?=[+\-0-9])|true|false|null)*(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|(?<=[0-9])[eE])?$/;

/** The offset itself, or the end of the JSON escape that it is in the middle of. */
function behindEscape(text: string, at: number, done: number): number {
  for (let back = 1; back <= 5 && at - back >= done; back++) {
    if (text.charCodeAt(at - back) !== BACKSLASH) continue;
    const unicode = text[at - back + 1] === 'u' || (back === 1 && text[at] === 'u');
    if (!unicode && back > 1) return at;
    // Every second backslash of a row is itself escaped.
    let slashes = 1;
    while (at - back - slashes >= done && text.charCodeAt(at - back - slashes) === BACKSLASH)
      slashes++;
    if (slashes % 2 === 0) return at;
    return unicode && /^[0-9a-fA-F]{4}/.test(text.slice(at - back + 2, at - back + 6))
      ? at - back + 6
      : at + (back === 1 ? 1 : 0);
  }
  return at;
}

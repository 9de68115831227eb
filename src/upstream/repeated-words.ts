/** Finds out whether a vendor only repeats words of the request: what a client writes says nothing about a key that others use. */

import type { GatewayError } from '../conversation/errors.ts';
import { type ByteList, wholeBytes } from '../lib/bytes/byte-list.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { decidingWords } from '../vendors/errors/kind-of-words.ts';

/** The parts of a request that a vendor may repeat in its error. */
export interface SentWords {
  /** Undefined: a form, of which no part is at hand. */
  readonly body: Uint8Array | ByteList | undefined;
  readonly headers: ReadonlyHeaders;
  readonly search: string;
}

/** To look through more takes too long: then its words count as repeated. */
const MAX_BYTES = 1024 * 1024;

/** These statuses say by themselves that a key is refused, a limit is reached or a server is in trouble. */
const speaks = (status: number): boolean =>
  status >= 500 || status === 401 || status === 402 || status === 403 || status === 429;

/**
 * Is the kind of an error known from nothing but words that the request holds, too?
 * @param error with the vendor's words
 * @param status of the vendor's answer; an error that came inside a 200 has none of its own
 */
export function repeatsRequest(error: GatewayError, sent: SentWords, status: number): boolean {
  if (!error.fromUpstream || speaks(status)) return false;
  const words = decidingWords(error);
  return words !== undefined && holds(sent, words);
}

function holds({ body, headers, search }: SentWords, words: string): boolean {
  if (body === undefined || body.length > MAX_BYTES) return true;
  const sought = lettersOf(words);
  const texts = [
    Buffer.from(wholeBytes(body)).toString(),
    search,
    ...[...headers].map(([, value]) => value),
  ];
  return texts.some((text) => lettersOf(text).includes(sought));
}

const ESCAPE = /\\u([0-9a-f]{4})|\\[nrtbf]|%([0-9a-f]{2})/gi;

/** Letters and digits alone, without escapes: whatever else a vendor may have changed. */
const lettersOf = (text: string): string =>
  text
    .replace(ESCAPE, (_, unit?: string, byte?: string) =>
      unit === undefined && byte === undefined
        ? ' '
        : String.fromCharCode(Number.parseInt(unit ?? byte!, 16)),
    )
    .replace(/[^\p{L}\p{N}]+/gu, '')
    .toLowerCase();

/** Finds where a JSON string ends by its bytes. */

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Behind an escaped quote more of them often follow: so many bytes are looked at one by one. */
const NEAR = 32;

/**
 * Where to look for the end of a string on from a place behind an escape: at its end, or a little further. To ask the
 * runtime for each quote costs more than to pass over some of them here.
 */
export function pastEscapes(bytes: Uint8Array, from: number): number {
  const near = Math.min(bytes.length, from + NEAR);
  let at = from;
  while (at < near && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return Math.min(at, bytes.length);
}

/** Is the quote at this place escaped, as the bytes before it say? */
export function isEscaped(bytes: Uint8Array, quote: number): boolean {
  let slashes = 0;
  while (bytes[quote - 1 - slashes] === BACKSLASH) slashes++;
  return slashes % 2 === 1;
}

/** The quote that ends the string in which `from` stands; -1 where there is none. */
export function closingQuote(bytes: Uint8Array, from: number): number {
  for (let at = from; ; ) {
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0 || !isEscaped(bytes, quote)) return quote;
    at = pastEscapes(bytes, quote + 1);
  }
}
